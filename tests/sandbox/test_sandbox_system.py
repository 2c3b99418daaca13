"""What of a host's ``/etc`` a command in bubblewrap is given."""

from __future__ import annotations

from pathlib import Path

from runtime.sandbox.system import system_mounts


def test_what_cannot_be_reached_is_left_out(tmp_path: Path) -> None:
    """Links that lead nowhere, to themselves or through a file, and a file where a directory is
    looked for: every command would fail.
    """
    (tmp_path / "magic").write_text("small")
    (tmp_path / "services").write_bytes(bytes(200_000))
    (tmp_path / "localtime").symlink_to("localtime")
    (tmp_path / "mime.types").symlink_to("nowhere")
    (tmp_path / "os-release").symlink_to("magic/beneath")
    (tmp_path / "ssl").write_text("no directory")
    copied: list[str] = []

    def opened(path: str) -> int:
        copied.append(path)
        return 7

    options = system_mounts(network=False, setup=False, opened=opened, etc=str(tmp_path))
    told = [one for one in options if one.startswith(("/etc/", str(tmp_path)))]

    assert told == ["/etc/magic", f"{tmp_path}/services", "/etc/services"]
    assert copied == [f"{tmp_path}/magic"]
