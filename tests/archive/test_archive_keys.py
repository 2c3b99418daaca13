"""The names of the archive's objects."""

from __future__ import annotations

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
