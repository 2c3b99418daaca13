"""The live table of ``holdfast watch``: as many lines as the terminal has, for any number of jobs.

::

    nightly  3,120 queued, 62 running, 2 waiting, 12 failed, 1,804 succeeded of 5,000  0:12:41
    $12.3456  123,456,789 tokens  40,112 turns  212.5 turns and 640,000 tokens a minute
    slowest       turn      tokens      cost     for  now
    j00017          12      12,345   $0.0100  0:10:02  model  foo = view("src/foo.py")
    … and 63 more
    newest errors
       482  j00411  ConnectionFailed: <url> refused after <n> s
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from runtime.base.standings import PAUSED, RUNNING, WAITING
from runtime.cli.board import GAP, clock_text, middle, wide
from runtime.cli.reporters import by_status
from runtime.cli.text import first_line, one_line
from runtime.client.batch_watch import Picture

SPARE = 1
"""Lines of the terminal that are left free."""

MOST_ERRORS = 5
LEAST_NAME, MOST_NAME = 7, 24
TURN, TOKENS, COST, FOR = 5, 11, 9, 8

_BEGUN = (RUNNING, WAITING, PAUSED)


def sums(picture: Picture) -> str:
    """``3 queued, 2 running, 1 failed, 12 succeeded of 18``."""
    counts = by_status(picture.counts) or "no jobs yet"
    return f"{picture.batch}  {counts} of {picture.jobs:,}"


def spent(picture: Picture) -> str:
    """``$1.2345  1,234 tokens  40 turns  12.5 turns and 640 tokens a minute``."""
    told = f"${picture.cost_usd:.4f}  {picture.tokens:,} tokens  {picture.turns:,} turns"
    if picture.turns_a_minute is None or picture.tokens_a_minute is None:
        return told
    return (
        f"{told}  {picture.turns_a_minute:,.1f} turns and"
        f" {picture.tokens_a_minute:,.0f} tokens a minute"
    )


def drawn(picture: Picture, width: int, height: int, seconds: float) -> Text:
    """The table on a terminal of ``width`` columns and ``height`` lines, after so many seconds."""
    lines = [f"{sums(picture)}  {clock_text(seconds)}", spent(picture)]
    if picture.silent and not picture.ended:
        lines.append(f"{one_line(picture.silent)}: asking again")
    errors = list(_errors(picture, max(min(MOST_ERRORS, (height - len(lines) - 4) // 2), 0)))
    room = height - SPARE - len(lines) - len(errors)
    lines += _slowest(picture, width, room)
    told = [Text(line) for line in (*lines, *errors)]
    for line in told:
        line.truncate(width, overflow="ellipsis")
    return Text("\n").join(told[: max(height - SPARE, 1)])


def _slowest(picture: Picture, width: int, room: int) -> Iterator[str]:
    """A head, the jobs for which there is room, and how many more have begun."""
    jobs = picture.slowest
    if not jobs or room < 2:
        return
    open = max(sum(picture.counts.get(status, 0) for status in _BEGUN), len(jobs))
    fit = room - 1 if open < room else room - 2
    shown = jobs[: max(fit, 0)]
    name = min(max((len(job.id) for job in shown), default=0), MOST_NAME)
    name = max(name, LEAST_NAME)
    yield GAP.join(
        [
            wide("slowest", name),
            f"{'turn':>{TURN}}",
            f"{'tokens':>{TOKENS}}",
            f"{'cost':>{COST}}",
            f"{'for':>{FOR}}",
            "now",
        ]
    )
    for job in shown:
        cells = [wide(middle(job.id, name), name), f"{job.turn:>{TURN}}"]
        cells += [f"{job.tokens:>{TOKENS},}", f"{f'${job.cost_usd:.4f}':>{COST}}"]
        cells += [f"{clock_text(job.seconds):>{FOR}}", job.phase, first_line(job.doing, width)]
        yield GAP.join(cells).rstrip()
    if more := open - len(shown):
        yield f"… and {more:,} more"


def _errors(picture: Picture, most: int) -> Iterator[str]:
    """A head, and the newest kinds of errors."""
    shown = picture.errors[:most]
    if shown:
        yield "newest errors"
    for error in shown:
        yield f"{error.count:>6,}  {error.job}  {one_line(error.kind)}"
