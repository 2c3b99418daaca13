"""What libraries log while jobs run."""

import logging

import pytest

from runtime.cli.logs import _Lines


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("Worker is slow {'error': 'Status { code: NotFound }'}", "warning: Worker is slow\n"),
        ("Worker is slow ({'attempt': 1})", "warning: Worker is slow\n"),
        ("Worker is\nslow \x1b[31m", "warning: Worker is slow\n"),
        ("Query not found when attempting to respond to it {'error': 'Status { code: NotFound }'}", ""),
        ("Completing activity as failed ({'activity_id': 'turn-1'})", ""),
    ],
)
def test_a_record_is_a_line_without_its_fields(message: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A warning is one line on stderr; what the command tells by itself, or what mends itself, is none."""
    _Lines().emit(logging.makeLogRecord({"msg": message, "levelno": logging.WARNING, "levelname": "WARNING"}))
    assert capsys.readouterr() == ("", told)
