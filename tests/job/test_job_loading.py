"""A checkpoint that was handed over in parts, by workers of other hosts and of earlier releases."""

from __future__ import annotations

import random
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from plain_loop import PlainLoop, statements

from activities import checkpoints
from activities.record import FIRST_PART_BYTES, CheckpointPart, LoadOrder
from runtime.base.digests import canonical_json
from runtime.base.values import StepRef
from runtime.job import checkpoint
from workflows import continuing
from workflows.continuing import PART_BYTES


class Worker(Enum):
    """One of this release, and one whose zlib makes other bytes; one that has all of a state
    compressed as a whole, and one that knows of no size but that of the first parts.
    """

    NOW = "now"
    OTHER_ZLIB = "other zlib"
    WHOLE = "whole"
    FIRST_SIZE = "first size"


_TAKEN_FOR: dict[Worker, dict[str, Any]] = {
    Worker.WHOLE: {"start": None},
    Worker.FIRST_SIZE: {"start": None, "size": FIRST_PART_BYTES},
}
"""What workers of before had of an order."""


class Answers:
    """What the workers say that take the orders, one after the other."""

    def __init__(
        self, state: dict[str, Any], workers: Iterator[Worker], patch: pytest.MonkeyPatch
    ) -> None:
        self._state = canonical_json(state)
        self._workers = workers
        self._patch = patch
        self.sizes: list[int] = []

    async def __call__(self, _: str, order: LoadOrder, *__: Any, **___: Any) -> CheckpointPart:
        """The part, as ``load_checkpoint`` makes it."""
        worker = next(self._workers)
        with self._patch.context() as patch:
            if worker is Worker.OTHER_ZLIB:
                patch.setattr(checkpoints, "_LEVEL", 1)
            taken = order.model_copy(update=_TAKEN_FOR.get(worker, {}))
            self.sizes.append(taken.size)
            return checkpoints.part_of(self._state, taken)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "sizes"),
    [
        ([Worker.NOW] * 3, [PART_BYTES] * 3),
        ([Worker.NOW, Worker.OTHER_ZLIB, Worker.NOW], [PART_BYTES] * 3),
        ([Worker.WHOLE, Worker.NOW, Worker.NOW], [PART_BYTES] * 3),
        ([Worker.FIRST_SIZE, Worker.NOW], [FIRST_PART_BYTES] * 2),
    ],
    ids=["this-release", "of-different-hosts", "begun-by-one-before", "begun-by-the-first"],
)
async def test_it_is_whole_whoever_gave_its_first_part(
    workers: list[Worker], sizes: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where that is as in a history of before, the others are asked for in that way; else each is
    compressed by itself.
    """
    loop = PlainLoop(
        tmp_path,
        statements("x = 1", "x = 2"),
        options={"context_tokens": 10**7},
        messages={2: (random.Random(7).randbytes(800_000).hex(),)},
    )
    loop.run()
    state = checkpoint.dump(loop.job)
    answers = Answers(state, iter(workers), monkeypatch)
    monkeypatch.setattr(continuing, "result_of", answers)

    job = await continuing.load(loop.job.spec, StepRef(key="k", digest="d"))

    assert answers.sizes == sizes
    assert checkpoint.dump(job) == state
