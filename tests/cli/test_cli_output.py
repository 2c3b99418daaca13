"""Where what commands print leads."""

import os
import pty
import sys

import pytest

from runtime.base.errors import HoldfastError
from runtime.cli import output


def test_a_terminal_that_is_gone_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed before the process hears of it fails nothing."""
    ours, theirs = pty.openpty()
    with output._kept(theirs, sys.stdout) as stream:
        monkeypatch.setattr(output, "_own", stream)
        os.close(theirs)
        output.say("seen")
        assert os.read(ours, 100) == b"seen\r\n"
        os.close(ours)
        output.say("lost")
        output.say("lost too")


def test_another_place_that_takes_nothing_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no terminal."""
    full = os.open("/dev/full", os.O_WRONLY)
    stream = output._kept(full, sys.stdout)
    monkeypatch.setattr(output, "_own", stream)
    with pytest.raises(HoldfastError, match="cannot be written: No space left"):
        output.say("lost")
    # What waits in the stream is written once more as it is closed.
    with pytest.raises(HoldfastError, match="No space left"):
        stream.close()
    os.close(full)
