"""The limit of the SDK's deadlock detector, for which there is no option."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from stage import Stage
from temporalio.worker import Worker

from runtime.archive.stores import MemoryStore
from runtime.worker.worker import ACTIVATION_SECONDS, allow_long_activations, make_worker

pytestmark = pytest.mark.server


async def test_the_detector_has_the_limit_of_this_program(stage: Stage) -> None:
    """It stands where the SDK reads it."""
    worker = make_worker(stage.client, MemoryStore(), task_queue="detector")
    inner = cast(Any, worker)._workflow_worker
    assert inner._deadlock_timeout_seconds == ACTIVATION_SECONDS


def test_a_release_of_the_sdk_that_keeps_it_elsewhere_is_refused() -> None:
    """Without it, a busy machine would fail tasks; so no worker starts."""
    for moved in (SimpleNamespace(), SimpleNamespace(_workflow_worker=SimpleNamespace(_timeout=2))):
        with pytest.raises(
            RuntimeError, match="keeps the limit of its deadlock detector elsewhere"
        ):
            allow_long_activations(cast(Worker, moved))
