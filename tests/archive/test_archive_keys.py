"""The names of the archive's objects."""

from __future__ import annotations

import pytest

from runtime.archive import keys


def test_what_lies_beside_an_attempt_lies_there_whatever_its_job_is_called() -> None:
    """A batch and a job may have an object's kind in their names."""
    attempt = keys.attempt_key("b.attempt-1/j.attempt-2", "run", 41, 3)
    place = keys.parse_turn_key(attempt)
    for key, kind in (
        (keys.failure_key(attempt), "failure"),
        (keys.exchange_key(attempt), "exchange"),
    ):
        assert key == attempt.removesuffix("attempt-003") + f"{kind}-003"
        beside = keys.parse_turn_key(key)
        assert place is not None
        assert beside is not None
        assert (beside.job, beside.run, beside.turn, beside.kind) == (
            *(place.job, place.run, place.turn),
            kind,
        )


@pytest.mark.parametrize("job", ["b/turns", "turns/a", "b/ends", "b.attempt-1/a"])
def test_a_job_named_as_a_part_of_keys_has_the_keys_of_others(job: str) -> None:
    """What a key is of is told by its end, whatever its batch and its job are called."""
    prefix = keys.run_prefix(job, "r")
    start, end = keys.run_key(job, "r"), keys.end_key(job, "r")
    attempt, step = keys.attempt_key_in(prefix, 1, 1), keys.step_key(job, "r", 1)

    assert keys.run_key_of(prefix) == start
    assert [key for key in (start, end, attempt, step) if keys.is_end(key)] == [end]
    assert [key for key in (start, end, attempt, step) if keys.is_attempt(key)] == [attempt]
