"""A statement's verdict tells of the statement: not of how busy the machine is, and not of what
befell a process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from plain_loop import PlainLoop, Run, statements
from pydantic_monty import MontySession

from runtime.interpreter import checker, pool, run
from runtime.interpreter.crashes import KILLS
from runtime.interpreter.executions import ExecutionStatus
from runtime.interpreter.job_host import JobHost
from runtime.interpreter.objections import NO_OBJECTION
from runtime.interpreter.run import Verdict, VerdictStatus
from runtime.worker import worker

COMPUTES = "n = 0\nwhile n < 300_000: n += 1\nprint(n)"


def verdicts(loop: PlainLoop) -> list[Verdict]:
    """The recorded verdicts."""
    return [
        Verdict.model_validate_json(entry.value)
        for entry in loop.history
        if entry.kind == "verdict"
    ]


@pytest.fixture
def on_checkout(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Callable[[int], None]]]:
    """What is done, once each, to the processes of the next checkouts, with their ids, as they are
    to compute: they are stopped.
    """
    todo: list[Callable[[int], None]] = []
    real = pool.pid_of

    def pid_of(session: MontySession) -> int:
        pid = real(session)
        if todo and computing(session):
            # It does not come to the statement's end before what is done to it.
            os.kill(pid, signal.SIGSTOP)
            threading.Thread(target=todo.pop(0), args=(pid,)).start()
        return pid

    monkeypatch.setattr(pool, "pid_of", pid_of)
    yield todo
    assert todo == []


def computing(session: MontySession) -> bool:
    """Whether what follows is the statement, not what restores the session before it."""
    with contextlib.suppress(RuntimeError):
        return bool(session.feed_run("'holdfast_repr' in locals()"))
    return False


def _paused(pid: int) -> None:
    """A process that gets no processor for longer than a statement may compute."""
    time.sleep(pool.HARD_SECONDS + 0.5)
    os.kill(pid, signal.SIGCONT)


def _stopped(pid: int) -> None:
    del pid


def _aborted(pid: int) -> None:
    os.kill(pid, signal.SIGABRT)
    os.kill(pid, signal.SIGCONT)


def _killed(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_waiting_for_a_processor_is_not_computing(
    workspace: Path, on_checkout: list[Callable[[int], None]]
) -> None:
    """A statement that had no processor for longer than its limit ends well."""
    on_checkout.append(_paused)
    loop = PlainLoop(workspace, statements(COMPUTES)).run()
    assert loop.executions[0].stdout == "300000\n"
    assert verdicts(loop)[0].status is VerdictStatus.OK
    assert verdicts(loop)[0].ms < 1000


def test_a_process_that_does_not_answer_gives_no_verdict(
    workspace: Path, on_checkout: list[Callable[[int], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task is tried again, and comes to what the statement comes to."""
    pool.close()
    monkeypatch.setattr(pool, "WALL_SECONDS", 0.5)
    on_checkout.append(_stopped)
    with pytest.raises(pool.NoVerdict, match="too little processor time"):
        PlainLoop(workspace, statements(COMPUTES), tasks=1).run()
    pool.close()
    monkeypatch.undo()
    assert PlainLoop(workspace, statements(COMPUTES)).run().executions[0].stdout == "300000\n"


def test_one_crash_is_chance_and_two_are_a_verdict(
    workspace: Path, on_checkout: list[Callable[[int], None]]
) -> None:
    """The second time the statement is told."""
    source = COMPUTES + f"  # {workspace}"
    on_checkout += [_aborted, _aborted]
    with pytest.raises(pool.NoVerdict, match="the interpreter's process ended"):
        PlainLoop(workspace, statements(source), tasks=1).run()
    loop = PlainLoop(workspace, statements(source, "print(1)")).run()
    assert verdicts(loop)[0].status is VerdictStatus.CRASHED
    assert loop.executions[0].exception is not None
    assert loop.executions[0].exception.message.startswith(
        "the interpreter's process crashed in the statement, twice."
    )
    assert loop.executions[1].stdout == "1\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "status", "times"),
    [(COMPUTES, VerdictStatus.OK, 3), ("n = 0\nwhile True: n += 1", VerdictStatus.TIMEOUT, 2)],
)
def test_a_stretch_that_ends_counts_anew(
    workspace: Path,
    on_checkout: list[Callable[[int], None]],
    code: str,
    status: VerdictStatus,
    times: int,
) -> None:
    """Crashes with a good end between them are chance, and so with one by a verdict: what took the
    statement back was no crash.
    """
    source = f"{code}  # {workspace}"
    for _ in range(times):
        on_checkout.append(_aborted)
        with pytest.raises(pool.NoVerdict, match="the interpreter's process ended"):
            PlainLoop(workspace, statements(source), tasks=1).run()
        loop = PlainLoop(workspace, statements(source)).run()
        assert verdicts(loop)[0].status is status


def test_who_kills_from_outside_makes_no_verdict(
    workspace: Path, on_checkout: list[Callable[[int], None]]
) -> None:
    """The kernel may, for want of memory, more than once; one that is killed for ever is told, and
    the next time counts anew.
    """
    source = COMPUTES + f"  # {workspace}"
    on_checkout += [_killed] * KILLS
    for _ in range(KILLS - 1):
        with pytest.raises(pool.NoVerdict, match="the interpreter's process ended"):
            PlainLoop(workspace, statements(source), tasks=1).run()
    loop = PlainLoop(workspace, statements(source, "print(1)")).run()
    assert verdicts(loop)[0].status is VerdictStatus.CRASHED
    assert loop.executions[0].exception is not None
    assert loop.executions[0].exception.message.startswith(
        "the interpreter's process was killed in the statement, 8 times."
    )
    again = PlainLoop(workspace, statements(source)).run()
    assert verdicts(again)[0].status is VerdictStatus.OK


@pytest.mark.slow
def test_the_time_of_calls_counts(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement that has others compute for it is a timeout, too."""
    real = JobHost.attribute

    def slow(self: JobHost, obj_id: str, name: str) -> object:
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass
        return real(self, obj_id, name)

    monkeypatch.setattr(JobHost, "attribute", slow)
    loop = run("foo = view('a.txt')", "for n in range(200): foo.tokens", "print(1)")
    assert loop.executions[1].status is ExecutionStatus.TIMEOUT
    assert loop.executions[1].exception is not None
    assert (
        "1 s of processor time, the calls that it made included"
        in loop.executions[1].exception.message
    )
    assert loop.executions[2].stdout == "1\n"


def test_many_calls_are_cut_into_stretches(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with its verdict; what they come to is as if they were one, and a replay cuts where the
    record did.
    """
    source = (
        "foo = view('a.txt')\nkept = []\nfor n in range(1_000):\n    kept.append(foo.tokens +"
        " n)\nprint(sum(kept))"
    )
    loop = PlainLoop(workspace, statements(source, "print(len(kept))")).run()
    assert [execution.stdout for execution in loop.executions[:2]] == ["2499500\n", "1000\n"]
    assert [verdict.cut for verdict in verdicts(loop)][:11] == [0, *[100] * 9, 0]
    monkeypatch.setattr(run, "CALLS_PER_STRETCH", 7)
    again = loop.replayed()
    assert [execution.stdout for execution in again.executions[:2]] == ["2499500\n", "1000\n"]
    other = PlainLoop(workspace, statements(source, "print(len(kept))")).run()
    assert len(verdicts(other)) > 100
    assert other.turns == loop.turns


def test_output_and_errors_go_on_over_a_cut(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is printed before and after, and an exception that is caught on the other side."""
    source = (
        "foo = view('a.txt')\ntry:\n    for n in range(9):\n        print(n, foo.tokens)\n       "
        " if n == 7: foo.SetLod(99)\nexcept ValueError as e:\n    print('caught', n)"
    )
    whole = PlainLoop(workspace, statements(source)).run()
    monkeypatch.setattr(run, "CALLS_PER_STRETCH", 1)
    cut = PlainLoop(workspace, statements(source)).run()
    assert whole.executions[0].stdout.endswith("7 2000\ncaught 7\n")
    assert cut.executions[0].stdout == whole.executions[0].stdout
    assert len(verdicts(cut)) == len(verdicts(whole)) + 8


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_the_checker_stays_warm_and_remembers_nothing(workspace: Path) -> None:
    """One process for all checks, whose memory stays as it is; a name is unknown that only an
    earlier check bound.
    """
    checker.close()
    stubs = "def search(text: str) -> list[str]: ..."
    check = run.typecheck.check
    assert check("fresh = 1\ndef made(): return 1", stubs, {}, frozenset()) == NO_OBJECTION
    refused = check("made()\nfresh", stubs, {}, frozenset()).refusal
    assert refused is not None
    assert "Name `made` used when not defined" in refused.message
    (warm,) = checker._idle
    pid = warm.session.worker_pid
    assert pid is not None
    for n in range(100):
        assert (
            check(f"x{n} = search('a')\nprint(x{n}[0].upper())", stubs, {"y": "list"}, frozenset())
            == NO_OBJECTION
        )
    before = _resident(pid)
    for n in range(300):
        assert (
            check(f"z{n} = search('a')\nprint(z{n}[0].upper())", stubs, {"y": "list"}, frozenset())
            == NO_OBJECTION
        )
    assert checker._idle == [warm]
    assert warm.session.worker_pid == pid
    assert _resident(pid) - before < 1 << 20


def test_a_checker_that_was_killed_is_replaced(workspace: Path) -> None:
    """A process that ended while it was idle is nobody's fault."""
    checker.close()
    assert run.typecheck.check("1", "", {}, frozenset()) == NO_OBJECTION
    (warm,) = checker._idle
    assert warm.session.worker_pid is not None
    os.kill(warm.session.worker_pid, signal.SIGKILL)
    refused = run.typecheck.check("nobody()", "", {}, frozenset()).refusal
    assert refused is not None
    assert refused.type == "TypeCheckError"


def children() -> set[int]:
    """The processes that this one has started."""
    pids: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        # It may have ended since.
        with contextlib.suppress(OSError):
            pids.update(map(int, (thread / "children").read_text().split()))
    return pids


@contextlib.contextmanager
def all_killed() -> Iterator[None]:
    """Every process that this one starts within the block is killed; those before, such as the
    servers of other tests, live on.
    """
    over = threading.Event()
    spared = children()

    def strike() -> None:
        while not over.is_set():
            for pid in children() - spared:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    striking = threading.Thread(target=strike)
    striking.start()
    try:
        yield
    finally:
        over.set()
        striking.join()


def test_a_process_that_is_killed_as_it_begins_says_nothing() -> None:
    """What needed it is tried again: a worker that starts does without, a check has another one."""
    pool.close()
    checker.close()
    with all_killed():
        # One may come and go before it is struck.
        for _ in range(1_000):
            try:
                with pool.session():
                    pass
            except pool.NoVerdict:
                break
        else:
            pytest.fail("no process was killed as it began")
        worker._warm_interpreters()
        with contextlib.suppress(pool.NoVerdict):
            for n in range(pool.PROCESSES):
                run.typecheck.check("1", f"def f{n}() -> int: ...", {}, frozenset())
    assert checker._open == len(checker._idle)
    refused = run.typecheck.check("nobody()", "", {}, frozenset()).refusal
    assert refused is not None
    with pool.session() as session:
        assert session.feed_run("1 + 1") == 2


def test_more_jobs_than_processes_have_their_checkers() -> None:
    """The one that was idle for longest makes room."""
    for round_ in range(2):
        for n in range(pool.PROCESSES + 3):
            assert (
                run.typecheck.check(
                    f"f{n}({round_})", f"def f{n}(x: int) -> int: ...", {}, frozenset()
                )
                == NO_OBJECTION
            )
    assert len(checker._idle) == pool.PROCESSES
    checker.close()
