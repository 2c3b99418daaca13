"""Verdicts: what is made durable of a stretch, because computing it again might not give the same
(docs/design.md section 4).
"""

from __future__ import annotations

from enum import StrEnum

from runtime.base.values import Compact
from runtime.interpreter import output, pool
from runtime.interpreter.crashes import KILLS
from runtime.interpreter.executions import ExceptionInfo

_UNDONE = "The variables and context objects are as they were before the statement."

KEPT = "kept"
"""The detail of a ``MEMORY`` verdict on variables that weigh too much."""

KILLED = "killed"
"""The detail of a ``CRASHED`` verdict on a process that was killed again and again."""

KEEPING = "keeping"
"""The detail of a ``MEMORY`` verdict on variables for which there is not enough memory to save
them.
"""


class VerdictStatus(StrEnum):
    """How a stretch ended. All but ``OK`` end the statement and take it back.

    ``TIMEOUT``: it took too much processor time. ``CALLS``: it asked too much of the host.
    ``CRASHED``: the interpreter did, twice, or (detail ``KILLED``) was killed more often.
    ``MEMORY``: it used too much, or (detail ``KEPT`` or ``KEEPING``) left variables that weigh too
    much. ``NAMES``: it bound a name of the contract; ``ATTRIBUTES``: it assigned an attribute of a
    handle.
    """

    OK = "ok"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    OUTPUT = "output"
    CALLS = "calls"
    NAMES = "names"
    ATTRIBUTES = "attributes"
    MEMORY = "memory"


class Checked(StrEnum):
    """What the type checker had to say before the stretch: nothing asked, no objection that
    refuses, one, or that it takes too long.

    Only the first stretch of a statement is checked. ``NO`` in one of an older history may be
    ``GAVE_UP``. ``UNKNOWN`` stands for a stretch of which only the outcome is known, and is never
    recorded.
    """

    NO = "no"
    GAVE_UP = "gave_up"
    PASSED = "passed"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Verdict(Compact):
    """What is made durable of a stretch.

    ``ms`` is the processor time that it took when live, of the interpreter and of what it called,
    without the check and without what it takes to restore and keep the session; ``digest`` that of
    the outcome, empty if there is none to come back to; ``warned`` is what the checker noted
    without refusing the statement; ``detail`` names what a ``NAMES`` or ``ATTRIBUTES`` verdict is
    about. ``cut`` is the number of calls after which the stretch was cut, because it is long; 0 for
    one that ends at an effect or with the statement. ``refusal`` is what a ``REFUSED`` statement
    is told, bounded; None in records of before: the checker is asked for it again.
    """

    status: VerdictStatus = VerdictStatus.OK
    digest: str = ""
    ms: int = 0
    checked: Checked = Checked.NO
    warned: str = ""
    detail: str = ""
    cut: int = 0
    refusal: ExceptionInfo | None = None


class InterpreterDrift(Exception):
    """A replayed stretch gave another outcome than the recorded one.

    Fails the workflow task, never the job.
    """


def exception_of(verdict: Verdict) -> ExceptionInfo:
    """What the model is told of a verdict that ended its statement."""
    type_, what = _told(verdict)
    return ExceptionInfo(type=type_, message=f"{what}. {_UNDONE}")


def ended_by(told: ExceptionInfo) -> Verdict | None:
    """The verdict of which an execution tells, if it is one that another process might not come to:
    how much memory is taken depends on it a little, who kills one is no matter of statements, and
    one that printed too much runs on until its time is over, which nobody measures there.

    None of an exception that a statement raised: that has a traceback, whatever it says.
    """
    return next((verdict for verdict in _OF_THE_PROCESS if exception_of(verdict) == told), None)


_OF_THE_PROCESS = (
    Verdict(status=VerdictStatus.CRASHED),
    Verdict(status=VerdictStatus.CRASHED, detail=KILLED),
    Verdict(status=VerdictStatus.MEMORY),
    Verdict(status=VerdictStatus.MEMORY, detail=KEPT),
    Verdict(status=VerdictStatus.MEMORY, detail=KEEPING),
    Verdict(status=VerdictStatus.OUTPUT),
)


def _told(verdict: Verdict) -> tuple[str, str]:
    """The type of the exception, and what happened."""
    match verdict.status:
        case VerdictStatus.TIMEOUT:
            return (
                "TimeoutError",
                (
                    f"the statement computed for more than {pool.DECLARED_SECONDS:g} s of processor"
                    " time, the calls that it made included, and was stopped"
                ),
            )
        case VerdictStatus.CALLS:
            return (
                "RuntimeError",
                (
                    "the statement called functions, methods and attributes of the context more"
                    f" than {pool.MAX_CALLS:,} times and was stopped"
                ),
            )
        case VerdictStatus.OUTPUT:
            limit = output.OUTPUT_LIMIT_CHARS
            return (
                "MemoryError",
                f"the statement printed more than {limit} characters and was stopped",
            )
        case VerdictStatus.MEMORY:
            return "MemoryError", f"the statement {_memory(verdict.detail)}"
        case VerdictStatus.NAMES:
            return (
                "NameError",
                f"{verdict.detail} cannot be assigned: the job needs the name; choose another one",
            )
        case VerdictStatus.ATTRIBUTES:
            return (
                "AttributeError",
                (
                    f"an attribute of {verdict.detail} was assigned: attributes of handles are"
                    " read-only; call methods to change a node (SetPos, SetTokens, SetLod, ...)"
                ),
            )
        case _ if verdict.detail == KILLED:
            told = f"the interpreter's process was killed in the statement, {KILLS} times"
            return "RuntimeError", told
        case _:
            return "RuntimeError", "the interpreter's process crashed in the statement, twice"


def _memory(detail: str) -> str:
    limit = pool.MAX_MEMORY_BYTES >> 20
    if detail == KEPT:
        return f"left variables that take more than {pool.MAX_SESSION_BYTES >> 20} MB together"
    if detail == KEEPING:
        return (
            "left variables too large to be kept: they and what it takes to save them need more"
            f" than {limit} MB"
        )
    return f"used more than {limit} MB of memory"
