"""What ``--json`` prints of workspaces has the shapes that ``docs/json-shapes.json`` pins."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command_line import CommandLine
from tests.cli.test_cli_json import Printed, compare_with_the_pinned


def test_every_document_of_a_workspace_has_its_pinned_shape(
    cli: CommandLine, tmp_path: Path
) -> None:
    """No key is missing or new."""
    printed = Printed(cli)

    def workspace(command: str, *arguments: str | Path) -> None:
        printed("workspace", command, *arguments, of=f"workspace {command}")

    cli("workspace", "export", "one@0", tmp_path / "mine")
    workspace("ls", "one")
    workspace("diff", "one")
    workspace("apply", "one", "--to", tmp_path / "mine", "--dry-run")
    printed("log", "one", "--effects", of="log --effects")
    printed("blame", "one", "pkg/a.py", of="blame PATH")
    compare_with_the_pinned(printed.documents)
