"""What a worker does before any work comes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from activities import _litellm_library
from runtime.worker import worker

PATIENCE = 60.0


def test_interpreters_are_started_while_another_thread_loads_the_model_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are processes of their own: who waits for the library does not wait for them next."""
    begun = Event()
    monkeypatch.setattr(worker, "_warm_interpreters", begun.set)
    monkeypatch.setattr(worker, "_leave_alone", lambda: None)
    monkeypatch.setattr(_litellm_library, "_ready", object())
    with ThreadPoolExecutor(1) as threads:
        # As long as it loads, as ``run`` has another thread do.
        with _litellm_library._lock:
            warming = threads.submit(worker.warm_up)
            assert begun.wait(PATIENCE)
            assert not warming.done()
        warming.result(PATIENCE)
