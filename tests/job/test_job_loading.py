"""A checkpoint that was handed over in parts, also by a worker of an earlier release."""

from __future__ import annotations

import base64
import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from plain_loop import PlainLoop, statements

from activities.build import this_build
from activities.record import FIRST_PART_BYTES, CheckpointPart, LoadOrder
from runtime.base.digests import canonical_json
from runtime.base.values import StepRef
from runtime.job import checkpoint
from workflows import continuing
from workflows.continuing import PART_BYTES

KNOWS, KNOWS_NOT = True, False
"""Whether a worker knows of parts that have another size than the first."""


class Answers:
    """What the workers say that take the orders, one after the other."""

    def __init__(self, state: dict[str, Any], workers: Iterator[bool]) -> None:
        self._data = zlib.compress(canonical_json(state), 6)
        self._workers = workers
        self.sizes: list[int] = []

    async def __call__(self, _: str, order: LoadOrder, *__: Any, **___: Any) -> CheckpointPart:
        """The part, as ``load_checkpoint`` makes it."""
        size = order.size if next(self._workers) else FIRST_PART_BYTES
        self.sizes.append(size)
        return CheckpointPart(
            data=base64.b64encode(self._data[order.part * size :][:size]).decode(),
            parts=-(-len(self._data) // size),
            size=size,
            interpreter=checkpoint.INTERPRETER,
            replay_version=this_build().replay_version,
        )


@pytest.mark.parametrize(
    ("workers", "sizes"),
    [([KNOWS] * 3, [PART_BYTES] * 3), ([KNOWS_NOT, KNOWS], [FIRST_PART_BYTES] * 2)],
    ids=["this-release", "begun-by-one-before"],
)
async def test_it_is_whole_whoever_gave_its_first_part(
    workers: list[bool], sizes: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where that is of the size of before, as in a history, the others are asked for in that."""
    loop = PlainLoop(
        tmp_path,
        statements("x = 1", "x = 2"),
        options={"context_tokens": 10**7},
        messages={2: (random.Random(7).randbytes(800_000).hex(),)},
    )
    loop.run()
    state = checkpoint.dump(loop.job)
    answers = Answers(state, iter(workers))
    monkeypatch.setattr(continuing, "result_of", answers)

    job = await continuing.load(loop.job.spec, StepRef(key="k", digest="d"))

    assert answers.sizes == sizes
    assert checkpoint.dump(job) == state
