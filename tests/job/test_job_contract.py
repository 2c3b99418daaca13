"""The contract is true: each sentence that the model reads is quoted here, with statements that
show it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from plain_loop import PlainLoop, Policy, statements

from runtime.base.fences import fenced
from runtime.base.spec.models import ProjectionPolicy
from runtime.base.values import ModelReply
from runtime.context.contract import contract_text
from runtime.context.excerpts import READER_TOKENS
from runtime.interpreter.job_host import MAX_EFFECTS
from runtime.interpreter.output import SHOWN_CHARS
from runtime.projection.segments import SegmentKind
from runtime.workspace.files import Limits

LINES = "".join(f"line {n}\n" for n in range(500))
CODE = 'import os\n\n\nclass A:\n    """Doc."""\n\n    def f(self):\n        return 1\n'


def search(query: str, limit: int = 5) -> list[str]:
    """Lines of the index that contain the query."""
    return [query] * limit


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Files of a few kinds."""
    for name, text in {
        "a.txt": LINES,
        "src/foo.py": CODE,
        "src/bar.py": CODE,
        "b.txt": "one\ntwo\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "big.txt").write_bytes(b"x" * (Limits().read_bytes + 1))
    (tmp_path / "wide.txt").write_text("abcdefghij" * 1000 + "\nnext\n")
    return tmp_path


def out(loop: PlainLoop) -> list[str]:
    """What each statement printed, or the exception that it raised."""
    return [
        e.stdout.rstrip("\n") or (e.exception.type if e.exception else "") for e in loop.executions
    ]


@dataclass(frozen=True)
class Case:
    """Statements that show what ``quote`` says: what they print or raise, one after the other, and
    what else holds then.
    """

    quote: str
    sources: tuple[str, ...]
    printed: tuple[str, ...] | None = None
    check: Callable[[PlainLoop], bool] = lambda loop: True
    edits: dict[int, dict[str, str]] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


def prompt(loop: PlainLoop, turn: int) -> str:
    """All that the model was shown at a turn but the contract."""
    return "\n".join(
        segment.text
        for segment in loop.layouts[turn - 1]
        if segment.kind is not SegmentKind.CONTRACT
    )


def views(loop: PlainLoop, turn: int) -> list[str]:
    return [segment.text for segment in loop.layouts[turn - 1] if segment.kind is SegmentKind.VIEW]


FOO = "foo = view('a.txt', tokens=40)"
RUNS = "foo = view('b.txt').Run()"

CASES = {
    "checked first": Case(
        "It is type-checked, then run", ("print(1)\nview(5)", "print(2)"), ("TypeCheckError", "2")
    ),
    "output": Case("its output, the value of its last expression", ("print(1)\n2",), ("1\n2",)),
    "exception": Case(
        "or the exception it raised, is in the next turn's prompt",
        ("1 / 0", "print(1)"),
        ("ZeroDivisionError", "1"),
        lambda loop: "ZeroDivisionError: division by zero" in prompt(loop, 2),
    ),
    "view": Case(
        "and so is each view, where it was made",
        (FOO, "x = 1"),
        check=lambda loop: len(views(loop, 2)) == 1 and "line 0\nline 1\n" in views(loop, 2)[0],
    ),
    "variables": Case("Variables stay from turn to turn", ("x = 3", "print(x)"), ("", "3")),
    "raising": Case(
        "A statement that raises keeps what it did until then",
        ("x = 3\n1 / 0", "print(x)"),
        ("ZeroDivisionError", "3"),
    ),
    "too long": Case(
        "one that exceeds a limit of time, memory or output is taken back whole",
        ("x = 1", "x = 2\nfoo = view('a.txt')\nwhile True:\n    pass", "print(x, ls())"),
        ("", "TimeoutError", "1 []"),
    ),
    "room": Case(
        "Free room by lowering tokens, raising lod, or assigning None to the variable",
        (
            "foo = view('a.txt')\nbar = view('src/foo.py', tokens=15)\nbaz = view('b.txt')",
            "foo.SetTokens(20)\nbar.SetLod(3)\nbaz = None",
            "x = 1",
        ),
        check=lambda loop: (
            "line 10" in prompt(loop, 2)
            and "line 10" not in prompt(loop, 3)
            and "import os" in prompt(loop, 2)
            and "import os" not in prompt(loop, 3)
            and "\ntwo" not in prompt(loop, 3)
        ),
        options={"projection": ProjectionPolicy.INLINE},
    ),
    "path": Case(
        'a file, directory or glob ("src/**/*.py") of the workspace, or an opened file',
        (
            (
                "for v in (view('b.txt'), view('src'), view('src/**/*.py'), view(open('b.txt'))):\n"
                "    print(repr(v.text))"
            ),
        ),
        (
            (
                "'one\\ntwo'\n'bar.py  71 bytes\\nfoo.py  71 bytes'\n"
                "'src/bar.py  71 bytes\\nsrc/foo.py  71 bytes'\n'one\\ntwo'"
            ),
        ),
    ),
    "pos": Case(
        'a 0-based line (40 or "40")',
        (
            (
                "for pos in (40, '40', '40:0'):\n    v = view('a.txt', pos=pos, tokens=20)\n   "
                " print(v.pos, v.text.splitlines()[0])"
            ),
        ),
        ("40:0 line 40\n" * 2 + "40:0 line 40",),
    ),
    "column": Case(
        '"line:column" ("120:80"; the column counts where a line is too long to be shown whole)',
        (
            (
                "print(view('wide.txt', pos='0:8003', tokens=20).text[:40])\nprint(view('a.txt',"
                " pos='7:3', tokens=20).text[:6])"
            ),
        ),
        ("[line from column 8003] defghijabcdefghi\nline 7",),
    ),
    "anchor": Case(
        '"/text": the first line that contains text',
        ("print(view('a.txt', pos='/ne 77', tokens=4).text)",),
        ("line 77",),
    ),
    "All": Case(
        f"All for as much as the reader allows ({READER_TOKENS:,})",
        ("v = view('a.txt', tokens=All)\nprint(v.total_lines, v.last_line, v.truncated)",),
        ("500 500 False",),
    ),
    "lod 0": Case(
        "0: the text from pos on",
        ("print(view('a.txt', pos=498).text[:13])\nprint(view('a.txt', pos=9, tokens=8).text)",),
        ("line 0\nline 1\nline 9\nline 10",),
    ),
    "lod 1": Case(
        "1: structure (symbols, headings, keys, columns; of a directory its tree, of a glob its"
        " files' symbols)",
        (
            (
                "print(view('src/foo.py', lod=1).text.splitlines()[0])\nprint(view('.',"
                " lod=1).text.splitlines()[1])\nprint(view('src/*.py', lod=1).text.splitlines()[1])"
            ),
        ),
        ("3: class A  # Doc.\n0:   src/ 2 files: 2 .py\n3:   class A  # Doc.",),
    ),
    "lod 2 without a writer": Case(
        "2: as 1, for no model writes summaries in this job.",
        ("v = view('src/foo.py', lod=2)\nw = view('src/foo.py', lod=1)\nprint(v.text == w.text)",),
        ("True",),
    ),
    "lod 3": Case(
        "3: what changed since it was last shown",
        ("foo = view('b.txt', lod=3).Run()", "x = 1", "print(foo.text)"),
        ("", "", "@@ -0,2 +0,2 @@\n one\n-two\n+new"),
        edits={3: {"b.txt": "one\nnew\n"}},
    ),
    "paused": Case(
        '"paused" keeps the last known state until you call a method',
        ("foo = view('b.txt')\nprint(foo.mode)", "print(foo.text)", "print(foo.Refresh().text)"),
        ("paused", "one\ntwo", "new"),
        edits={2: {"b.txt": "new\n"}},
    ),
    "running": Case(
        '"running" follows the file: it is read at the beginning of each turn, and a change is'
        " shown as a diff",
        (RUNS, "x = 1", "print(foo.text)"),
        ("", "", "one\nnew"),
        lambda loop: "-two\n+new" in prompt(loop, 3),
        edits={3: {"b.txt": "one\nnew\n"}},
    ),
    "out of sight": Case(
        "It is paused when no variable, pin or group holds it any more",
        (
            (
                "view('b.txt', mode='running')\nfoo = view('b.txt').Run()\npin(foo)\nbar ="
                " view('b.txt').Run()\ng = group(bar)"
            ),
            "foo = bar = None",
            "print('\\n'.join(line.split(' | ')[1] for line in ls()))",
        ),
        ("", "", "paused\nrunning Sync\nrunning Sync\nrunning Sync"),
    ),
    "freq": Case(
        '"Sync", or ("Periodic", seconds): read at the beginning of the next turn, and then of each'
        ' by which so many seconds have passed since; or "Async": read in the background, shown at'
        " the first turn after that.",
        (
            (
                "a = view('b.txt', freq='Sync')\nb = view('b.txt', freq=('Periodic', 600))\nc ="
                " view('b.txt', freq='Async')"
            ),
            *("print([v.text.split()[0] for v in (a, b, c)])",) * 12,
        ),
        (
            "",
            "['2', '2', 'one']",
            *(f"['{n}', '{2 if n < 12 else 12}', '{n - 1}']" for n in range(3, 14)),
        ),
        edits={n: {"b.txt": f"{n} is the turn\n"} for n in range(2, 14)},
    ),
    "effect of setters": Case(
        "SetLod, SetTokens, SetPos and Scroll take effect at the beginning of the next turn."
        " Refresh reads at once.",
        (
            FOO,
            "foo.SetPos(50)\nfoo.SetTokens(8)\nprint(foo.text[:6])",
            "print(foo.text)\nfoo.Scroll(10)\nprint(foo.text[:7])\nprint(foo.Refresh().text)",
        ),
        ("", "line 0", "line 50\nline 51\nline 50\nline 60\nline 61"),
    ),
    "headers": Case(
        'Headers count lines like slices: "lines 120:180 of 900", so SetPos(180) goes on there',
        (
            "foo = view('a.txt', pos=120, tokens=20)\nshow(foo)",
            "foo.SetPos(foo.last_line)\nprint(foo.Refresh().first_line)",
        ),
        (
            "[view-1: view of a.txt lines 120:125 of 500, lod 0, 19 tokens, more in the source]\n"
            + fenced("\n".join(f"line {n}" for n in range(120, 125))),
            "125",
        ),
    ),
    "group": Case(
        "recomputed at the beginning of a turn when a member changed, unless paused. Its members"
        " are then shown by the group, not on their own, except those that are pinned.",
        (
            (
                "foo = view('b.txt').Run()\nbar = view('a.txt', tokens=20)\ng = group(foo, bar)\nh"
                " = group(foo).Pause()\npin(bar)"
            ),
            "print('new' in g.text, 'new' in h.text)",
        ),
        ("", "True False"),
        lambda loop: (
            "summarised by g, h" in prompt(loop, 2)
            and len([v for v in views(loop, 2) if "line 1" in v]) == 1
        ),
        edits={2: {"b.txt": "new\n"}},
    ),
    "group lods": Case(
        "0: members' excerpts. 1: their structure. 2 (default): their first lines and structure.",
        (
            (
                "foo = view('src/foo.py')\nprint('return 1' in group(foo, lod=0).text, group(foo,"
                " lod=1).text.splitlines()[1:])\nprint(group(foo).lod,"
                " group(foo).text.splitlines()[1:])"
            ),
        ),
        (
            (
                "True ['  class A:', '      def f(self):']\n"
                "2 ['  import os', '  class A:', '      \"\"\"Doc.\"\"\"', '      def f(self):']"
            ),
        ),
    ),
    "note": Case(
        "A note survives without a variable, since it is pinned; pin(n, None) and n = None let it"
        " go. A text longer than its budget is refused, so a note is always whole.",
        (
            "n = note('the plan')",
            "n = None",
            "print(ls())",
            "m = note('x')\npin(m, None)\nm = None",
            "note('word ' * 600)",
            "k = note('word ' * 6000, tokens=All)\nprint(len(k.text))",
        ),
        ("", "", "['note-1 = note | 2/500 tokens | pinned']", "", "ValueError", "30000"),
        lambda loop: "the plan" in prompt(loop, 4) and "[note-2: note" not in prompt(loop, 6),
    ),
    "ls": Case("ls(): a list, one line for each handle", (FOO + "\nprint(len(ls()))",), ("1",)),
    "tick": Case(
        "tick(): what runs is updated before the next turn, whether it is due or not",
        (
            "foo = view('b.txt').Run(freq=('Periodic', 6000))",
            "x = 1",
            "print(foo.text)\ntick()",
            "print(foo.text)",
        ),
        ("", "", "one\ntwo", "new"),
        edits={3: {"b.txt": "new\n"}},
    ),
    "wait": Case(
        "wait and wait_for take effect when the statement has ended without an exception, one after"
        " the other",
        (
            "import time\nprint(int(time.time()))",
            "wait(600)\nwait(600)\nprint('on')",
            "import time\nprint(int(time.time()))",
            "wait(9999)\n1 / 0",
            "import time\nprint(int(time.time()))",
        ),
        ("1750000060", "on", "1750001381", "ZeroDivisionError", "1750001501"),
        lambda loop: "woken by the time that was set" in prompt(loop, 3),
    ),
    "wait_for": Case(
        "of the nodes, which must run, changes".replace("of the", "one of the"),
        (FOO, "wait_for(foo)"),
        ("", "ValueError"),
    ),
    "chained": Case(
        "so calls can be chained: foo.SetLod(1).SetTokens(All). Each method has a second spelling:"
        " foo.set_lod(1).",
        (
            (
                "foo ="
                " view('a.txt').SetLod(1).SetTokens(All).set_lod(0).set_pos(3).scroll(1).refresh().pause().run()\nprint(foo.pos,"
                " foo.lod)"
            ),
        ),
        ("4:0 0",),
    ),
    "attributes": Case(
        "Attributes, read-only:",
        (
            (
                "foo = view('b.txt', freq=('Periodic', 60))\nprint(foo.freq == ('Periodic', 60),"
                " foo.first_line, foo.last_line, foo.fault)\ng = group(foo)\nprint(len(g.members))"
            ),
            "foo.tokens = 5",
        ),
        ("True 0 2 None\n1", "TypeCheckError"),
    ),
    "files": Case(
        "pathlib.Path(path) with .read_text(), .iterdir(), .glob(pattern), .rglob(pattern),"
        " .walk(), .exists(), .is_dir(), .is_file(), .stat() work",
        (
            (
                "import os, pathlib\nP = pathlib.Path\nprint(open('b.txt').read() =="
                " P('b.txt').read_text(), os.listdir('src'),"
                " os.path.exists('b.txt'))\nprint([p.name for p in P('src').iterdir()], [str(p) for"
                " p in P('.').glob('src/f*.py')], [str(p) for p in"
                " P('.').rglob('f*.py')])\nprint([(str(p), d, f) for p, d, f in P('src').walk()],"
                " P('no').exists(), P('src').is_dir(), P('b.txt').is_file(),"
                " P('b.txt').stat().st_size)"
            ),
        ),
        (
            (
                "True ['bar.py', 'foo.py'] True\n['bar.py', 'foo.py'] ['src/foo.py']"
                " ['src/foo.py']\n[('src', [], ['bar.py', 'foo.py'])] False True True 8"
            ),
        ),
    ),
    "large files": Case(
        "a file that is read so has at most 256 kB",
        ("open('big.txt')", "print(view('big.txt', tokens=20).total_lines)"),
        ("OSError", "1"),
    ),
    "read-only": Case(
        "The workspace is read-only; paths are relative to it, and what lies outside it cannot be"
        " reached",
        ("open('b.txt', 'w')", "open('../x')", "view('/etc/passwd')"),
        ("PermissionError",) * 3,
    ),
    "printed": Case(
        f"What you print comes back once, at most {SHOWN_CHARS:,} characters of it",
        ("print('ž' * 30000)", "x = 1"),
        check=lambda loop: prompt(loop, 2).count("ž") == SHOWN_CHARS - 1,
    ),
    "tools": Case(
        "Functions of this job, called inside your Python, without await:",
        ("print(search('a', limit=2))",),
        ("['a', 'a']",),
    ),
    "finish": Case(
        "one that does not raises ValueError, and the job goes on",
        ("finish({'file': 1})", "finish({1, 2})", "finish({'files': []})", "print('never')"),
        ("ValueError", "TypeError", ""),
        lambda loop: loop.stop is not None and loop.stop.result == {"files": []},
        options={"result": {"type": "object", "required": ["files"]}},
    ),
    "memory": Case(
        "A statement may compute for 1 second, use 64 MB and print 1 MB, and all variables together"
        " hold 12 MB",
        (
            "x = 'a' * (64 << 20)",
            "y = len('a' * (60 << 20))\nprint(y)",
            "z = 'a' * (14 << 20)",
            "z = 'a' * 12_000_000\nprint(len(z))",
            "for n in range(2000):\n    print('x' * 600)",
        ),
        ("MemoryError", "62914560", "MemoryError", "12000000", "MemoryError"),
    ),
    "effects": Case(
        f"may be done {MAX_EFFECTS:,} times in one",
        (
            f"for n in range({MAX_EFFECTS}):\n    search('a')",
            f"for n in range({MAX_EFFECTS + 1}):\n    search('a')",
        ),
        ("", "RuntimeError"),
    ),
    "sleep": Case(
        "time.sleep() returns at once", ("import time\ntime.sleep(1000)\nprint('on')",), ("on",)
    ),
}

SLOW = frozenset({"effects", "too long"})
"""They do as much as a statement may."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in CASES]
)
def test_what_the_contract_says_is_true(workspace: Path, name: str) -> None:
    """The sentence is in the contract that this very job's model reads, and the statements show
    it.
    """
    case = CASES[name]

    def between(turn: int) -> None:
        (workspace / "b.txt").write_text("one\ntwo\n") if turn == 1 else None
        for path, text in case.edits.get(turn, {}).items():
            (workspace / path).write_text(text)

    loop = PlainLoop(
        workspace, statements(*case.sources), tools=[search], between=between, options=case.options
    )
    loop.run().replayed()
    told = next(segment.text for segment in loop.layouts[0] if segment.kind is SegmentKind.CONTRACT)
    assert case.quote in re.sub(r"\n +", " ", told)
    if case.printed is not None:
        assert tuple(out(loop)[: len(case.printed)]) == case.printed
    assert case.check(loop)


def test_a_reply_without_python_is_recorded_for_the_user_and_ends_nothing(workspace: Path) -> None:
    """The job goes on with its next turn."""
    replies: list[str | ModelReply] = [
        ModelReply(text="I look around.", response_id="r1"),
        "finish(3)",
    ]
    policy: Policy = lambda _: replies.pop(0)  # noqa: E731
    loop = PlainLoop(workspace, policy).run()
    assert loop.stop is not None and loop.stop.result == 3
    assert "A reply without Python is recorded for the user and ends nothing." in prompt_of_system(
        loop
    )


def prompt_of_system(loop: PlainLoop) -> str:
    """The contract."""
    return next(segment.text for segment in loop.layouts[0] if segment.kind is SegmentKind.CONTRACT)


def test_a_job_whose_summaries_a_model_writes_is_told_so() -> None:
    """And one without such a model is not."""
    written = contract_text(form="tool", tools=(), result_schema=None)
    unwritten = contract_text(form="tool", tools=(), result_schema=None, writer=False)
    assert written.count("a summary that a model writes in the background") == 2
    assert (
        "no model writes summaries in this job" in unwritten
        and "a model writes in the background" not in unwritten
    )
