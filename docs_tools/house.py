"""How the code is housed: rooms, the arrows between them, circles, sizes, comments.

A room is a package below ``runtime``, or one of ``holdfast``, ``workflows`` and ``activities``; a
module that lies loose in ``runtime`` is a room of its own. An arrow leads from a room to another
where a module of the one imports a module of the other, inside functions and for types alone
included.

``python -m docs_tools.house`` prints the table of ``docs/benchmarks.md`` for the code beside it.
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

import grimp
from grimp import ImportGraph

PACKAGES = ("holdfast", "workflows", "activities", "runtime")
ROOT = Path(__file__).parent.parent

LONG_FUNCTION = 50
"""Lines beyond which a function is asked why."""


def import_graph() -> ImportGraph:
    """Which module imports which, external packages left out."""
    # A cache beside the code would be left in checkouts, and be wrong where two tests share one.
    return grimp.build_graph(*PACKAGES, cache_dir=None)


def room_of(module: str) -> str:
    """The room that a module lies in."""
    names = module.split(".")
    return ".".join(names[:2]) if names[0] == "runtime" else names[0]


def arrows(graph: ImportGraph) -> dict[tuple[str, str], list[str]]:
    """The arrows between rooms, each with the imports that it stands for."""
    between: dict[tuple[str, str], list[str]] = {}
    for module in sorted(graph.modules):
        for imported in sorted(graph.find_modules_directly_imported_by(module)):
            arrow = room_of(module), room_of(imported)
            if arrow[0] != arrow[1]:
                between.setdefault(arrow, []).append(f"{module} -> {imported}")
    return between


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Groups in which everybody imports everybody else, directly or through others."""
    seen: dict[str, set[str]] = {}

    def reached(start: str) -> set[str]:
        if start not in seen:
            reachable, waiting = set[str](), [start]
            while waiting:
                fresh = imports.get(waiting.pop(), set()) - reachable
                reachable |= fresh
                waiting += fresh
            seen[start] = reachable
        return seen[start]

    # A set, since each member of a group finds it.
    groups = {
        tuple(sorted(other for other in reached(name) if name in reached(other)))
        for name in imports
        if name in reached(name)
    }
    return [list(group) for group in sorted(groups)]


def module_circles(graph: ImportGraph) -> list[list[str]]:
    """Circles of modules."""
    return circles(
        {name: set(graph.find_modules_directly_imported_by(name)) for name in graph.modules}
    )


def room_circles(pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Circles of rooms."""
    imports: dict[str, set[str]] = {}
    for room, imported in pairs:
        imports.setdefault(room, set()).add(imported)
    return circles(imports)


def _sources() -> dict[Path, str]:
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return {path: path.read_text() for path in paths}


def _functions(sources: Iterable[str]) -> Iterator[int]:
    """The lines of each function, docstring included."""
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield (node.end_lineno or node.lineno) - node.lineno + 1


def _comments(source: str) -> int:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return sum(token.type == tokenize.COMMENT for token in tokens)


def measures() -> dict[str, str]:
    """What there is to say of the house, by name."""
    graph, sources = import_graph(), _sources()
    between = arrows(graph)
    lengths = {path: text.count("\n") for path, text in sources.items()}
    loose = sum(n for path, n in lengths.items() if path.parent == ROOT / "runtime")
    functions = list(_functions(sources.values()))
    lines = sum(lengths.values())
    long = sum(length > LONG_FUNCTION for length in functions)
    comments = sum(map(_comments, sources.values()))
    return {
        "lines": f"{lines:,}",
        "rooms with arrows": str(len({room for arrow in between for room in arrow})),
        "arrows between rooms": str(len(between)),
        "circles of rooms": str(len(room_circles(between))),
        "modules in a circle of modules": str(sum(map(len, module_circles(graph)))),
        "lines in no room": f"{loose / lines:.0%}",
        "median lines of a file": f"{statistics.median(lengths.values()):.0f}",
        "files over 400 lines": str(sum(n > 400 for n in lengths.values())),
        "functions over 50 lines": f"{long} ({long / len(functions):.1%})",
        "lines over 100 columns": f"{sum(_too_long(text) for text in sources.values()):,}",
        "comments in 100 lines": f"{100 * comments / lines:.1f}",
    }


def _too_long(text: str) -> int:
    return sum(len(line) > 100 for line in text.splitlines())


def main() -> None:
    """Print the table."""
    rows = [f"| {name} | {value} |" for name, value in measures().items()]
    sys.stdout.write("\n".join(["| | |", "|---|--:|", *rows, ""]))


if __name__ == "__main__":
    main()
