"""Random sessions: views, groups, notes and pins over files that change and change back, with
results, errors and messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from plain_loop import PlainLoop, statements

NAMES = ("a", "b", "c")
NODE = st.sampled_from([*NAMES, "g", "h", "n"])
VIEW = st.sampled_from(NAMES)

STATEMENTS = st.one_of(
    st.builds(
        "{} = view('{}.txt', tokens={}, freq={!r})".format,
        VIEW,
        st.sampled_from("ab"),
        st.sampled_from([40, 400]),
        st.sampled_from([None, "Sync"]),
    ),
    st.builds("{}.SetPos({})".format, VIEW, st.integers(0, 30)),
    st.builds("{}.SetTokens({})".format, NODE, st.sampled_from([30, 90, 700])),
    st.builds("{0}.Run()\n{1}.Pause()".format, VIEW, VIEW),
    st.builds("{} = group({}, {}, tokens=150)".format, st.sampled_from("gh"), VIEW, NODE),
    st.builds("g.Add({})".format, NODE),
    st.builds("g.Remove({})".format, VIEW),
    st.builds("pin({}, reason='kept')".format, NODE),
    st.builds("pin({}, reason=None)".format, NODE),
    st.builds("{} = {}".format, NODE, st.sampled_from(["None", *NAMES, "[a, b]"])),
    st.builds("n = note('keep {}')".format, st.integers(0, 9)),
    st.builds("print('word ' * {})".format, st.sampled_from([1, 60, 500])),
    st.just("1 / 0"),
)


def texts(state: int) -> str:
    """A file's lines in one of its states."""
    return "".join(f"line {n}{f' in state {state}' if n == state * 5 else ''}\n" for n in range(40))


FIRST = "\n".join(
    [
        "a = view('a.txt', tokens=300, freq='Sync')",
        "b = view('b.txt', tokens=60)\nc = a",
        "n = note('x')\ng = group(a)\nh = g",
    ]
)


def random_session(folder: Path, sources: Sequence[str], **more: Any) -> PlainLoop:
    """A job of these statements, after one that makes a node of each kind."""

    def between(turn: int) -> None:
        for name in "ab":
            (folder / f"{name}.txt").write_text(texts(turn // 2 % 3))

    return PlainLoop(folder, statements(FIRST, *sources), between=between, **more)
