"""What no statement may do: each attempt ends as an error the model sees, and the job goes on as if
it had not been.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from plain_loop import Entry, PlainLoop, Run, native, statements

from runtime.interpreter import job_host, pool
from runtime.interpreter.executions import ExecutionStatus
from runtime.interpreter.run import Verdict, VerdictStatus
from runtime.interpreter.verdicts import Checked

BEFORE = "x = 1\nfoo = view('a.txt')"
AFTER = "print(x, foo.tokens)"
CHANGE = "x = 2\nfoo.SetTokens(5)\nbar = view('src/foo.py')\nprint('gone')\n"


def verdicts(loop: PlainLoop) -> list[Verdict]:
    """The recorded verdicts."""
    return [
        Verdict.model_validate_json(entry.value)
        for entry in loop.history
        if entry.kind == "verdict"
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "status", "kind"),
    [
        ("while True: pass", VerdictStatus.TIMEOUT, "TimeoutError"),
        (
            "try:\n    while True: pass\nexcept BaseException: pass",
            VerdictStatus.TIMEOUT,
            "TimeoutError",
        ),
        ("kept = []\nwhile True: kept.append('abc' * 1000)", VerdictStatus.MEMORY, "MemoryError"),
        ("kept = ['a' * 30_000_000]\ntake(1)", VerdictStatus.MEMORY, "MemoryError"),
        ("kept = list(range(1_000_000))", VerdictStatus.MEMORY, "MemoryError"),
        ("kept = ['a' * 1000 for n in range(200_000)]", VerdictStatus.MEMORY, "MemoryError"),
        ("kept = 'a' * (1 << 30)", VerdictStatus.MEMORY, "MemoryError"),
        (
            "try:\n    kept = 'a' * (1 << 30)\nexcept MemoryError: pass",
            VerdictStatus.MEMORY,
            "MemoryError",
        ),
        ("kept = 'a' * 14_000_000", VerdictStatus.MEMORY, "MemoryError"),
        ("kept = 'a' * 14_000_000\ntake(1)", VerdictStatus.MEMORY, "MemoryError"),
        ("for n in range(2000): print('x' * 1000)", VerdictStatus.OUTPUT, "MemoryError"),
    ],
)
def test_a_verdict_takes_the_statement_back(
    run: Run, source: str, status: VerdictStatus, kind: str
) -> None:
    """Namespace, nodes and output are as before; the error says so."""
    loop = run(BEFORE, CHANGE + source, AFTER)
    execution = loop.executions[1]
    assert status in [verdict.status for verdict in verdicts(loop)]
    assert execution.exception is not None
    assert execution.exception.type == kind
    assert execution.exception.message.endswith("are as they were before the statement.")
    assert execution.status is (
        ExecutionStatus.TIMEOUT if kind == "TimeoutError" else ExecutionStatus.ERROR
    )
    assert execution.stdout == ""
    assert loop.turns[1].nodes == loop.turns[0].nodes
    assert loop.turns[1].namespace == loop.turns[0].namespace
    assert loop.executions[2].stdout == "1 2000\n"


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("def f(): return f()\nf()", "RecursionError"),
    ],
)
def test_a_limit_that_counts_is_an_exception(run: Run, source: str, kind: str) -> None:
    """Depth and effects count alike everywhere: no verdict is needed, and what was done before
    stays.
    """
    loop = run(BEFORE, "x = 2\n" + source, AFTER)
    exception = loop.executions[1].exception
    assert exception is not None
    assert exception.type == kind
    assert {verdict.status for verdict in verdicts(loop)} == {VerdictStatus.OK}
    assert loop.executions[2].stdout == "2 2000\n"


@pytest.mark.parametrize(
    "source",
    [
        "raise ValueError('turn time limit exceeded')",
        "raise TimeoutError('feed time limit exceeded: 2s > 1s')",
        "tell('turn time limit exceeded')",
        "raise MemoryError('memory limit exceeded: 5 bytes > 4')",
        "raise MemoryError('memory limit exceeded: 5 bytes > 4 bytes')",
        "raise MemoryError('the worker exceeded its memory limit')",
    ],
)
def test_the_words_of_a_limit_are_no_limit(run: Run, source: str) -> None:
    """Which a statement or its tool may use as well: its task was tried again for ever, or what it
    did was taken back.
    """

    def tell(what: str) -> None:
        """A tool that is out of time."""
        raise TimeoutError(what)

    execution = run("x = 1", source, AFTER, tools=[tell]).executions[1]
    assert execution.exception is not None
    assert " limit" in execution.exception.message
    assert execution.exception.trace_summary.startswith("Traceback")
    assert execution.status is ExecutionStatus.ERROR


@pytest.mark.parametrize(
    "source",
    [
        "holdfast_walk = lambda *a: 'x'",
        "exec('holdfast_walk = lambda *a: str(1)')",
        "def holdfast_short(v): return v",
        "exec('def holdfast_short(v): return v')",
        "exec('holdfast_locals = lambda *a: {}')",
        "exec('def holdfast_locals():\\n    while True: pass')",
        'exec(\'def holdfast_short(v): return ("int", None, "1", [])\')',
        "def f(v, depth=0): return '1'\nexec('holdfast_repr = f')",
        'eval(\'exec("holdfast" + "_held = lambda v: []")\')',
        "exec('holdfast_short, holdfast_repr = holdfast_repr, holdfast_short')",
        "holdfast_mine = 2",
        "\uff48oldfast_mine = 2",
        "import json as holdfast_mine",
        "for holdfast_mine in [2]: pass",
        "match 2:\n    case holdfast_mine: pass",
        "def f():\n    global holdfast_mine\nf()",
    ],
)
def test_a_name_of_the_framework_s_cannot_be_bound(run: Run, source: str) -> None:
    """What lists the variables has such names: the statement is taken back, where its task failed
    for ever, and where the next statement did not know its variable.
    """
    loop = run(BEFORE, CHANGE + source, AFTER)
    exception = loop.executions[1].exception
    assert exception is not None
    assert exception.type == "NameError"
    assert "holdfast_" in exception.message
    assert verdicts(loop)[-3].status is VerdictStatus.NAMES
    assert loop.executions[2].stdout == "1 2000\n"


def test_a_record_that_bound_such_a_name_is_executed_as_it_was(
    workspace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Releases before let it. What it has printed where the variables are listed is not for the
    worker's terminal.
    """
    job = PlainLoop(workspace, statements()).job
    job.ingest((), 0.0)
    prints = "holdfast_short = lambda v: print('!') or ('int', None, '1', [])"
    statement = job.receive(native(f"holdfast_mine = 2\nexec({prints!r})", 1), 0.0)
    assert statement is not None
    known = Verdict(checked=Checked.PASSED)
    assert statement.advance(None, known).verdict.status is VerdictStatus.OK
    assert capfd.readouterr().out == ""


@pytest.mark.slow
def test_what_a_process_did_before_changes_no_verdict_on_memory(run: Run) -> None:
    """The interpreter counts a few hundred bytes more in a process that is new, as after a crash
    and in another worker.
    """
    large = "kept = 'a' * (1 << 30)"
    for _ in range(2):
        loop = run(
            large,
            "kept = []\nwhile True: kept.append('abc' * 1000)",
            "kept = 'a' * 12_000_000",
            "print(len(kept))",
        )
        messages = [
            e.exception.message.partition(" of memory")[0] for e in loop.executions if e.exception
        ]
        assert messages[0] == "the statement used more than 64 MB"
        assert loop.executions[3].stdout == "12000000\n"
        pool.close()
        loop.replayed()


@pytest.mark.slow
def test_the_1001st_effect_says_how_to_go_on(run: Run) -> None:
    """A thousand are done."""
    loop = run("n = 0\nwhile True:\n    open('a.txt')\n    n += 1", "print(n)")
    exception = loop.executions[0].exception
    assert exception is not None
    assert (
        exception.message
        == "open(): a statement may read files and call tools 1,000 times; go on in the next one"
    )
    assert len(loop.executions[0].effects) == 1000
    assert loop.executions[1].stdout == "1000\n"


@pytest.mark.parametrize(
    "source",
    [
        "for n in range(700): foo.tokens",
        "try:\n    while True: foo.SetLod(1)\nexcept BaseException: pass",
    ],
)
def test_too_many_calls_are_a_verdict(
    run: Run, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    """Counted over all stretches of the statement, and no statement can catch it."""
    monkeypatch.setattr(pool, "MAX_CALLS", 600)
    loop = run(BEFORE, CHANGE + source, AFTER)
    exception = loop.executions[1].exception
    assert exception is not None
    assert exception.message.startswith(
        "the statement called functions, methods and attributes of the context more than 600 times"
        " and was stopped."
    )
    assert verdicts(loop)[-3].status is VerdictStatus.CALLS
    assert loop.executions[2].stdout == "1 2000\n"


def test_nodes_are_counted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the statement and by the job; what was made stays."""
    monkeypatch.setattr(job_host, "MAX_NODES", 10)
    monkeypatch.setattr(job_host, "MAX_JOB_NODES", 15)
    loop = run("for n in range(11): note('x')", "for n in range(11): note('x')")
    told = [execution.exception.message for execution in loop.executions if execution.exception]
    assert told == [
        "note(): a statement may make 10 views, groups and notes; go on in the next one",
        "note(): a job may have 15 views, groups and notes; reuse them",
    ]
    assert [len(turn.nodes) for turn in loop.turns[:2]] == [10, 15]


@pytest.mark.slow
def test_a_timeout_after_an_effect_takes_the_whole_statement_back(run: Run) -> None:
    """The effect's record stays, for it happened; the views and the result it made do not."""
    loop = run(
        "x = 1", "x = search('a')\nfoo = view('a.txt')\nfinish(x)\nwhile True: pass", "print(x)"
    )
    assert [effect.name for effect in loop.executions[1].effects] == ["search", "view"]
    assert loop.turns[1].nodes == {}
    assert loop.executions[2].stdout == "1\n"
    assert loop.job.turn == 4


def test_a_slower_replay_of_an_ok_stretch_is_no_drift(workspace: Path) -> None:
    """Time is declared when live alone: a replay that took longer comes to the same digest, and is
    ok.
    """
    verdict: list[Verdict] = []
    for recorded in (None, Verdict()):
        job = PlainLoop(workspace, statements()).job
        job.ingest((), 0.0)
        statement = job.receive(native("n = 0\nfor i in range(9): n += i", 1), 0.0)
        assert statement is not None
        statement.settle(Verdict(ms=10_000))
        verdict.append(statement.advance(None, recorded).verdict)
    live, replayed = verdict
    assert (live.status, replayed.status) == (VerdictStatus.TIMEOUT, VerdictStatus.OK)
    assert live.digest == replayed.digest != ""


def test_a_declared_timeout_keeps_its_digest_only_when_live(run: Run) -> None:
    """A recorded timeout is obeyed although the stretch could end well here."""
    loop = run("x = 1", "x = 2", "print(x)")
    index = [i for i, entry in enumerate(loop.history) if entry.kind == "verdict"][1]
    timeout = Verdict(status=VerdictStatus.TIMEOUT, digest=verdicts(loop)[1].digest, ms=1200)
    history = [
        *loop.history[:index],
        Entry("verdict", timeout.model_dump_json()),
        loop.history[index + 1],
    ]
    again = replace(loop.again(), history=history).run()
    assert again.executions[1].status is ExecutionStatus.TIMEOUT
    assert again.executions[2].stdout == "1\n"


@pytest.mark.parametrize(
    "source",
    [
        "take('x' * 600_000)",
        "take('x' * 10_000_000)",
        "take(list(range(150_000)))",
        "open('x' * 600_000)",
        "view('x' * 5_000)",
        "view('a.txt', pos='/' + 'x' * 5_000)",
        "finish('x' * 600_000)",
        "finish([['x' * 100] * 1000] * 100)",
        "take(['abcdefghij'] * 99_000)",
        "take([1 << 3_000] * 90_000)",
    ],
)
def test_what_is_too_large_for_a_record_does_not_leave_the_statement(run: Run, source: str) -> None:
    """Temporal would refuse the payload, and the job would hang: it is a ValueError instead, or the
    memory is full.
    """
    exception = run(source, "print(1)").executions[0].exception
    assert exception is not None
    assert exception.type in ("ValueError", "RuntimeError")


KEYED = "from enum import Enum\nclass Color(Enum):\n    RED = 1\nx = {Color.RED: 2}\n"


@pytest.mark.parametrize(
    ("way", "told"),
    [
        ("x", "<an object of a class, as a key of a dict or in a set, cannot leave the statement"),
        ("take([x])", "TypeError: take(): an object of a class"),
        ("take({Color.RED})", "TypeError: take(): an object of a class"),
        ("finish(x)", "TypeError: finish(): an object of a class"),
        ("import statistics\nstatistics.mean(x)", "TypeError: the call: an object of a class"),
        ("print(x)", "{<Color.RED: 1>: 2}"),
    ],
)
def test_what_the_host_cannot_hold_leaves_by_no_way(run: Run, way: str, told: str) -> None:
    """To the host an object of the sandbox has no hash: that is an error of the statement, of which
    its variables are left, and no failure of the task.
    """
    first, second = run(KEYED + way, "print(x[Color.RED])").executions[:2]
    error = first.exception
    assert (f"{error.type}: {error.message}" if error else first.stdout).startswith(told)
    assert second.stdout == "2\n"


@pytest.mark.parametrize("number", ["1e9999999", "1e-9999999", "-1e100001, Decimal('1e100001')"])
def test_a_decimal_that_the_host_would_write_out_is_a_timeout(run: Run, number: str) -> None:
    """Nothing stops the host in the midst of it: it would take minutes, and all memory."""
    number = number.replace(", ", "'), ", 1).removesuffix("')")
    source = (
        f"import statistics\nfrom decimal import Decimal\nstatistics.mean([Decimal('{number}')])"
    )
    loop = run(source, "print(statistics.mean([Decimal('1e99'), Decimal('inf')]))")
    assert verdicts(loop)[0].status is VerdictStatus.TIMEOUT
    assert loop.executions[0].exception is not None


DOUBLED = "x = []\nfor _ in range(26): x = [x, x]\n"
"""A value of 27 lists that is one of 67 million where sharing is not seen."""

SHOWN = "<list too large to be shown: print a part of it>\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "shown"),
    [
        ("x", SHOWN),
        ("def f(): return x\nf()", SHOWN),
        ("(x, x)", SHOWN.replace("list", "tuple")),
        ("{1: x}", SHOWN.replace("list", "dict")),
        ("[1 << 3_000] * 90_000", SHOWN),
        ("[ValueError('x' * 1_000_000)] * 90_000", SHOWN),
        ("take(x)", "ValueError"),
        ("take(value={'a': x})", "ValueError"),
        ("finish(x)", "ValueError"),
        ("print(x)", "TimeoutError"),
        pytest.param("y = repr(x)", "TimeoutError", marks=pytest.mark.slow),
        pytest.param("raise ValueError(str(x))", "TimeoutError", marks=pytest.mark.slow),
        pytest.param("assert x == 1, x", "TimeoutError", marks=pytest.mark.slow),
        ("y = [x]", ""),
    ],
)
def test_what_holds_itself_many_times_leaves_by_no_way(run: Run, way: str, shown: str) -> None:
    """It crosses with its sharing, is counted by the paths through it, and is refused before
    anything walks them all.

    What walks them inside the sandbox is bounded by its processor time. The job goes on, and a
    replay comes to the same.
    """
    loop = run(DOUBLED + way, "print(1)")
    first, second = loop.executions[:2]
    assert second.stdout == "1\n"
    told = (first.exception.type if first.exception else "") or first.stdout
    assert told in ({shown, "MemoryError"} if shown == "TimeoutError" else {shown})


UNROLLED = "x = 0\nwhile x == 0:\n" + "".join(
    f"    y{i} = x if x else 'a'\n    x = (y{i}, x)\n" for i in range(30)
)


@pytest.mark.slow
def test_no_check_outlives_its_limit(run: Run) -> None:
    """Loops that the checker unrolls run unchecked, and the record says so."""
    loop = run("x = 1", UNROLLED + "print(len(x))", "y = 1")
    assert loop.executions[1].stdout == "2\n"
    assert [verdict.checked for verdict in verdicts(loop)] == [
        Checked.PASSED,
        Checked.GAVE_UP,
        Checked.PASSED,
        Checked.PASSED,
    ]
    assert [execution.unchecked for execution in loop.executions] == [False, True, False, False]
    assert [execution.archived().get("unchecked") for execution in loop.executions] == [
        None,
        True,
        None,
        None,
    ]
