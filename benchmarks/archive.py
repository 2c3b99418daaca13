"""What the archive costs: bytes, writes, reads and time, for two loads.

``python benchmarks/archive.py --help``.

(A) an append-only chat with 1.2 kB of new random text a turn; (B) a projection of 40 kB in which
one block of 1 kB, chosen at random, changes each turn. Text is random letters, which zstd brings to
72 %: so 1.2 kB of it cannot cost less than 0.87 kB, 1 kB not less than 0.72 kB.

Columns, bytes and milliseconds per turn: ``raw`` is the request as sent, ``alone`` zstd -3 of each
request by itself (of a sample); ``new`` is what the request adds (its literals and its recipe),
``again`` what is stored once more so that no request needs more than 40 reads; ``objects`` is
everything that is written, headers, layouts, replies and digests included; ``files``, ``bytes`` and
``disk`` are the files of a directory, what is in them and their blocks of 4 kB, with packs, once
the job has ended.
``open`` puts a request together from nothing, as another process does: its reads, and its
processor time with the objects in memory (worst and median of a sample over the whole job, each
the best of three). The last row is what durability and the archive add to a turn of a whole job,
against the same loop with neither (``archive_loop.py``).
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import string
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

# Run as a file, Python looks in this directory and not in the one above.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.leaving import leave
from runtime.archive.container import unseal
from runtime.archive.forms import Capture, NewAttempt, NewEnd, NewStep, StoredReply
from runtime.archive.job import JobArchive
from runtime.archive.requests import RequestReader
from runtime.archive.stores import MemoryStore, ObjectStore, folder_of, open_store
from runtime.archive.verify import verify_job
from runtime.base.values import StepRef
from runtime.projection.segments import (
    Add,
    DeltaPart,
    Keep,
    LayoutDelta,
    Role,
    Segment,
    SegmentKind,
)

_RUN = "019a5b7e-1111-7222-8333-444455556666"
_SAMPLE = 40
_HEAD = (
    json.dumps({"model": "m-1", "temperature": 0, "stream": True, "messages": []})
    .removesuffix("]}")
    .encode()
)

Turn = tuple[LayoutDelta, bytes]


def main() -> None:
    """Run the loads that are asked for and print one row for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, nargs="+", default=[100, 1000, 5000])
    parser.add_argument("--loads", nargs="+", choices=sorted(_LOADS), default=sorted(_LOADS))
    parser.add_argument(
        "--loop", type=int, default=200, help="turns of the loop with and without Temporal; 0: none"
    )
    parser.add_argument("--store", help="where to write (default: a temporary directory)")
    options = parser.parse_args()
    print(
        f"{'load':>4} {'turns':>5} {'raw':>9} {'alone':>9} {'new':>6} {'again':>6} {'objects':>7}"
        f" {'writes':>6} {'files':>5} {'bytes':>6} {'disk':>6} {'reads':>5} {'open ms worst':>13} {'median':>6} {'write ms':>8}"
        f" {'bare ms':>7} {'verify s':>8}"
    )
    for load in options.loads:
        for turns in options.turns:
            with tempfile.TemporaryDirectory() as folder:
                url = options.store or folder
                print(_row(load, turns, open_store(url)).line(load, turns), flush=True)
    if options.loop:
        # Temporal and litellm take seconds to import.
        from benchmarks.archive_loop import main as loop

        loop(options.loop)
        leave()


@dataclass
class Row:
    """The figures of one job. Sums until ``line`` divides them by the turns."""

    raw: int = 0
    alone: list[float] = field(default_factory=list)
    new: int = 0
    again: int = 0
    objects: int = 0
    writes: int = 0
    files: int = 0
    stored: int = 0
    disk: int = 0
    reads: int = 0
    open_ms: list[float] = field(default_factory=list)
    write_s: float = 0.0
    bare_s: float = 0.0
    verify_s: float = 0.0

    def line(self, load: str, turns: int) -> str:
        """The row as text, per turn."""
        return (
            f"{load:>4} {turns:>5} {self.raw / turns:>9.0f} {statistics.mean(self.alone):>9.0f}"
            f" {self.new / turns:>6.0f} {self.again / turns:>6.0f} {self.objects / turns:>7.0f}"
            f" {self.writes / turns:>6.2f} {self.files / turns:>5.2f} {self.stored / turns:>6.0f} {self.disk / turns:>6.0f}"
            f" {self.reads:>5} {max(self.open_ms):>13.2f}"
            f" {statistics.median(self.open_ms):>6.2f} {self.write_s / turns * 1000:>8.2f}"
            f" {self.bare_s / turns * 1000:>7.2f} {self.verify_s:>8.2f}"
        )


class CountingStore:
    """A store that counts what goes through it."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.puts = self.put_bytes = 0

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Count, and put."""
        self.puts += 1
        self.put_bytes += len(data)
        return self._store.put_if_absent(key, data)

    def get(self, key: str) -> bytes:
        """Get."""
        return self._store.get(key)

    def list(self, prefix: str) -> Iterator[str]:
        """List."""
        return self._store.list(prefix)

    def __getattr__(self, name: str) -> Any:
        # Packing, where the store packs.
        return getattr(self._store, name)


def _row(load: str, turns: int, store: ObjectStore) -> Row:
    counting, row = CountingStore(store), Row()
    archive = JobArchive(counting, "bench", f"{load}-{turns}-{time.time_ns()}")
    parent: StepRef | None = None
    sampled: dict[str, bytes] = {}
    every = max(1, turns // _SAMPLE)
    compressor = zstandard.ZstdCompressor(level=3)
    # Seeded: the bare loop below makes the very same requests.
    for turn, (delta, request) in enumerate(_LOADS[load](random.Random(1), turns), 1):
        row.raw += len(request)
        started = time.perf_counter()
        key, parent = _archive_turn(archive, turn, parent, delta, request)
        row.write_s += time.perf_counter() - started
        if turn % every == 0 or turn == turns:
            sampled[key] = request
            row.alone.append(len(compressor.compress(request)))
    row.writes, row.objects = counting.puts, counting.put_bytes
    assert parent is not None
    archive.write_end(NewEnd(run=_RUN, turn=turns, parent=parent, status="succeeded"))
    root = folder_of(store)
    if root is not None:
        sizes = [path.stat().st_size for path in (root / "bench").rglob("*") if path.is_file()]
        row.files, row.stored = len(sizes), sum(sizes)
        row.disk = sum(-(-size // 4096) * 4096 for size in sizes)
    # The same loop with neither archive nor durability: what remains is making the requests.
    started = time.perf_counter()
    for _ in _LOADS[load](random.Random(1), turns):
        pass
    row.bare_s = time.perf_counter() - started
    _measure_parts(row, archive, store)
    _measure_opening(row, archive, store, sampled)
    started = time.perf_counter()
    findings = verify_job(
        JobArchive(_Fresh(store), *archive.prefix.split("/")), [parent] if parent else []
    )
    row.verify_s = time.perf_counter() - started
    assert findings == [], findings[:3]
    return row


class _Fresh(CountingStore):
    """The same objects behind another store, of which this process remembers nothing."""


def _archive_turn(
    archive: JobArchive, turn: int, parent: StepRef | None, delta: LayoutDelta, request: bytes
) -> tuple[str, StepRef]:
    key = archive.begin_attempt(
        NewAttempt(
            run=_RUN, turn=turn, parent=parent, delta=delta, model={"name": "openai/m-1", "temperature": 0},
            capture=Capture.WIRE, request=request, url="http://127.0.0.1:8080/v1/chat/completions",
            headers={"content-type": "application/json"}, started_at="2026-01-01T00:00:00.000000+00:00",
        )
    )  # fmt: skip
    reply = StoredReply(text="", finish_reason="stop", response_id=f"chatcmpl-{turn}", tokens=1)
    record = NewStep(
        run=_RUN, turn=turn, attempt=key, reset_event_id=turn, reply=reply, status_code=200, finished_at="2026-01-01T00:00:01.000000+00:00",
        response=b'{"id":"chatcmpl-%d","choices":[{"message":{"content":""},"finish_reason":"stop"}]}' % turn,
    )  # fmt: skip
    return key, archive.finish_step(record)


def _measure_parts(row: Row, archive: JobArchive, store: ObjectStore) -> None:
    """Stored bytes of requests. An attempt that takes over literals of others stores them again."""
    for key in store.list(f"{archive.prefix}/turns/"):
        if ".attempt-" not in key:
            continue
        archived = unseal(key, store.get(key))
        stored = {part.name: (len(part.stored), part.size) for part in archived.parts()}
        size, full = stored.get("wire", (0, 1))
        level = archived.header["level"]
        # What is new is as large as in the turns that take over nothing; the rest of the frame was
        # stored before.
        fresh = min(full, _NEW_BYTES[archive.prefix.split("/")[1][0]]) if level else full
        row.new += round(size * fresh / full) + sum(
            stored.get(n, (0, 0))[0] for n in ("recipe", "recipe.zst")
        )
        row.again += size - round(size * fresh / full)


def _measure_opening(
    row: Row, archive: JobArchive, store: ObjectStore, sampled: dict[str, bytes]
) -> None:
    """Put sampled requests together: once to count reads and fill a memory store, then, measured,
    from that.
    """
    for key, request in sampled.items():
        memory, reads = MemoryStore(), 0

        # Bound now: each request has a store of its own.
        def read(name: str, memory: MemoryStore = memory) -> bytes:
            nonlocal reads
            reads += 1
            data = store.get(name)
            memory.put_if_absent(name, data)
            return data

        assert RequestReader(read).wire(key) == request
        row.reads = max(row.reads, reads)
        # The best of three: what the others have more is the machine's.
        row.open_ms.append(min(_work_ms(memory, key) for _ in range(3)))


def _work_ms(memory: MemoryStore, key: str) -> float:
    """Milliseconds of this thread's processor time: other programs on the machine are no work of
    ours.
    """
    started = time.thread_time()
    RequestReader(memory.get).wire(key)
    return (time.thread_time() - started) * 1000


def _segment(rng: random.Random, size: int, origin: str) -> Segment:
    text = "".join(rng.choices(string.ascii_letters, k=size))
    return Segment(
        kind=SegmentKind.MESSAGE, origin=origin, role=Role.USER, text=text, tokens=size // 2
    )


def _message(segment: Segment) -> bytes:
    return json.dumps({"role": segment.role.value, "content": segment.text}).encode()


def _chat(rng: random.Random, turns: int) -> Iterator[Turn]:
    body = bytearray(_HEAD)
    for turn in range(turns):
        new = _segment(rng, 1200, f"event:{turn}")
        body += (b", " if turn else b"") + _message(new)
        keep: tuple[DeltaPart, ...] = (Keep(start=0, stop=turn),) if turn else ()
        yield LayoutDelta(parts=(*keep, Add(segment=new))), bytes(body) + b"]}"


def _projection(rng: random.Random, turns: int, count: int = 40) -> Iterator[Turn]:
    blocks = [_segment(rng, 1000, f"node:{n}") for n in range(count)]
    for turn in range(turns):
        place = rng.randrange(count)
        blocks[place] = _segment(rng, 1000, f"node:{turn}")
        parts: list[DeltaPart] = [Add(segment=block) for block in blocks]
        if turn:
            parts = [Keep(start=0, stop=place)] if place else []
            parts.append(Add(segment=blocks[place]))
            parts += [Keep(start=place + 1, stop=count)] if place + 1 < count else []
        yield LayoutDelta(parts=tuple(parts)), _HEAD + b", ".join(map(_message, blocks)) + b"]}"


_LOADS: dict[str, Callable[[random.Random, int], Iterator[Turn]]] = {"A": _chat, "B": _projection}
_NEW_BYTES = {"A": 1233, "B": 1033}


if __name__ == "__main__":
    main()
