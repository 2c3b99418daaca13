"""What of a model's text reaches the terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.cli.text import clean, one_line


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[?1049h\x1b[2J\x1b[1;1Hx", "x"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;ZXZpbA==\x07x", "x"),
        ("\x9d0;title\x9cx", "x"),
        ("\x1bPq#0;2;0;0;0\x1b\\x", "x"),
        ("\x1b(0lqqk\x1b(B", "lqqk"),
        ("\x1bc\x1b7\x1b8x", "x"),
        ("shown\rhidden\x08\x08\x7f\x00\x0b\x0c", "shownhidden"),
        ("\x85\x84x", "x"),
        ("a\u202eb\u202c\u2066c\u2069", "abc"),
        ("\x1b]0;never ended", "0;never ended"),
        ("\x1b\x1b[31m[31mx", "[31mx"),
        ("\x1b", ""),
        ("naïve — 日本語 👩‍👩‍👧 עברית", "naïve — 日本語 👩‍👩‍👧 עברית"),
        ("half \ud83d of a pair", "half \ufffd of a pair"),
    ],
)
def test_sequences(written: str, printed: str) -> None:
    """Control sequences go as a whole; text, line feeds, tabs and scripts of all directions
    stay.
    """
    assert clean(written) == printed


FORBIDDEN = {
    *map(chr, range(0x20)),
    *map(chr, range(0x7F, 0xA0)),
    *"\u202a\u202b\u202c\u202d\u202e",
} - {"\n", "\t"}


@given(st.text(st.characters() | st.sampled_from("\x1b[]\\;0mP\x07\x9b\x9c\x9d\u202e\ud800")))
def test_nothing_a_terminal_obeys_is_left(text: str) -> None:
    """Whatever a model wrote: no control character is left, it can be encoded, and a second pass
    changes nothing.
    """
    cleaned = clean(text)
    assert not FORBIDDEN & set(cleaned)
    cleaned.encode()
    assert clean(cleaned) == cleaned


def test_one_line() -> None:
    """A line of a list stays a line."""
    assert one_line("x = 1\n\n\tif x:\x1b[2K\r\n  pass ") == "x = 1 if x: pass"
