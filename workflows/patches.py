"""Which changes of workflow code a run goes by: those that there were as it began
(docs/releases.md).

They are asked for as the run begins, and nowhere else first. Behind an activity within the worker,
whose task was cut, a replay asks before it has come to the mark: it gets that activity's result at
once, and knows the marks of one task alone. It then takes the run for one of before.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from runtime.interpreter.dialect import Dialect

EARLIER = "patches-of-2026-11"
"""By one mark all that there were when runs began to ask as they begin, and what came with it."""

PACED = "messages-are-paced"
"""A turn begins with no more of a user's messages than its prompt has room for."""

STARTS_ONCE = "a-start-under-way-is-the-rerun"
"""A job that a batch is starting anew is not started anew once more for the end before."""

WRITES = "statements-write-as-python-does"
"""What ``open`` and ``write_text`` are given for writing in a statement counts."""

CUT = "a-deadline-approves-nothing"
"""A question that a job's deadline ends before its own time is over is answered with no."""

EXACT = "spawn-tells-exact-amounts"
"""A refusal of ``spawn`` tells what can be lent to the last digit."""

SLEPT = "a-sleep-goes-on-with-its-rest"
"""A job that goes on out of the archive where another run of it slept sleeps what is left."""

SLEPT_OUT = "a-sleep-behind-a-restored-turn-is-over"
"""A job that goes on out of the archive where a turn had begun its call does not sleep again what
it had slept before that.
"""

NATURAL = "statements-run-as-naturally-written"
"""Functions of the job are values in a statement, regular expressions and rounding are Python's,
and what is a list but for its type is data.
"""

CENTS = "budget-line-tells-parts-of-cents"
"""The budget line of a prompt tells a budget below a dollar, and what is spent of it, to the last
digit.
"""

OWN_ENDS = "own-ends-are-told"
"""Of a job that runs already as its batch comes to start it no end is told."""

FAITHFUL = "statements-are-faithful-to-python"
"""A class of a statement says whether its objects are true, one with methods that nobody would call
is refused, and a caught exception's class, ``re.ASCII``, and times without a date are Python's.
"""

UNREAD = "a-record-without-a-reading-had-no-news"
"""A view that is read once more, and of which the record that is followed has no reading, shows
what it showed.
"""

ALIKE = "statements-are-alike-by-any-name"
"""In a statement ``re`` is the same by another name, the value of ``or`` and ``and`` goes by what
an object says of its truth, and a class with a ``__ne__`` that nobody would call is refused.
"""

LAID_OUT = "statements-may-be-laid-out-in-any-way"
"""Comments and blanks between what a statement calls and the parentheses around it are passed over,
its lines end as Python reads them, and what ``+=`` adds to a list may be no list.
"""

TICKED = "a-record-tells-what-its-ticks-reached"
"""A view that the tick of the record that is followed has reached, and of which it has no reading,
is what it was.
"""

GATED = "each-wait-before-a-turn-is-gated"
"""A job that is reset to behind a sleep, a pause or a wait for its batch's budget asks for its
order there, before it looks at the time, and begins the turn anew.
"""

IN_VAIN = "no-wait-outlasts-its-job"
"""A job whose next attempt at a call may not come in its time ends at once, also where it could be
granted more of its batch's budget.
"""

NO_NEWS = "a-preparation-without-a-reading-had-no-news"
"""A view that a reading of the background was applied to in the record that is followed, and of
which it has no reading, is what it was.
"""

MARKS = "a-mark-that-a-sleep-takes-away-is-news"
"""A tick of a sleeping job that reads a view which a mark calls behind is recorded, whatever it
reads.
"""

NOT_LENT = "what-is-not-lent-ends-no-job"
"""A job for whose sub-job the batch's budget has nothing goes on asking for its own calls."""

ASKED = "a-record-tells-of-ticks-that-were-asked-for"
"""What a statement of the record that is followed was told of a node's last tick, it is told again.
"""

OUTLASTS = "a-replay-outlasts-its-batchs-time"
"""A job that is reset when its batch's time is over has what it had left of that, and one that is
given another deadline has that alone.
"""

REGROUPED = "a-group-that-a-sleep-recomputes-is-news"
"""A tick of a sleeping job that recomputes a group is recorded, whatever it reads."""

EACH_WAIT = "a-record-is-followed-through-each-wait"
"""A tick of a recorded sleep looks at what any of its waits is for, not the first alone."""

GATED_FIRST = "a-sleep-is-gated-before-it-is-woken"
"""A job that is reset to behind a sleep asks for its order before what has arrived wakes it."""

BEHIND_SIGNALS = "no-signal-alone-begins-a-turn"
"""Behind a signal for which a turn waited, an event is waited for at which a reset is heard of."""

AS_IT_WAS = "a-record-is-restored-by-its-own-rules"
"""A turn that is restored is executed by the rules of statements that its record went by."""

RESTS = "a-job-that-waits-for-a-slice-may-be-paused"
"""A job that was paused while it waited for a slice of its batch's budget begins no turn when it
has one.
"""

FREED = "what-a-batch-bounds-no-more-is-unbounded"
"""A job that began with a slice of a kind that its batch's budget bounds no more asks for no more
of it.
"""

ON_ONE_LINE = "statements-may-have-functions-on-one-line"
"""In a statement a generator function may stand on one line, or begin with what has a decorator,
the parentheses of a class's bases may have a comment in them, and ``del`` takes out what has a
tuple for its key.
"""

ASKING = "statements-ask-values-as-python-does"
"""In a statement ``hasattr`` knows the methods of built-in types, ``getattr`` gives none of them
without a word, and ``any``, ``all`` and ``filter`` go by what an object says of its truth.
"""

AT_START = (
    *(ASKING, ON_ONE_LINE, FREED, RESTS, AS_IT_WAS, SLEPT_OUT, BEHIND_SIGNALS, GATED_FIRST),
    *(EACH_WAIT, REGROUPED, OUTLASTS, ASKED, NOT_LENT, MARKS, NO_NEWS, IN_VAIN, GATED, TICKED),
    *(LAID_OUT, ALIKE, UNREAD, FAITHFUL, OWN_ENDS, CENTS, NATURAL, SLEPT, EXACT, CUT, WRITES),
    *(STARTS_ONCE, PACED, EARLIER),
)
"""What a run asks for as it begins, the newest first: a new patch is added before the others, for
which its mark stands too.
"""

COVERED = frozenset(
    (
        "a-cancelled-end-ends",
        "batch-goes-on",
        "beside-the-loop-may-fail",
        "carried-cancelled-beside-starts",
        "checks-by-schemas-are-bounded",
        "cut-calls-are-booked",
        "ends-are-told-before-going-on",
        "failed-summaries-are-told",
        "functions-are-bounded-in-what-they-make",
        "held-calls-are-waited-for",
        "limits-upserted",
        "lost-batches-are-told",
        "prompt-may-be-too-long",
        "slice-asked-again",
        "slice-came-meanwhile",
        "slice-spent-on-failures",
        "stands-upserted",
        "sub-jobs-are-held",
        "unknown-jobs-are-told",
        "wishes-are-named",
        "withdrawn-given-again",
    )
)
"""Those that ``EARLIER`` stands for, each of which a run of before marked where it came by it."""


def begin() -> None:
    """A run begins: mark it, by one mark."""
    _marked(AT_START)


def patched(patch: str) -> bool:
    """Whether the run goes by ``patch``.

    Raises:
        ValueError: if no run asks for it as it begins.
    """
    if patch in AT_START:
        return _marked(AT_START[: AT_START.index(patch) + 1])
    if patch not in COVERED:
        raise ValueError(f"no run asks for the patch {patch!r} as it begins: add it to AT_START")
    return _marked((*AT_START, patch))


def dialect() -> Dialect:
    """By which rules the run's statements are lowered and told of."""
    if patched(ASKING):
        return Dialect.ASKING
    if patched(ON_ONE_LINE):
        return Dialect.ON_ONE_LINE
    if patched(LAID_OUT):
        return Dialect.LAID_OUT
    if patched(ALIKE):
        return Dialect.ALIKE
    if patched(FAITHFUL):
        return Dialect.FAITHFUL
    if patched(NATURAL):
        return Dialect.NATURAL
    return Dialect.WRITES if patched(WRITES) else Dialect.FIRST


def _marked(patches: tuple[str, ...]) -> bool:
    """Whether the run has the mark of one of these; a run that is not replayed gets the first."""
    return any(map(workflow.patched, patches))
