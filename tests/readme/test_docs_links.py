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
_PATH = re.compile(
    r"`((?:activities|benchmarks|docs|docs_tools|examples|holdfast|infra|runtime|tests|workflows)"
    r"/[\w./*-]+)`"
)
_WRAPPED = re.compile(r"\n\s*(?:#:? )?")
"""Where a docstring or a comment goes on in its next line."""
_ELSEWHERE = re.compile(
    r"\b(?:DESIGN|FACTS|STYLE)\b|shared/spec|(?<!docs/contract/)executable-context\.md"
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
    for found in _QUOTED.finditer(_WRAPPED.sub(" ", (ROOT / source).read_text())):
        page = ROOT / found[0].partition(" ")[0]
        quoted = re.findall(r"\d+(?:\.\d+)*", found[1] or "")
        if not page.is_file() or not set(quoted) <= sections(page):
            missing.append(found[0])
    assert missing == []


def test_a_section_is_checked_where_its_line_is_wrapped() -> None:
    """A number that stands in the next line of a docstring or a comment is seen."""
    for text in ("docs/a.md section\n    3).", "# docs/a.md\n# section 3", "docs/a.md section 3"):
        assert [found[1] for found in _QUOTED.finditer(_WRAPPED.sub(" ", text))] == ["3"]


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_is_named_is_there(page: str) -> None:
    """A page names files and rooms by where they lie now; those that a walk-through adds, and
    places for a name, are none of them.
    """
    named = set(_PATH.findall((ROOT / page).read_text()))
    if page == "docs/contributing/README.md":
        named -= {
            path
            for patch in (ROOT / "docs" / "contributing").glob("*.patch")
            for path in re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE)
        }
    assert [path for path in sorted(named) if not list(ROOT.glob(path.rstrip("/")))] == []


def test_the_site_has_every_page() -> None:
    """What lies below ``docs/`` is in the navigation of ``mkdocs.yml``."""
    site = (ROOT / "mkdocs.yml").read_text()
    pages = [name.removeprefix("docs/") for name in FILES if re.match(r"docs/.*\.md$", name)]
    assert [page for page in pages if not re.search(rf" {re.escape(page)}$", site, re.M)] == []


def test_the_sites_first_page_leads_to_every_other() -> None:
    """Those of decisions and the founding documents by their own lists."""
    linked = set(_LINK.findall((ROOT / "docs" / "index.md").read_text()))
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert pages - linked == set()


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
