"""What documents and docstrings refer to is there: files, headings, sections."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
_LISTED = subprocess.run(
    ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
)
FILES = [name for name in _LISTED.stdout.splitlines() if (ROOT / name).is_file()]
PAGES = [name for name in FILES if name.endswith(".md") and not name.startswith("docs/contract/")]
SOURCES = [
    name
    for name in FILES
    if name.endswith((".py", ".toml")) and name != "tests/readme/test_docs_links.py"
]

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(r"(?<![\w/\"'])docs/[\w/.-]*\w\.(?:md|txt)(?: sections? ([\d., and]*\d))?")
_ELSEWHERE = re.compile(
    r"\b(?:DESIGN|FACTS|STYLE)\.md|shared/spec|(?<!docs/contract/)executable-context\.md"
)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MkDocs make them of plain words."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


def sections(page: Path) -> set[str]:
    """The numbers of a page's numbered headings."""
    return set(re.findall(r"^#+ (\d+(?:\.\d+)*)\b", page.read_text(), re.MULTILINE))


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    """A link within the repository names a file that is there, and a heading that it has."""
    path = ROOT / page
    links = [link for link in _LINK.findall(_CODE.sub("", path.read_text())) if "://" not in link]
    dead = []
    for link in links:
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert dead == []


@pytest.mark.parametrize(
    "source", [name for name in SOURCES if "docs/" in (ROOT / name).read_text()]
)
def test_every_section_that_is_quoted_is_there(source: str) -> None:
    """A docstring or comment quotes a document of this repository, and a section that it has."""
    missing = []
    for found in _QUOTED.finditer((ROOT / source).read_text()):
        page = ROOT / found[0].partition(" ")[0]
        quoted = re.findall(r"\d+(?:\.\d+)*", found[1] or "")
        if not page.is_file() or not set(quoted) <= sections(page):
            missing.append(found[0])
    assert missing == []


def test_nothing_refers_to_documents_that_a_clone_lacks() -> None:
    """Design, facts and founding documents are named by their places below ``docs/``."""
    told = [
        f"{name}: {found[0]}"
        for name in SOURCES
        for found in _ELSEWHERE.finditer((ROOT / name).read_text())
    ]
    assert told == []


def test_the_readme_is_short() -> None:
    """At most 90 lines: the rest stands in ``docs/``."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= 90
