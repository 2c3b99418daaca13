"""The jobs files that the pages show can be loaded, and so can the parts of some that they show."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from runtime.jobsfile.load import load_jobs_file

ROOT = Path(__file__).parent.parent.parent
PAGES = (
    *("README.md", "docs/batches.md", "docs/jobs-file.md", "docs/mcp.md"),
    *("docs/models.md", "docs/tools.md", "docs/workspaces.md"),
)
_BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OF_A_FILE = {"batch", "concurrency", "budget", "limits", "priority", "on_finish", "defaults"}
TOOLS = """
def search(word: str) -> list[str]:
    return []

def count(text: str, word: str) -> int:
    return 0

def order(part: str) -> str:
    return part

def look() -> str:
    return ""
"""
ITEM = '{"package": "a", "repo": "a", "path": "src", "limits": {"files": 3, "turns": 7}}\n'
REST = {
    "model": "openai/gpt-5",
    "workspace": "{from: src, write: true}",
    "tools": "['mytools:search', 'mytools:order', 'mytools:look']",
    "mcp": "{docs: {url: 'https://docs.example.org/mcp'}}",
}
"""What a part of a jobs file leaves out."""


def examples() -> list[object]:
    """Each block of YAML that is a jobs file or holds keys of one, by its page and line."""
    texts = {page: (ROOT / page).read_text() for page in PAGES}
    return [
        pytest.param(block[1], id=f"{page}:{text[: block.start()].count(chr(10)) + 2}")
        for page, text in texts.items()
        for block in _BLOCK.finditer(text)
        if not block[1].startswith("- ")
    ]


def keys(block: str) -> list[str]:
    """The keys that are shown, or those below ``defaults``."""
    own = textwrap.dedent(block.removeprefix("defaults:\n"))
    return re.findall(r"^(\w+):", own, re.MULTILINE)


def alternatives(block: str) -> list[str]:
    """The block, or its lines where they are several values of one key."""
    return block.splitlines() if len(set(keys(block))) < len(keys(block)) else [block]


def whole(block: str) -> str:
    """A jobs file with what is shown in its place, and with what is left out there."""
    if "jobs:" in block:
        more = {key: REST[key] for key in ("model", "workspace")}
        return block if "defaults:" in block else f"{block}defaults: {written(more)}\n"
    job = {"id": "a", "goal": "g"} | {k: v for k, v in REST.items() if k not in keys(block)}
    if block.split(":")[0] not in _OF_A_FILE:
        block = f"defaults:\n{textwrap.indent(block, '  ')}"
    return f"{block.rstrip()}\njobs: [{written(job)}]\n"


def written(values: dict[str, str]) -> str:
    """A mapping on one line."""
    return "{" + ", ".join(f"{key}: {value}" for key, value in values.items()) + "}"


@pytest.mark.parametrize("block", examples())
def test_an_example_can_be_loaded(block: str, tmp_path: Path) -> None:
    """With the files that it names, it is a jobs file without a mistake."""
    (tmp_path / "src").mkdir()
    (tmp_path / "mytools.py").write_text(TOOLS)
    for name in ("packages.jsonl", "repos.jsonl"):
        (tmp_path / name).write_text(ITEM)
    for text in alternatives(block):
        (tmp_path / "jobs.yaml").write_text(whole(text))
        assert load_jobs_file(tmp_path / "jobs.yaml").jobs
