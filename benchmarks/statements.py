"""How many of the corpus's snippets do in a statement what they do in CPython: ``python -m
benchmarks.statements``.

Prints a table by file of the corpus, and each snippet that does something else.
``tests/interpreter`` asserts the same.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

# The snippets and the plain loop belong to the tests.
sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests" / "job")]

from plain_loop import PlainLoop, statements  # noqa: E402

from tests.interpreter.corpus import expected, snippets, workspace  # noqa: E402


def main() -> None:
    """Run every snippet once."""
    wanted = expected()
    counts: Counter[tuple[str, str]] = Counter()
    others: list[str] = []
    with tempfile.TemporaryDirectory() as directory:
        root = workspace(Path(directory))
        for snippet in snippets():
            execution = PlainLoop(root, statements(snippet.source)).run().executions[0]
            exception = execution.exception
            told = "" if exception is None else f"{exception.type}: {exception.message}"
            if snippet.declared:
                outcome = "declared" if told else "other"
            else:
                outcome = (
                    "as CPython"
                    if not told and execution.stdout == wanted[snippet.name]
                    else "other"
                )
            counts[snippet.name.partition(":")[0], outcome] += 1
            if outcome != "as CPython":
                others.append(f"{outcome}: {snippet.name}: {told or repr(execution.stdout)}")
    print("| snippets | as CPython | declared | other |\n|---|--:|--:|--:|")
    for group in sorted({group for group, _ in counts}):
        print(
            f"| {group} |"
            f" {' | '.join(str(counts[group, kind]) for kind in ('as CPython', 'declared', 'other'))} |"
        )
    print("\n".join(others))


if __name__ == "__main__":
    main()
