"""Times of the View: append, reading the indices, rebuilding, and one condensation.

Run with ``python -m benchmarks.view`` (``--json`` for one JSON object). Times are processor time of
one process; each figure is the best of several runs. Appending and reading must not grow with the
log; rebuilding must be linear.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from runtime.history.content import text_content
from runtime.history.events import (
    ActionEvent,
    Condensation,
    Event,
    MessageEvent,
    MessageSource,
    ObservationEvent,
)
from runtime.history.view import View

SIZES = (100, 1_000, 10_000, 100_000)
SHAPES = ("no thinking", "thinking once", "thinking in every response", "one endless loop")
THINKING = ({"type": "thinking", "thinking": "so", "signature": "c2ln"},)
RUNS = 3
APPENDS = 400


@dataclass(frozen=True)
class Row:
    """One line of the table. Times per event are in microseconds, the others in milliseconds."""

    shape: str
    events: int
    append_us: float
    indices_us: float
    rebuild_ms: float
    rebuild_us_per_event: float
    condensation_ms: float


def history(shape: str, size: int, *, offset: int = 0) -> list[Event]:
    """``size`` events of calls and results behind a system prompt and a goal; ``offset`` continues
    such a history.
    """
    events: list[Event] = []
    if not offset:
        events = [_message("system", MessageSource.SYSTEM), _message("goal", MessageSource.GOAL)]
    number = offset
    while len(events) < size:
        first = number == 0
        if shape == "thinking once" and number == 1:
            events.append(_message(f"u{number}", MessageSource.USER))
        thinks = shape == "thinking in every response" or (
            first and shape in {"thinking once", "one endless loop"}
        )
        events.append(
            ActionEvent(
                id=f"a{number}",
                turn=number,
                llm_response_id=f"r{number}",
                tool_call_id=f"t{number}",
                thinking_blocks=THINKING if thinks else (),
                source="x = 1",
            )
        )
        events.append(
            ObservationEvent(
                id=f"o{number}", turn=number, tool_call_id=f"t{number}", content=text_content("ok")
            )
        )
        number += 1
    return events[:size]


def _message(event_id: str, source: MessageSource) -> MessageEvent:
    return MessageEvent(id=event_id, turn=0, source=source, content=text_content(event_id))


def measure(shape: str, size: int) -> Row:
    """The row of one shape and size."""
    events = history(shape, size)
    rebuild = _best(lambda: View.from_events(events))
    more = history(shape, APPENDS, offset=size)
    appends, reads = zip(
        *(_append_and_read(View.from_events(events), more) for _ in range(RUNS)), strict=True
    )
    condensations = [_condense(View.from_events(events)) for _ in range(RUNS)]
    return Row(
        shape=shape,
        events=size,
        append_us=round(min(appends) / APPENDS * 1e6, 2),
        indices_us=round(min(reads) / APPENDS * 1e6, 2),
        rebuild_ms=round(rebuild * 1e3, 2),
        rebuild_us_per_event=round(rebuild / size * 1e6, 2),
        condensation_ms=round(min(condensations) * 1e3, 2),
    )


def _best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        # A collection that became due before must not fall into this run's time.
        gc.collect()
        start = time.process_time()
        made = work()
        times.append(time.process_time() - start)
        # Else it would be freed within the next run's time, when the name is bound again.
        del made
    return min(times)


def _append_and_read(view: View, more: Sequence[Event]) -> tuple[float, float]:
    """Seconds for appending ``more``, and for reading the indices and searching them after every
    append.
    """
    gc.collect()
    append = read = 0.0
    for event in more:
        start = time.process_time()
        view.append_event(event)
        between = time.process_time()
        indices = view.manipulation_indices
        middle = len(view) // 2
        if middle in indices:
            indices.find_next(middle)
        append += between - start
        read += time.process_time() - between
    return append, read


def _condense(view: View) -> float:
    """Seconds for forgetting the older half of the View, at indices, in favour of a summary."""
    # At indices: a condensation that breaks a property is repaired, which would be measured too.
    gaps = view.manipulation_indices
    start = gaps.find_next(0)
    stop = gaps.find_next(len(view) // 2)
    condensation = Condensation(
        id="c",
        turn=0,
        forgotten_event_ids=view.forgettable(start, stop),
        summary="what was",
        summary_offset=start,
    )
    gc.collect()
    begun = time.process_time()
    repairs = view.append_event(condensation)
    elapsed = time.process_time() - begun
    if repairs:
        raise AssertionError(f"the condensation was changed: {repairs}")
    return elapsed


def table(sizes: Sequence[int] = SIZES) -> list[Row]:
    """All rows."""
    return [measure(shape, size) for shape in SHAPES for size in sizes]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object instead of a table"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of events")
    options = parser.parse_args()
    rows = table(options.sizes)
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))
        return
    print(
        f"{'shape':<28}{'events':>8}{'append us':>11}{'indices us':>12}{'rebuild ms':>12}{'us/event':>10}{'condense ms':>13}"
    )
    for row in rows:
        print(
            f"{row.shape:<28}{row.events:>8}{row.append_us:>11.2f}{row.indices_us:>12.2f}"
            f"{row.rebuild_ms:>12.2f}{row.rebuild_us_per_event:>10.2f}{row.condensation_ms:>13.2f}"
        )


if __name__ == "__main__":
    main()
