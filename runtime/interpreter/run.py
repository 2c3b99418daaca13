"""One statement, run in stretches: from the start or a resumption to the next effect or the end
(docs/design.md section 4).

A stretch computes the same outcome from the same state and answers, but for the time limit: what is
too slow here may be fast enough there. So each stretch gives a ``Verdict``, which the workflow
makes durable before it acts on the outcome. When replaying, the recorded verdict is read first: one
that ends the statement is obeyed without running anything (``abort``), an ok runs the stretch and
must give the recorded digest.

A stretch that asks much of the host is cut after ``CALLS_PER_STRETCH`` calls, and the next goes on
with the call before which it was cut: no workflow task is ever near the SDK's limit. Its verdict
tells the number, so a replay cuts at the same place.

Time is processor time, so how busy the machine is makes no verdict. Where an interpreter ends for
another reason than its statement, or cannot answer, there is none (``pool.NoVerdict``), and the
workflow task is tried again.

A statement that ends by a verdict (timeout, crash, too much output) leaves the namespace and the
nodes as they were before it. One that raises an exception keeps what it did until then, as in any
Python session.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
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

from runtime.base.digests import digest_of
from runtime.base.effect_classes import OUTCOME_UNKNOWN
from runtime.base.os_values import VIRTUAL_ROOT
from runtime.base.redaction.computed import without_keys
from runtime.context.contract import server_type
from runtime.interpreter import (
    checker,
    listing,
    namespace,
    output,
    phrases,
    pool,
    supplied,
    traces,
    typecheck,
)
from runtime.interpreter.bounds import NO_KEY, TOO_LARGE, too_large
from runtime.interpreter.crashes import Crashes, Place
from runtime.interpreter.dialect import Dialect
from runtime.interpreter.echo import echo
from runtime.interpreter.executions import ExceptionInfo
from runtime.interpreter.handles import HANDLE_TYPES, Handles
from runtime.interpreter.host import Answer, Effect, Failure, Host, NotHandled, ReturnValue
from runtime.interpreter.lowering import Lowered, lower
from runtime.interpreter.objections import MESSAGE_CHARS, explained
from runtime.interpreter.processor_time import Stopwatch, watchdog
from runtime.interpreter.session import Session
from runtime.interpreter.supplied import pure
from runtime.interpreter.verdicts import (
    KEEPING,
    KEPT,
    KILLED,
    Checked,
    InterpreterDrift,
    Verdict,
    VerdictStatus,
    exception_of,
)

__all__ = ["InterpreterDrift", "StatementRun", "Stretch", "Verdict", "VerdictStatus"]

_EXCEPTIONS = frozenset(get_args(ExcType))
_AS_MONTY = {OUTCOME_UNKNOWN: "binascii.Incomplete"}
"""Exceptions of ours, which the interpreter cannot be given, by one of its own that nothing else
raises (``supplied/sources/_unknown.monty``).
"""
_OURS = {name.rpartition(".")[2]: ours for ours, name in _AS_MONTY.items()}
_NO_FUNCTIONS = frozenset({"All", OUTCOME_UNKNOWN})
_MEMORY_LIMIT = re.compile(
    r"memory limit exceeded: \d+ bytes > "
    rf"({pool.MAX_MEMORY_BYTES}|{pool.REPLAY_MEMORY_BYTES}) bytes"
)
_PROCESS_LIMIT = "the worker exceeded its memory limit"
_TIME_LIMIT = re.compile(r"(feed|turn) time limit exceeded")
"""Of sessions that were saved when limits were wall time: the smaller limit holds."""
_WHOLE = f"{namespace.WHOLE}:"
_GONE = (MontyError, RuntimeError, ProcessLookupError)
"""What a session raises that cannot go on; the last two say that its process has ended."""

CALLS_PER_STRETCH = 100
"""Calls of the host after which a stretch is cut: some 20 ms, where most calls take 0.2 ms; each is
two changes of the process.
"""

_crashes = Crashes()
# A number of calls that is never reached: a replay is cut only where the record was.
_UNCUT = -1


@dataclass(frozen=True)
class Stretch:
    """The outcome of one stretch: its verdict, and the effect it waits for if the statement has not
    ended.
    """

    verdict: Verdict
    effect: Effect | None = None


class _TakenBack(Exception):
    """The session cannot be kept as it is: the statement ends by a verdict."""

    def __init__(self, status: VerdictStatus, detail: str = "") -> None:
        super().__init__(status)
        self.status, self.detail = status, detail


@dataclass(frozen=True)
class _Bounds:
    """What bounds a stretch: when it is cut, when it is killed, and whether its time is a reason to
    end the statement.

    ``live`` is False where the outcome must be the recorded one. ``well``: a record has it ended
    well, whatever names it binds: releases before let it.
    """

    calls: int
    seconds: float
    live: bool
    timed: bool
    well: bool

    @classmethod
    def of(cls, recorded: Verdict | None) -> _Bounds:
        """Those of a stretch with the verdict ``recorded``: one without a digest tells of another
        run of the statement.
        """
        if recorded is None:
            return cls(CALLS_PER_STRETCH, pool.HARD_SECONDS, live=True, timed=True, well=False)
        if not recorded.digest:
            well = recorded.checked is Checked.PASSED
            return cls(CALLS_PER_STRETCH, pool.REPLAY_SECONDS, live=True, timed=False, well=well)
        calls = recorded.cut or _UNCUT
        return cls(calls, pool.REPLAY_SECONDS, live=False, timed=False, well=True)


@dataclass
class StatementRun:
    """The run of one statement.

    The workflow calls ``advance`` for each stretch, or ``abort`` when a verdict says so.
    """

    source: str
    before: Session
    host: Host
    stubs: str
    seed: str
    obj_ids: Callable[[], Iterable[str]]
    hidden: frozenset[str]
    shown_chars: int = output.SHOWN_CHARS
    servers: frozenset[str] = frozenset()
    dialect: Dialect = Dialect.LATEST
    spent_ms: int = 0
    parts: list[tuple[str, str]] = field(default_factory=list)
    exception: ExceptionInfo | None = None
    session: Session | None = None
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _waiting: bytes | None = None
    _effect: Effect | None = None
    checked: Checked = Checked.NO
    _printed: int = 0
    _ms: int = 0
    _weight: int = 0
    _warnings: str = ""
    _calls: int = 0
    _cut: int = 0
    _stretches: int = 0
    _lowered: Lowered = field(init=False)

    def __post_init__(self) -> None:
        names = self.servers | (self.hidden & {OUTCOME_UNKNOWN})
        functions = self.hidden - self.servers - _NO_FUNCTIONS
        self._lowered = lower(self.source, self.before.pieces, names, functions, self.dialect)

    def advance(self, answer: Answer | None = None, recorded: Verdict | None = None) -> Stretch:
        """Run the next stretch: from the start, from the effect that ``answer`` answers, or from
        where the last was cut.

        ``recorded`` is the ok verdict of this stretch when it is replayed: time is not measured
        then, and its check is not repeated.
        """
        checked = self._check(recorded) if self._waiting is None else Checked.NO
        # A verdict without a digest tells of another run of the statement: what is not its time is
        # found out anew.
        replayed = recorded is not None and bool(recorded.digest)
        self._ms = self._weight = self._cut = 0
        self._stretches += 1
        status, detail = VerdictStatus.OK, ""
        if checked is not Checked.REFUSED:
            bounds = _Bounds.of(recorded)
            try:
                if self._waiting is None:
                    self._keep_own_names(bounds)
                self._effect, self._waiting = self._run(answer, bounds)
            except _TakenBack as taken:
                self._effect = self._waiting = None
                status, detail = taken.status, taken.detail
        if self._printed > output.OUTPUT_LIMIT_CHARS:
            status = VerdictStatus.OUTPUT
        digest = self._digest(recorded) if status is VerdictStatus.OK else ""
        # Between this time and that of the kill a stretch may well end, which makes it no less a
        # timeout.
        if recorded is None and digest and self.spent_ms + self._ms > pool.DECLARED_SECONDS * 1000:
            status = VerdictStatus.TIMEOUT
        elif not replayed and digest and self._weight > pool.MAX_SESSION_BYTES:
            status, detail = VerdictStatus.MEMORY, KEPT
        warned = self._warnings if checked is Checked.PASSED else ""
        refusal = self.exception if checked is Checked.REFUSED else None
        verdict = Verdict(
            status=status,
            digest=digest,
            ms=self._ms,
            checked=checked,
            warned=warned,
            detail=detail,
            cut=self._cut,
            refusal=refusal,
        )
        return Stretch(verdict=verdict, effect=self._effect)

    def settle(self, verdict: Verdict) -> None:
        """Take the durable verdict of the stretch that just ran."""
        self.spent_ms += verdict.ms
        if verdict.checked is not Checked.NO:
            self.checked = verdict.checked
        if verdict.status is not VerdictStatus.OK:
            self.abort(verdict)

    def abort(self, verdict: Verdict) -> None:
        """End the statement as ``verdict`` says, with the session as it was before the
        statement.
        """
        self.session, self._waiting, self._effect = self.before, None, None
        # What was printed belongs to the statement, which is taken back.
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
        """Ask the type checker, unless the recorded stretch tells what it said: of another release
        it may say something else.

        Raises:
            GaveUp: if the checker has no time now for the objection that it had: whatever called
                must try again later.
        """
        if recorded is not None and recorded.checked not in {Checked.REFUSED, Checked.UNKNOWN}:
            self._warnings = recorded.warned
            return recorded.checked
        if recorded is not None and recorded.refusal is not None:
            return self._refuse(recorded.refusal)
        names = {name: info.type for name, info in self.before.names.variables.items()}
        refused = recorded is not None and recorded.checked is Checked.REFUSED
        seconds = checker.REPLAY_SECONDS if refused else checker.SECONDS
        try:
            own = HANDLE_TYPES | {server_type(name) for name in self.servers}
            said = typecheck.check(self.source, self.stubs, names, own, seconds=seconds)
        except checker.GaveUp:
            if refused:
                raise
            return Checked.GAVE_UP
        if said.refusal is None:
            self._warnings = said.warnings
            return Checked.PASSED
        if recorded is not None and recorded.digest:
            # Of a history of before, which has the digest of this text as it is.
            return self._refuse(said.refusal)
        return self._refuse(ExceptionInfo.model_validate(without_keys(said.refusal.model_dump())))

    def _refuse(self, refusal: ExceptionInfo) -> Checked:
        self.exception, self.session = refusal, self.before
        return Checked.REFUSED

    def _keep_own_names(self, bounds: _Bounds) -> None:
        """Take back a statement whose source binds names of the framework's."""
        if not bounds.well and (bound := namespace.own_bound(self.source)):
            raise _TakenBack(VerdictStatus.NAMES, ", ".join(bound))

    def _run(self, answer: Answer | None, bounds: _Bounds) -> tuple[Effect | None, bytes | None]:
        try:
            made = self._made(answer, bounds)
        except _TakenBack:
            _crashes.forget(self._place)
            raise
        _crashes.forget(self._place)
        return made

    def _made(self, answer: Answer | None, bounds: _Bounds) -> tuple[Effect | None, bytes | None]:
        handles = Handles(self.obj_ids())
        with pool.session(seed=self.seed, replay=not bounds.live) as session:
            with self._keeping(session):
                snapshot = self._loaded(session)
            effect = self._computed(session, snapshot, answer, handles, bounds)
            with self._keeping(session):
                if effect is not None or self._cut:
                    # As bytes: no process is held while an effect is carried out.
                    waiting = session.dump()
                    self._weight = len(waiting)
                    return effect, waiting
                try:
                    self.session = self._listed(session, handles, bounds)
                # What lists the variables is in the interpreter too, where ``exec`` reaches it.
                except (AttributeError, LookupError, TypeError, ValueError) as error:
                    raise _TakenBack(VerdictStatus.NAMES, namespace.OWN_NAMES) from error
        return None, None

    def _computed(
        self,
        session: MontySession,
        snapshot: SyncSnapshot | None,
        answer: Answer | None,
        handles: Handles,
        bounds: _Bounds,
    ) -> Effect | None:
        """Run what is to be timed. Returns the effect that the statement waits for."""
        with self._ending(), watchdog.limiting(pool.pid_of(session), bounds.seconds) as limit:
            watch = Stopwatch(limit.pid)
            try:
                if snapshot is None:
                    snapshot = session.feed_start(
                        self._lowered.source, print_callback=self._print, cwd=VIRTUAL_ROOT
                    )
                elif answer is not None:
                    snapshot = _resume(snapshot, answer, handles)
                return self._drive(snapshot, handles, bounds, watch)
            except MontyCrashedError as crash:
                pool.raise_if_stopped(crash)
                if limit.struck or watch.milliseconds > pool.DECLARED_SECONDS * 1000:
                    raise _TakenBack(VerdictStatus.TIMEOUT) from crash
                raise
            except MontyError as error:
                self.exception = explained(self._exception(error), self._warnings)
                if _out_of_time(self.exception):
                    raise pool.NoVerdict(
                        f"the interpreter was slow: {self.exception.message}"
                    ) from error
                # Not left to the statement as an exception: its text tells bytes that are others in
                # another process.
                if _out_of_memory(self.exception):
                    raise _TakenBack(VerdictStatus.MEMORY) from error
                return None
            finally:
                self._ms = watch.milliseconds

    @contextmanager
    def _keeping(self, session: MontySession) -> Iterator[None]:
        """Around what restores and saves the session: what it takes is not the statement's time,
        and has a bound of its own.
        """
        with self._ending(), watchdog.limiting(pool.pid_of(session), pool.KEEPING_SECONDS) as limit:
            try:
                yield
            except MontyCrashedError as crash:
                if limit.struck:
                    raise _TakenBack(VerdictStatus.MEMORY, KEEPING) from crash
                raise
            except MontyError as error:
                if _out_of_memory(self._exception(error)):
                    raise _TakenBack(VerdictStatus.MEMORY, KEEPING) from error
                raise

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Around all that needs the interpreter's process: what its end means for the statement.

        Raises:
            InterpreterStopped: if it was told to stop.
            NoVerdict: if it was too slow to answer, or did not end often enough at this stretch to
                be the statement's doing.
        """
        try:
            yield
        except _GONE as error:
            pool.raise_if_stopped(error)
            if isinstance(error, MontyCrashedError) and error.timed_out:
                raise pool.NoVerdict(
                    f"the interpreter had too little processor time to answer: {error}"
                ) from error
            killed = pool.was_killed(error)
            # Once may be the machine's doing: the task is tried again. Twice at one place is the
            # statement's. Who kills from outside, as the kernel does for want of memory, may well
            # do so twice.
            if not _crashes.is_the_statements(self._place, killed=killed):
                raise pool.NoVerdict(f"the interpreter's process ended: {error}") from error
            raise _TakenBack(VerdictStatus.CRASHED, KILLED if killed else "") from error

    @property
    def _place(self) -> Place:
        """What the ends of interpreters are counted by."""
        return self.seed, self.source, self._stretches

    def _loaded(self, session: MontySession) -> SyncSnapshot | None:
        """The session as the last stretch left it: the suspended statement, or None before the
        statement's start.
        """
        if self._waiting is not None:
            return session.load_snapshot(self._waiting, print_callback=self._print)
        if self.before.dump is None:
            session.feed_run(namespace.PRELUDE)
        else:
            session.load_session(self.before.dump)
        for piece in self._lowered.pieces:
            if piece not in self.before.pieces:
                # Fed one by one, in the order of their needs; what an earlier statement needed is
                # there already.
                session.feed_run(supplied.source(piece))
        return None

    def _listed(self, session: MontySession, handles: Handles, bounds: _Bounds) -> Session:
        # The interpreter keeps the source of all it is fed: what is listed after the dump does not
        # add to it.
        dump = session.dump()
        self._weight = len(dump)
        # A session that was begun with ``SHORT`` has no walk.
        watched = not bounds.well and self.before.names.scheme == namespace.WHOLE
        if watched and not namespace.is_intact(listing.told(session, namespace.OWN)):
            raise _TakenBack(VerdictStatus.NAMES, namespace.OWN_NAMES)
        listed = handles.incoming(listing.told(session, namespace.LISTING))
        if taken := namespace.taken(listed, self.hidden):
            raise _TakenBack(VerdictStatus.NAMES, ", ".join(taken))
        if altered := namespace.altered(listed):
            raise _TakenBack(VerdictStatus.ATTRIBUTES, ", ".join(altered))
        pieces = tuple(dict.fromkeys((*self.before.pieces, *self._lowered.pieces)))
        before = self.before.names
        # Digests of a session that was begun without a walk are compared with its recorded ones.
        if before.scheme == namespace.SHORT:
            return Session(
                dump=dump, names=namespace.parse(listed, self.hidden, None), pieces=pieces
            )
        definitions = before.definitions.after(self.source)
        contents = listing.contents_of(session, definitions, self.source, self.hidden)
        names = namespace.parse(listed, self.hidden, contents)
        self.paths = listing.paths(before, names, contents, self._restored, self.hidden)
        listing.keep(names, contents)
        return Session(dump=dump, names=names, pieces=pieces)

    @contextmanager
    def _restored(self) -> Iterator[MontySession]:
        """The session as it was before the statement, beside the one that runs."""
        with pool.session(seed=self.seed, replay=True) as session:
            session.load_session(self.before.dump or b"")
            yield session

    def _drive(
        self, snapshot: SyncSnapshot, handles: Handles, bounds: _Bounds, watch: Stopwatch
    ) -> Effect | None:
        """Answer host calls until the statement ends, one is an effect, or the stretch is cut
        before one.
        """
        calls = 0
        while not isinstance(snapshot, MontyComplete):
            # Before the call is answered: the next stretch begins with it, live and in a replay
            # alike.
            if calls == bounds.calls:
                self._cut = calls
                return None
            calls += 1
            self._calls += 1
            # In a replay the verdict that was recorded decides.
            if bounds.live and self._calls > pool.MAX_CALLS:
                raise _TakenBack(VerdictStatus.CALLS)
            # Pure calls are answered here, within the stretch; only what leaves the interpreter
            # suspends it.
            answer = self._ask(snapshot, handles, bounds)
            self._show(self.host.take_output())
            # Here as well: the host's answers are the statement's time too, and no watchdog stops
            # this thread.
            if bounds.timed and self.spent_ms + watch.milliseconds > pool.DECLARED_SECONDS * 1000:
                raise _TakenBack(VerdictStatus.TIMEOUT)
            if isinstance(answer, Effect):
                return answer
            snapshot = _resume(snapshot, answer, handles)
        self._show(echo(snapshot, handles))
        return None

    def _print(self, stream: str, text: str) -> None:
        """Keep what is printed, up to the limit.

        Output is flushed before each host call, so the order is right.
        """
        self._printed += len(text)
        if self._printed <= output.OUTPUT_LIMIT_CHARS:
            self.parts.append((stream, text))

    def _show(self, text: str) -> None:
        if text:
            self._print("stdout", text if text.endswith("\n") else text + "\n")

    def _ask(self, snapshot: SyncSnapshot, handles: Handles, bounds: _Bounds) -> Answer | Effect:
        if isinstance(snapshot, NameLookupSnapshot):
            if snapshot.object_id is None:
                return self.host.name(snapshot.variable_name)
            obj_id = handles.obj_id(snapshot.object_id)
            return self.host.attribute(obj_id, snapshot.variable_name) if obj_id else NotHandled()
        if not isinstance(snapshot, FunctionSnapshot):
            raise InterpreterDrift("a statement waits for futures, and the host makes none")
        is_pure = snapshot.function_name == pure.FUNCTION
        try:
            args, kwargs = snapshot.args, snapshot.kwargs
        except TypeError:
            name = "the call" if is_pure else f"{snapshot.function_name}()"
            return Failure("TypeError", f"{name}: {NO_KEY}")
        # Before anything goes through the arguments.
        if too_large((args, kwargs)):
            name = args[0] if is_pure else snapshot.function_name
            return Failure("ValueError", f"{name}(): the arguments are {TOO_LARGE}")
        # As for calls: what a history has of before was in time.
        if is_pure and bounds.timed and pure.too_long((args, kwargs)):
            raise _TakenBack(VerdictStatus.TIMEOUT)
        args, kwargs = handles.incoming(args), handles.incoming(kwargs)
        if snapshot.is_os_function:
            return self.host.system(snapshot.function_name, args, kwargs)
        if snapshot.object_id is None:
            return self.host.function(snapshot.function_name, args, kwargs)
        obj_id = handles.obj_id(snapshot.object_id)
        if obj_id is None:
            return Failure("RuntimeError", "this handle belongs to no node of the job")
        return self.host.method(obj_id, snapshot.function_name, args, kwargs)

    def _exception(self, error: MontyError) -> ExceptionInfo:
        inner = error.exception()
        if isinstance(error, MontySyntaxError):
            return ExceptionInfo(
                type="SyntaxError", message=output.bounded(str(error), MESSAGE_CHARS)
            )
        trace = error.display() if hasattr(error, "display") else ""
        # The text has the name that the traceback has; the object is another where Python's class
        # takes more than a message.
        named = str(error).partition(":")[0].rpartition(".")[2]
        message = phrases.told(str(inner), self.dialect)
        trace = traces.told(trace, self._lowered, self.source).replace(str(inner), message)
        for ours, monty in _AS_MONTY.items():
            trace = trace.replace(f"\n{monty}: ", f"\n{ours}: ")
        named = _OURS.get(named, named)
        return ExceptionInfo(
            type=named if named.isidentifier() else type(inner).__name__,
            message=output.bounded(message, MESSAGE_CHARS),
            trace_summary=output.bounded(trace, MESSAGE_CHARS),
        )

    def _digest(self, recorded: Verdict | None) -> str:
        """The digest of the outcome, by the scheme of the recorded one; it tells its scheme unless
        that is ``SHORT``.
        """
        names = self.session.names if self.session is not None else None
        short = names is None or names.scheme == namespace.SHORT
        short = short or (recorded is not None and recorded.digest[:2] not in ("", _WHOLE))
        held = None if names is None else names.short_digest if short else names.digest
        effect = self._effect
        asked = [effect.kind, effect.name, repr(effect.request)] if effect is not None else None
        asked = ["cut", str(self._cut)] if self._cut else asked
        failed = (
            [self.exception.type, self.exception.message] if self.exception is not None else None
        )
        printed = [output.joined(self.parts, stream) for stream in ("stdout", "stderr")]
        return ("" if short else _WHOLE) + digest_of([held, asked, failed, printed]).removeprefix(
            "sha256:"
        )[:24]


def _resume(snapshot: SyncSnapshot, answer: Answer, handles: Handles) -> SyncSnapshot:
    if isinstance(snapshot, NameLookupSnapshot):
        return (
            snapshot.resume(value=handles.outgoing(answer.value))
            if isinstance(answer, ReturnValue)
            else snapshot.resume()
        )
    if not isinstance(snapshot, FunctionSnapshot):
        raise InterpreterDrift(f"cannot resume {type(snapshot).__name__}")
    match answer:
        case ReturnValue(value=value):
            return snapshot.resume({"return_value": handles.outgoing(value)})
        case Failure(type=type_, message=message):
            type_ = _AS_MONTY.get(type_, type_)
            known = type_ in _EXCEPTIONS
            text = message if known else f"{type_}: {message}"
            return snapshot.resume(
                {"exc_type": cast("ExcType", type_ if known else "RuntimeError"), "message": text}
            )
        case _:
            return snapshot.resume_not_handled()


def _out_of_time(exception: ExceptionInfo) -> bool:
    # A statement or a tool may say the same words, but what is raised has a traceback.
    raised = exception.type != "TimeoutError" or exception.trace_summary.startswith("Traceback")
    return not raised and _TIME_LIMIT.match(exception.message) is not None


def _out_of_memory(exception: ExceptionInfo) -> bool:
    if exception.type != "MemoryError":
        return False
    # A process that has ended has no traceback; one that goes on may have one, and tells the limit.
    ended = not exception.trace_summary.startswith("Traceback")
    told = ended and exception.message.startswith(_PROCESS_LIMIT)
    return told or _MEMORY_LIMIT.match(exception.message) is not None
