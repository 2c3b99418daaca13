"""One statement, run in stretches: from the start or a resumption to the next effect or the end (DESIGN.md section 4).

A stretch computes the same outcome from the same state and answers, but for the time limit: what is too slow here may be
fast enough there. So each stretch gives a ``Verdict``, which the workflow makes durable before it acts on the outcome. When
replaying, the recorded verdict is read first: one that ends the statement is obeyed without running anything
(``abort``), an ok runs the stretch and must give the recorded digest.

A statement that ends by a verdict (timeout, crash, too much output) leaves the namespace and the nodes as they were
before it. One that raises an exception keeps what it did until then, as in any Python session.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast, get_args

from pydantic_monty import (
    ExcType,
    FunctionSnapshot,
    MontyClassProxy,
    MontyComplete,
    MontyCrashedError,
    MontyError,
    MontySession,
    MontySyntaxError,
    NameLookupSnapshot,
    SyncSnapshot,
)

from runtime.context.outcomes import NodeRef
from runtime.digests import digest_of
from runtime.interpreter import namespace, output, pool, typecheck
from runtime.interpreter.handles import HANDLE_TYPES, Handles
from runtime.interpreter.host import Answer, Effect, Failure, Given, Host, NotHandled
from runtime.interpreter.os_values import VIRTUAL_ROOT
from runtime.interpreter.records import ExceptionInfo
from runtime.interpreter.stopwatch import Stopwatch
from runtime.values import Value

_EXCEPTIONS = frozenset(get_args(ExcType))
_TRACE_CHARS = 2_000
_FEED_NAME = re.compile(r"<python-input-\d+>")
_TIME_LIMIT = re.compile(r"(feed|turn) time limit exceeded")


class InterpreterDrift(Exception):
    """A replayed stretch gave another outcome than the recorded one. Fails the workflow task, never the job."""


class VerdictStatus(StrEnum):
    """How a stretch ended, as far as time and resources go."""

    OK = "ok"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    OUTPUT = "output"


class Verdict(Value):
    """What is made durable of a stretch. ``ms`` is the live compute time; ``digest`` that of the outcome of an ok one."""

    status: VerdictStatus = VerdictStatus.OK
    digest: str = ""
    ms: int = 0


@dataclass(frozen=True)
class Session:
    """The interpreter between statements: its dump (None before the first statement) and its namespace."""

    dump: bytes | None = None
    names: namespace.Namespace = namespace.EMPTY


@dataclass(frozen=True)
class Stretch:
    """The outcome of one stretch: its verdict, and the effect it waits for if the statement has not ended."""

    verdict: Verdict
    effect: Effect | None = None


class _OutOfLimits(Exception):
    """The stretch went past a limit after which the session cannot be kept."""

    def __init__(self, status: VerdictStatus) -> None:
        super().__init__(status)
        self.status = status


@dataclass
class StatementRun:
    """The run of one statement. The workflow calls ``advance`` for each stretch, or ``abort`` when a verdict says so."""

    source: str
    before: Session
    host: Host
    stubs: str
    seed: str
    obj_ids: Callable[[], Iterable[str]]
    hidden: frozenset[str]
    spent_ms: int = 0
    parts: list[tuple[str, str]] = field(default_factory=list)
    exception: ExceptionInfo | None = None
    session: Session | None = None
    _waiting: bytes | None = None
    _effect: Effect | None = None
    _printed: int = 0

    def advance(self, answer: Answer | None = None) -> Stretch:
        """Run the next stretch: from the start, or from the effect that ``answer`` answers."""
        watch = Stopwatch()
        status = VerdictStatus.OK
        try:
            self._effect, self._waiting = self._run(answer)
        except MontyCrashedError as crash:
            self._effect = self._waiting = None
            status = VerdictStatus.TIMEOUT if getattr(crash, "timed_out", False) else VerdictStatus.CRASHED
        except _OutOfLimits as exceeded:
            self._effect = self._waiting = None
            status = exceeded.status
        ms = watch.milliseconds
        if status is VerdictStatus.OK and self.spent_ms + ms > pool.DECLARED_SECONDS * 1000:
            status = VerdictStatus.TIMEOUT
        if self._printed > output.OUTPUT_LIMIT_CHARS:
            status = VerdictStatus.OUTPUT
        digest = self._digest() if status is VerdictStatus.OK else ""
        return Stretch(verdict=Verdict(status=status, digest=digest, ms=ms), effect=self._effect)

    def settle(self, verdict: Verdict) -> None:
        """Take the durable verdict of the stretch that just ran."""
        self.spent_ms += verdict.ms
        if verdict.status is not VerdictStatus.OK:
            self.abort(verdict)

    def abort(self, verdict: Verdict) -> None:
        """End the statement as ``verdict`` says, with the session as it was before the statement."""
        self.session, self._waiting, self._effect = self.before, None, None
        self.parts.clear()
        self.exception = _verdict_exception(verdict)

    @property
    def finished(self) -> bool:
        """Whether the statement has ended."""
        return self.session is not None

    def stdout(self) -> str:
        """The statement's bounded standard output, with what ``show`` displayed."""
        return output.bounded(output.joined(self.parts, "stdout"))

    def stderr(self) -> str:
        """The statement's bounded standard error."""
        return output.bounded(output.joined(self.parts, "stderr"))

    def _run(self, answer: Answer | None) -> tuple[Effect | None, bytes | None]:
        handles = Handles(self.obj_ids())
        if self._waiting is None and (problem := self._check()) is not None:
            self.exception, self.session = problem, self.before
            return None, None
        with pool.session(seed=self.seed) as session:
            try:
                effect = self._drive(self._start(session, answer, handles), handles)
            except MontyCrashedError:
                raise
            except MontyError as error:
                self.exception, effect = _exception(error), None
                if _TIME_LIMIT.match(self.exception.message):
                    raise _OutOfLimits(VerdictStatus.TIMEOUT) from error
            if effect is not None:
                return effect, session.dump()
            self.session = self._listed(session)
        return None, None

    def _listed(self, session: MontySession) -> Session:
        try:
            listing = session.feed_run(namespace.LISTING)
        except MontyError as error:
            if isinstance(error, MontyCrashedError):
                raise
            raise _OutOfLimits(VerdictStatus.CRASHED) from error
        return Session(dump=session.dump(), names=namespace.parse(listing, self.hidden))

    def _check(self) -> ExceptionInfo | None:
        names = {name: info.type for name, info in self.before.names.variables.items()}
        return typecheck.check(self.source, self.stubs, names, HANDLE_TYPES)

    def _start(self, session: MontySession, answer: Answer | None, handles: Handles) -> SyncSnapshot:
        if self._waiting is not None and answer is not None:
            snapshot = session.load_snapshot(self._waiting, print_callback=self._print)
            return _resume(snapshot, answer, handles)
        if self.before.dump is None:
            session.feed_run(namespace.PRELUDE)
        else:
            session.load_session(self.before.dump)
        return session.feed_start(self.source, print_callback=self._print, cwd=VIRTUAL_ROOT)

    def _drive(self, snapshot: SyncSnapshot, handles: Handles) -> Effect | None:
        """Answer host calls until the statement ends or one is an effect."""
        while not isinstance(snapshot, MontyComplete):
            answer = self._ask(snapshot, handles)
            self._show(self.host.take_output())
            if isinstance(answer, Effect):
                return answer
            snapshot = _resume(snapshot, answer, handles)
        self._show(_echo(snapshot, handles))
        return None

    def _print(self, stream: str, text: str) -> None:
        """Keep what is printed, up to the limit. Output is flushed before each host call, so the order is right."""
        self._printed += len(text)
        if self._printed <= output.OUTPUT_LIMIT_CHARS:
            self.parts.append((stream, text))

    def _show(self, text: str) -> None:
        if text:
            self._print("stdout", text if text.endswith("\n") else text + "\n")

    def _ask(self, snapshot: SyncSnapshot, handles: Handles) -> Answer | Effect:
        if isinstance(snapshot, NameLookupSnapshot):
            if snapshot.object_id is None:
                return self.host.name(snapshot.variable_name)
            obj_id = handles.obj_id(snapshot.object_id)
            return self.host.attribute(obj_id, snapshot.variable_name) if obj_id else NotHandled()
        if not isinstance(snapshot, FunctionSnapshot):
            raise InterpreterDrift("a statement waits for futures, and the host makes none")
        args, kwargs = handles.incoming(snapshot.args), handles.incoming(snapshot.kwargs)
        if snapshot.is_os_function:
            return self.host.system(snapshot.function_name, args, kwargs)
        if snapshot.object_id is None:
            return self.host.function(snapshot.function_name, args, kwargs)
        obj_id = handles.obj_id(snapshot.object_id)
        if obj_id is None:
            return Failure("RuntimeError", "this handle belongs to no node of the job")
        return self.host.method(obj_id, snapshot.function_name, args, kwargs)

    def _digest(self) -> str:
        names = self.session.names.digest if self.session is not None else None
        effect = self._effect
        asked = [effect.kind, effect.name, repr(effect.request)] if effect is not None else None
        failed = [self.exception.type, self.exception.message] if self.exception is not None else None
        printed = [output.joined(self.parts, stream) for stream in ("stdout", "stderr")]
        return digest_of([names, asked, failed, printed]).removeprefix("sha256:")[:24]


def _resume(snapshot: SyncSnapshot, answer: Answer, handles: Handles) -> SyncSnapshot:
    if isinstance(snapshot, NameLookupSnapshot):
        return snapshot.resume(value=handles.outgoing(answer.value)) if isinstance(answer, Given) else snapshot.resume()
    if not isinstance(snapshot, FunctionSnapshot):
        raise InterpreterDrift(f"cannot resume {type(snapshot).__name__}")
    match answer:
        case Given(value=value):
            return snapshot.resume({"return_value": handles.outgoing(value)})
        case Failure(type=type_, message=message):
            known = type_ in _EXCEPTIONS
            text = message if known else f"{type_}: {message}"
            return snapshot.resume({"exc_type": cast("ExcType", type_ if known else "RuntimeError"), "message": text})
        case _:
            return snapshot.resume_not_handled()


def _exception(error: MontyError) -> ExceptionInfo:
    inner = error.exception()
    if isinstance(error, MontySyntaxError):
        return ExceptionInfo(type="SyntaxError", message=str(error))
    trace = error.display() if hasattr(error, "display") else ""
    return ExceptionInfo(
        type=type(inner).__name__,
        message=str(inner),
        trace_summary=output.bounded(_FEED_NAME.sub("<statement>", trace), _TRACE_CHARS),
    )


def _verdict_exception(verdict: Verdict) -> ExceptionInfo:
    undone = "The variables and context objects are as they were before the statement."
    match verdict.status:
        case VerdictStatus.TIMEOUT:
            return ExceptionInfo(
                type="TimeoutError",
                message=f"the statement computed for more than {pool.DECLARED_SECONDS:g} s and was stopped. {undone}",
            )
        case VerdictStatus.OUTPUT:
            return ExceptionInfo(
                type="MemoryError",
                message=f"the statement printed more than {output.OUTPUT_LIMIT_CHARS} characters and was stopped. {undone}",
            )
        case _:
            return ExceptionInfo(type="RuntimeError", message=f"the interpreter crashed or ran out of memory. {undone}")


def _echo(complete: MontyComplete, handles: Handles) -> str:
    """The value of the statement's last expression, as an interactive session would show it."""
    try:
        value = handles.incoming(complete.output)
    except (ValueError, TypeError, RecursionError) as error:
        return f"<value cannot be shown: {error}>"
    if value is None or isinstance(value, str):
        return value or ""
    return "" if isinstance(value, NodeRef) else _text(value)


def _text(value: Any) -> str:
    """``repr`` that does not depend on the process: sets are sorted and sandbox objects are named by their class."""
    match value:
        case list():
            return "[" + ", ".join(map(_text, value)) + "]"
        case tuple() if type(value) is tuple:
            return "(" + ", ".join(map(_text, value)) + ("," if len(value) == 1 else "") + ")"
        case dict():
            return "{" + ", ".join(f"{_text(key)}: {_text(item)}" for key, item in value.items()) + "}"
        case set() | frozenset():
            return "{" + ", ".join(sorted(map(_text, value))) + "}" if value else f"{type(value).__name__}()"
        case NodeRef(obj_id=obj_id):
            return f"<{obj_id}>"
        case MontyClassProxy():
            return f"<{value.name} object>"
        case _:
            try:
                return repr(value)
            except ValueError as error:
                return f"<{type(value).__name__}: {error}>"
