"""What a job spent, where a pack of its turns cannot be read or is gone: it is told, and counted
by the run's end.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from archive_jobs import Written, chat, step_record, write_run

from runtime.archive import keys
from runtime.archive.container import header, seal, unseal
from runtime.archive.failure_groups import DAMAGED, failed_calls
from runtime.archive.forms import Capture, NewEnd
from runtime.archive.job import JobArchive
from runtime.archive.replays import write_replay
from runtime.archive.spending import spent, spent_in
from runtime.archive.standings import standing_of
from runtime.archive.stores import MemoryStore, check_store
from runtime.archive.stores.packed import PackedStore
from runtime.archive.timelines import run_tree
from runtime.base.spec.models import Amount
from runtime.base.values import StepRef, Usage

JOB = "nightly/job"
TURNS = 40
WHOLE = Amount(turns=TURNS, tokens=44_000, usd=4.0)
PACKS = [f"{JOB}/packs/a/0000000", f"{JOB}/packs/a/0000032"]


def lose(inner: MemoryStore, key: str) -> None:
    inner.remove(key)


def flip(inner: MemoryStore, key: str) -> None:
    """A byte of its header."""
    data = bytearray(inner.get(key))
    data[12] ^= 1
    inner.replace(key, bytes(data))


def replayed(
    written: Written,
    run: str,
    turns: range,
    parent: StepRef | None,
    capture: Capture = Capture.REPLAYED,
) -> StepRef | None:
    """Turns of a run for which no model was called."""
    layout_at = chat(random.Random(2), 100)
    for turn in turns:
        layout = layout_at(
            turn, written.archive.layout(parent), written.archive.reply_segment(parent)
        )
        attempt = written.begin(run, turn, parent, layout, capture=capture)
        record = step_record(run, turn, attempt)
        parent = written.finished(record.model_copy(update={"usage": Usage(), "cost_usd": 0.0}))
    return parent


def job(*, again: bool = False) -> tuple[MemoryStore, PackedStore]:
    """A job of forty turns that has ended; with ``again`` one that was then begun anew."""
    inner = MemoryStore()
    store = PackedStore(inner)
    check_store(store, "memory")
    written = Written(JobArchive(store, "nightly", "job"))
    written.archive.write_definition({"goal": "g"})
    for run in ("a", "b") if again else ("a",):
        last = write_run(written, run, range(1, TURNS + 1), None, chat(random.Random(1), 100))
        written.archive.write_end(
            NewEnd(
                run=run,
                turn=TURNS,
                parent=last,
                status="failed",
                usage=Usage(prompt=40_000, completion=4_000),
                cost_usd=4.0,
            )
        )
    return inner, store


@pytest.mark.parametrize("harm", [lose, flip])
@pytest.mark.parametrize("pack", PACKS)
def test_turns_that_cannot_be_read_are_told(
    harm: Callable[[MemoryStore, str], None], pack: str
) -> None:
    """All that stood in the pack."""
    inner, store = job()
    archive = JobArchive(store, "nightly", "job")
    assert spent(archive)["damaged"] == []
    harm(inner, pack)
    told = spent(JobArchive(PackedStore(inner), "nightly", "job"))
    turns = range(1, 32) if pack == PACKS[0] else range(32, TURNS + 1)
    assert told["damaged"] == [keys.step_key(JOB, "a", turn) for turn in turns]
    assert told["calls"] == TURNS - len(turns)
    failing = list(failed_calls(JobArchive(PackedStore(inner), "nightly", "job")))
    assert [one.status for one in failing] == [DAMAGED] * (harm is flip)


@pytest.mark.parametrize("harm", [lose, flip])
def test_the_graph_tells_of_turns_whose_packs_cannot_be_read(
    harm: Callable[[MemoryStore, str], None],
) -> None:
    """By the run's end: it said that the run had one turn."""
    inner, _ = job()
    for pack in PACKS:
        harm(inner, pack)
    (node,) = run_tree(JobArchive(PackedStore(inner), "nightly", "job"), [])
    assert (node.first, node.last) == (1, TURNS)


def test_a_damaged_pack_is_told_also_where_nothing_tells_of_its_turns() -> None:
    """Of a run whose end is damaged, too."""
    inner, _ = job()
    flip(inner, PACKS[1])
    flip(inner, keys.end_key(JOB, "a"))
    told = spent(JobArchive(PackedStore(inner), "nightly", "job"))
    assert told["damaged"] == [keys.end_key(JOB, "a"), PACKS[1]]


class Growing(MemoryStore):
    """A store into which a job writes while its turns are listed."""

    def __init__(self) -> None:
        super().__init__()
        self.then: list[Callable[[], object]] = []

    def list(self, prefix: str) -> Iterator[str]:
        yield from super().list(prefix)
        if prefix == f"{JOB}/turns/" and self.then:
            self.then.pop()()


def test_what_a_job_writes_meanwhile_is_not_missed() -> None:
    """Its end names a step that was not there as its turns were listed."""
    store = Growing()
    check_store(store, "memory")
    written, layout_at = Written(JobArchive(store, "nightly", "job")), chat(random.Random(1), 100)
    parent = write_run(written, "a", range(1, 4), None, layout_at)

    def goes_on() -> None:
        last = write_run(written, "a", range(4, 6), parent, layout_at)
        end = NewEnd(run="a", turn=5, parent=last, status="succeeded")
        written.archive.write_end(end)

    store.then.append(goes_on)
    told = spent(JobArchive(store, "nightly", "job"))
    assert (told["calls"], told["damaged"]) == (3, [])
    assert spent(JobArchive(store, "nightly", "job"))["calls"] == 5


def test_the_turn_before_one_in_flight_is_missed() -> None:
    """No step names it yet, but the call of the next one shows that it was answered."""
    store, layout_at = MemoryStore(), chat(random.Random(1), 100)
    written = Written(JobArchive(store, "nightly", "job"))
    parent = write_run(written, "a", range(1, 4), None, layout_at)
    shown = layout_at(4, written.archive.layout(parent), written.archive.reply_segment(parent))
    written.begin("a", 4, parent, shown)
    assert spent(JobArchive(store, "nightly", "job"))["damaged"] == []
    store.remove(parent.key)
    assert spent(JobArchive(store, "nightly", "job"))["damaged"] == [parent.key]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("harm", [lose, flip])
def test_a_batchs_budget_is_spent_all_the_same(
    harm: Callable[[MemoryStore, str], None], again: bool
) -> None:
    """By the ends of the runs that began the job."""
    inner, _ = job(again=again)
    for pack in PACKS:
        harm(inner, pack)
    spent = spent_in(PackedStore(inner), "nightly")
    times = 2 if again else 1
    assert spent == Amount(turns=TURNS * times, tokens=44_000 * times, usd=4.0 * times)


def test_a_turn_that_began_and_has_no_reply_is_none() -> None:
    """A job that is cancelled between two turns has an end that names the one that it was to take,
    since a reset may go back to before its call.
    """
    written = Written(JobArchive(MemoryStore(), "nightly", "job"))
    last = write_run(written, "a", range(1, 4), None, chat(random.Random(1), 100))
    written.archive.write_end(NewEnd(run="a", turn=4, parent=last, status="cancelled"))
    assert standing_of(written.archive).turns == 3
    assert spent_in(written.archive.store, "nightly").turns == 3
    assert NewEnd(run="b", turn=1, parent=None, status="failed").turns == 0


@pytest.mark.parametrize(("status", "again"), [("cancelled", False), ("failed", True)])
def test_an_attempt_over_which_a_worker_died_counts_once_its_job_has_ended(
    status: str, again: bool
) -> None:
    """Its turn has no reply, and no failure tells of it: the end of the run alone has what was
    booked for it, also where the job was begun anew since.
    """
    written = Written(JobArchive(MemoryStore(), "nightly", "job"))
    layout_at = chat(random.Random(1), 100)
    last = write_run(written, "a", range(1, 4), None, layout_at)
    shown = layout_at(4, written.archive.layout(last), written.archive.reply_segment(last))
    written.begin("a", 4, last, shown)
    before = spent(written.archive)
    assert (before["calls"], before["failed_tokens"]) == (3, 0)
    used = Usage(prompt=before["prompt"] + 700, completion=before["completion"])
    cost = round(before["cost_usd"] + 0.25, 9)
    written.archive.write_end(
        NewEnd(run="a", turn=4, parent=last, status=status, usage=used, cost_usd=cost)
    )
    if again:
        write_run(written, "b", range(1, 4), None, layout_at)
    times = 2 if again else 1
    assert spent(written.archive) == {
        **before,
        "calls": 3 * times,
        "prompt": before["prompt"] * times + 700,
        "completion": used.completion * times,
        "cost_usd": round(before["cost_usd"] * times + 0.25, 9),
        "failed_tokens": 700,
        "failed_usd": 0.25,
    }


def test_turns_for_which_no_model_was_called_are_no_calls() -> None:
    """Those of a replay, and a user's own statement."""
    written = Written(JobArchive(MemoryStore(), "nightly", "job"))
    parent = write_run(written, "a", range(1, 3), None, chat(random.Random(1), 100))
    parent = replayed(written, "a", range(3, 4), parent)
    replayed(written, "a", range(4, 5), parent, Capture.EDITED)
    told = spent(written.archive)
    assert (told["calls"], told["unreported"]) == (2, 0)


def test_what_a_record_answers_takes_nothing_of_a_batchs_budget() -> None:
    """Be it answered in a run of its job, or in a fork, whose end says what its record paid for."""
    store = MemoryStore()
    layout_at = chat(random.Random(1), 100)
    written = Written(JobArchive(store, "nightly", "job"))
    write_run(written, "a", range(1, 4), None, layout_at)
    before = spent_in(store, "nightly")
    assert before == Amount(turns=3, tokens=342, usd=0.003)
    frozen = replayed(written, "b", range(1, 4), None)
    written.archive.write_end(NewEnd(run="b", turn=3, parent=frozen, status="succeeded"))
    fork = Written(JobArchive(store, "nightly", "fork"))
    write_replay(fork.archive, "id", {"frozen": True}, "2026-11-02T09:12:44+00:00")
    used = Usage(prompt=306, completion=36)
    last = replayed(fork, "c", range(1, 4), None)
    fork.archive.write_end(
        NewEnd(run="c", turn=3, parent=last, status="succeeded", usage=used, cost_usd=0.003)
    )
    assert spent_in(store, "nightly") == before


def test_a_price_in_quotes_is_counted() -> None:
    """A form takes it for the number that it is."""
    store = MemoryStore()
    written = Written(JobArchive(store, "nightly", "job"))
    last = write_run(written, "a", range(1, 2), None, chat(random.Random(1), 100))
    assert last is not None
    price = str(unseal(last.key, store.get(last.key)).header["cost_usd"])
    forged = with_fields(store, last.key, {"cost_usd": price})
    assert spent(JobArchive(forged, "nightly", "job"))["cost_usd"] == float(price)


def test_a_prompt_that_does_not_say_what_broke_it_was_not_broken() -> None:
    """A form takes what is left out for its default."""
    store = MemoryStore()
    written = Written(JobArchive(store, "nightly", "job"))
    last = write_run(written, "a", range(1, 2), None, chat(random.Random(1), 100))
    assert last is not None
    prefix = {"share": 1.0, "stable": 1, "new": 0, "tail": 0}
    forged = with_fields(store, last.key, {"prefix": prefix})
    assert spent(JobArchive(forged, "nightly", "job"))["moved_prefixes"] == 0


def with_fields(store: MemoryStore, key: str, fields: dict[str, Any]) -> MemoryStore:
    """The store with other fields in an object's header, and a digest that fits."""
    archived = unseal(key, store.get(key))
    parts = archived.parts()
    store.replace(key, seal(key, header({**archived.header, **fields}, parts), parts)[0])
    again = MemoryStore()
    for name in store.list(""):
        again.put_if_absent(name, store.get(name))
    return again
