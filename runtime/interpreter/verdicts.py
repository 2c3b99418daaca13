"""Verdicts: what is made durable of a stretch, because computing it again might not give the same (DESIGN.md section 4)."""

from __future__ import annotations

from enum import StrEnum

from runtime.interpreter import output, pool
from runtime.interpreter.records import ExceptionInfo
from runtime.values import Compact

_UNDONE = "The variables and context objects are as they were before the statement."


KEPT = "kept"


class VerdictStatus(StrEnum):
    """How a stretch ended. All but ``OK`` end the statement and take it back.

    ``MEMORY``: it used too much, or (detail ``KEPT``) left variables that weigh too much. ``NAMES``: it bound a name of the contract; ``ATTRIBUTES``: it assigned an attribute of a handle.
    """

    OK = "ok"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    OUTPUT = "output"
    NAMES = "names"
    ATTRIBUTES = "attributes"
    MEMORY = "memory"


class Checked(StrEnum):
    """What the type checker had to say before the stretch: nothing asked or no answer in time, no objection that refuses, or one.

    ``UNKNOWN`` stands for a stretch of which only the outcome is known, and is never recorded.
    """

    NO = "no"
    PASSED = "passed"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Verdict(Compact):
    """What is made durable of a stretch.

    ``ms`` is the live compute time, without the check and without what it takes to restore and keep the session; ``digest`` that of the outcome, empty if there is none to come back to;
    ``warned`` is what the checker noted without refusing the statement;
    ``detail`` names what a ``NAMES`` or ``ATTRIBUTES`` verdict is about.
    """

    status: VerdictStatus = VerdictStatus.OK
    digest: str = ""
    ms: int = 0
    checked: Checked = Checked.NO
    warned: str = ""
    detail: str = ""


class InterpreterDrift(Exception):
    """A replayed stretch gave another outcome than the recorded one. Fails the workflow task, never the job."""


def exception_of(verdict: Verdict) -> ExceptionInfo:
    """What the model is told of a verdict that ended its statement."""
    match verdict.status:
        case VerdictStatus.TIMEOUT:
            type_, what = (
                "TimeoutError",
                f"the statement computed for more than {pool.DECLARED_SECONDS:g} s and was stopped",
            )
        case VerdictStatus.OUTPUT:
            type_, what = (
                "MemoryError",
                f"the statement printed more than {output.OUTPUT_LIMIT_CHARS} characters and was stopped",
            )
        case VerdictStatus.MEMORY:
            used = f"used more than {pool.MAX_MEMORY_BYTES >> 20} MB of memory"
            kept = f"left variables that take more than {pool.MAX_SESSION_BYTES >> 20} MB together"
            type_, what = "MemoryError", f"the statement {kept if verdict.detail == KEPT else used}"
        case VerdictStatus.NAMES:
            type_, what = (
                "NameError",
                f"{verdict.detail} cannot be assigned: the job needs the name; choose another one",
            )
        case VerdictStatus.ATTRIBUTES:
            type_, what = (
                "AttributeError",
                f"an attribute of {verdict.detail} was assigned: attributes of handles are read-only; "
                "call methods to change a node (SetPos, SetTokens, SetLod, ...)",
            )
        case _:
            type_, what = "RuntimeError", "the interpreter crashed or ran out of memory"
    return ExceptionInfo(type=type_, message=f"{what}. {_UNDONE}")
