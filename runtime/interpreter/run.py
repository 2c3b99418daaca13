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
from typing import cast, get_args

from pydantic_monty import (
    ExcType,
    FunctionSnapshot,
    MontyComplete,
    MontyCrashedError,
    MontyError,
    MontySession,
    MontySyntaxError,
    NameLookupSnapshot,
    SyncSnapshot,
)

from runtime.digests import digest_of
from runtime.interpreter import namespace, output, pool, typecheck
from runtime.interpreter.bounds import TOO_LARGE, too_large
from runtime.interpreter.echo import echo
from runtime.interpreter.handles import HANDLE_TYPES, Handles
from runtime.interpreter.host import Answer, Effect, Failure, Given, Host, NotHandled
from runtime.interpreter.objections import explained
from runtime.interpreter.os_values import VIRTUAL_ROOT
from runtime.interpreter.records import ExceptionInfo
from runtime.interpreter.stopwatch import Stopwatch
from runtime.interpreter.verdicts import KEPT, Checked, InterpreterDrift, Verdict, VerdictStatus, exception_of

__all__ = ["InterpreterDrift", "Session", "StatementRun", "Stretch", "Verdict", "VerdictStatus"]

_EXCEPTIONS = frozenset(get_args(ExcType))
_MESSAGE_CHARS = 2_000
_FEED_NAME = re.compile(r"<python-input-\d+>")
_MEMORY_LIMIT = re.compile(r"memory limit exceeded: \d+ bytes > ")
_TIME_LIMIT = re.compile(r"(feed|turn) time limit exceeded")
_GONE = (MontyError, RuntimeError)
"""What a session raises that cannot go on; ``RuntimeError`` says that its process has ended."""


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


class _TakenBack(Exception):
    """The session cannot be kept as it is: the statement ends by a verdict."""

    def __init__(self, status: VerdictStatus, detail: str = "") -> None:
        super().__init__(status)
        self.status, self.detail = status, detail


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
    shown_chars: int = output.SHOWN_CHARS
    spent_ms: int = 0
    parts: list[tuple[str, str]] = field(default_factory=list)
    exception: ExceptionInfo | None = None
    session: Session | None = None
    _waiting: bytes | None = None
    _effect: Effect | None = None
    _printed: int = 0
    _ms: int = 0
    _weight: int = 0
    _warnings: str = ""

    def advance(self, answer: Answer | None = None, recorded: Verdict | None = None) -> Stretch:
        """Run the next stretch: from the start, or from the effect that ``answer`` answers.

        ``recorded`` is the ok verdict of this stretch when it is replayed: time is not measured then, and a check that it
        passed is not repeated.
        """
        checked = self._check(recorded) if self._waiting is None else Checked.NO
        # A verdict without a digest tells of another run of the statement: what is not its time is found out anew.
        replayed = recorded is not None and bool(recorded.digest)
        self._ms = self._weight = 0
        status, detail = VerdictStatus.OK, ""
        if checked is not Checked.REFUSED:
            try:
                self._effect, self._waiting = self._run(answer, replay=replayed)
            except _TakenBack as taken:
                self._effect = self._waiting = None
                status, detail = taken.status, taken.detail
        if self._printed > output.OUTPUT_LIMIT_CHARS:
            status = VerdictStatus.OUTPUT
        digest = self._digest() if status is VerdictStatus.OK else ""
        if recorded is None and digest and self.spent_ms + self._ms > pool.DECLARED_SECONDS * 1000:
            status = VerdictStatus.TIMEOUT
        elif not replayed and digest and self._weight > pool.MAX_SESSION_BYTES:
            status, detail = VerdictStatus.MEMORY, KEPT
        warned = self._warnings if checked is Checked.PASSED else ""
        verdict = Verdict(status=status, digest=digest, ms=self._ms, checked=checked, warned=warned, detail=detail)
        return Stretch(verdict=verdict, effect=self._effect)

    def settle(self, verdict: Verdict) -> None:
        """Take the durable verdict of the stretch that just ran."""
        self.spent_ms += verdict.ms
        if verdict.status is not VerdictStatus.OK:
            self.abort(verdict)

    def abort(self, verdict: Verdict) -> None:
        """End the statement as ``verdict`` says, with the session as it was before the statement."""
        self.session, self._waiting, self._effect = self.before, None, None
        self.parts.clear()
        self.exception = exception_of(verdict)

    @property
    def finished(self) -> bool:
        """Whether the statement has ended."""
        return self.session is not None

    def stdout(self) -> str:
        """The statement's bounded standard output, with what ``show`` displayed."""
        return output.bounded(output.joined(self.parts, "stdout"), self.shown_chars)

    def stderr(self) -> str:
        """The statement's bounded standard error."""
        return output.bounded(output.joined(self.parts, "stderr"), self.shown_chars)

    def _check(self, recorded: Verdict | None) -> Checked:
        """Ask the type checker, unless the recorded stretch tells that it had no objection.

        Raises:
            GaveUp: if the checker has no time now for the objection that it had: whatever called must try again later.
        """
        if recorded is not None and recorded.checked not in {Checked.REFUSED, Checked.UNKNOWN}:
            self._warnings = recorded.warned
            return recorded.checked
        names = {name: info.type for name, info in self.before.names.variables.items()}
        try:
            said = typecheck.check(self.source, self.stubs, names, HANDLE_TYPES)
        except typecheck.GaveUp:
            if recorded is not None and recorded.checked is Checked.REFUSED:
                raise
            return Checked.NO
        if said.refusal is None:
            self._warnings = said.warnings
            return Checked.PASSED
        self.exception, self.session = said.refusal, self.before
        return Checked.REFUSED

    def _run(self, answer: Answer | None, *, replay: bool) -> tuple[Effect | None, bytes | None]:
        handles = Handles(self.obj_ids())
        with pool.session(seed=self.seed, replay=replay) as session:
            snapshot = self._loaded(session)
            watch = Stopwatch()
            try:
                if snapshot is None:
                    snapshot = session.feed_start(self.source, print_callback=self._print, cwd=VIRTUAL_ROOT)
                elif answer is not None:
                    snapshot = _resume(snapshot, answer, handles)
                effect = self._drive(snapshot, handles)
            except MontyCrashedError as crash:
                pool.raise_if_stopped(crash)
                status = VerdictStatus.TIMEOUT if crash.timed_out else VerdictStatus.CRASHED
                raise _TakenBack(status) from crash
            except MontyError as error:
                self.exception, effect = explained(_exception(error), self._warnings), None
                if _TIME_LIMIT.match(self.exception.message):
                    raise _TakenBack(VerdictStatus.TIMEOUT) from error
                # Not left to the statement as an exception: its text tells bytes that are others in another process.
                if self.exception.type == "MemoryError" and _MEMORY_LIMIT.match(self.exception.message):
                    raise _TakenBack(VerdictStatus.MEMORY) from error
            finally:
                self._ms = watch.milliseconds
            try:
                if effect is not None:
                    waiting = session.dump()
                    self._weight = len(waiting)
                    return effect, waiting
                self.session = self._listed(session, handles)
            except _GONE as error:
                pool.raise_if_stopped(error)
                raise _TakenBack(VerdictStatus.CRASHED) from error
        return None, None

    def _loaded(self, session: MontySession) -> SyncSnapshot | None:
        """The session as the last stretch left it: the suspended statement, or None before the statement's start."""
        try:
            if self._waiting is not None:
                return session.load_snapshot(self._waiting, print_callback=self._print)
            if self.before.dump is None:
                session.feed_run(namespace.PRELUDE)
            else:
                session.load_session(self.before.dump)
        except _GONE as error:
            pool.raise_if_stopped(error)
            raise _TakenBack(VerdictStatus.CRASHED) from error
        return None

    def _listed(self, session: MontySession, handles: Handles) -> Session:
        # The interpreter keeps the source of all it is fed: what is listed after the dump does not add to it.
        dump = session.dump()
        self._weight = len(dump)
        listing = handles.incoming(session.feed_run(namespace.LISTING))
        if taken := namespace.taken(listing, self.hidden):
            raise _TakenBack(VerdictStatus.NAMES, ", ".join(taken))
        if altered := namespace.altered(listing):
            raise _TakenBack(VerdictStatus.ATTRIBUTES, ", ".join(altered))
        return Session(dump=dump, names=namespace.parse(listing, self.hidden))

    def _drive(self, snapshot: SyncSnapshot, handles: Handles) -> Effect | None:
        """Answer host calls until the statement ends or one is an effect."""
        while not isinstance(snapshot, MontyComplete):
            answer = self._ask(snapshot, handles)
            self._show(self.host.take_output())
            if isinstance(answer, Effect):
                return answer
            snapshot = _resume(snapshot, answer, handles)
        self._show(echo(snapshot, handles))
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
        if too_large((snapshot.args, snapshot.kwargs)):
            return Failure("ValueError", f"{snapshot.function_name}(): the arguments are {TOO_LARGE}")
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
        return ExceptionInfo(type="SyntaxError", message=output.bounded(str(error), _MESSAGE_CHARS))
    trace = error.display() if hasattr(error, "display") else ""
    # The text has the name that the traceback has; the object is another where Python's class takes more than a message.
    named = str(error).partition(":")[0].rpartition(".")[2]
    return ExceptionInfo(
        type=named if named.isidentifier() else type(inner).__name__,
        message=output.bounded(str(inner), _MESSAGE_CHARS),
        trace_summary=output.bounded(_FEED_NAME.sub("<statement>", trace), _MESSAGE_CHARS),
    )
