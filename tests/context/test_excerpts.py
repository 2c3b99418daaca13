"""Level 0: whole lines around a position, within the budget, the same at every call."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.context.excerpts import (
    READER_BYTES,
    READER_TOKENS,
    Excerpt,
    basis_of,
    excerpt,
    position,
)
from runtime.context.source_text import LINE_BYTES, NOT_UTF8, SourceText
from runtime.context.sources import ALL_TOKENS, ReadRequest


def by_words(text: str) -> int:
    """A counter in which a line of one word is one token."""
    return len(text.split())


def by_fours(text: str) -> int:
    """A counter in which four characters are one token."""
    return math.ceil(len(text) / 4)


def at_least_three(text: str) -> int:
    """A counter for which the sum over lines exceeds, and sometimes falls short of, the count of
    the whole.
    """
    return max(3, len(text) // 2 + text.count("b"))


def of(text: str, pos: str, tokens: int) -> Excerpt:
    """The excerpt of ``text`` with one token a word."""
    return excerpt(SourceText.of(text.encode()), pos, tokens, by_words)


TEN = "\n".join(f"line{number}" for number in range(10)) + "\n"


@pytest.mark.parametrize(
    ("pos", "tokens", "first", "last"),
    [
        ("0:0", 3, 0, 3),
        ("4", 3, 4, 7),
        ("4:2", 3, 4, 7),
        ("8", 4, 6, 10),
        ("999", 2, 8, 10),
        ("/ine5", 2, 5, 7),
        ("/line1\nline2", 2, 1, 3),
        ("3", 10, 0, 10),
        ("3", 0, 3, 3),
        ("3", ALL_TOKENS, 0, 10),
    ],
)
def test_the_window_starts_at_the_position_and_fills_up_at_the_end(
    pos: str, tokens: int, first: int, last: int
) -> None:
    """Down from the line of ``pos``; up where the source ends before the budget."""
    shown = of(TEN, pos, tokens)
    assert shown == Excerpt(
        text="\n".join(f"line{number}" for number in range(first, last)),
        first_line=first,
        last_line=last,
        total_lines=10,
        tokens=last - first,
        truncated=last - first < 10,
    )


def test_a_position_from_the_end_follows_it() -> None:
    """The last lines, however many there are; more than there are is the beginning."""
    assert of(TEN, "-3", 3).text == "line7\nline8\nline9"
    assert (of(TEN, "-1", 3).first_line, of(TEN, "-10", 3).first_line) == (7, 0)
    assert of(TEN, "-99", 2).first_line == 0


@pytest.mark.parametrize(
    "pos", ["", "x", "-0", "--1", "1:", ":1", "1:2:3", "/", "1 ", "\u0661", "/absent"]
)
def test_other_positions_are_value_errors(pos: str) -> None:
    """Nothing is guessed from a position that has no meaning."""
    with pytest.raises(
        ValueError,
        match=r"pos must be 'line', 'line:column', '-lines' or '/text'|no line contains 'absent'",
    ):
        of(TEN, pos, 5)


def test_a_negative_budget_is_a_value_error() -> None:
    """Only ``ALL_TOKENS`` is negative."""
    with pytest.raises(ValueError, match="tokens must be a count or All, not -2"):
        of(TEN, "0", -2)


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\r\nb\rc\n", ["a", "b", "c"]),
        (b"a\x0cb\xe2\x80\xa8c\n", ["a\x0cb\u2028c"]),
        (b"\xef\xbb\xbfmark", ["mark"]),
        ("wide\nté".encode("utf-16"), ["wide", "té"]),
        ("wide\nté".encode("utf-32"), ["wide", "té"]),
    ],
)
def test_lines_are_what_pythons_parser_counts(raw: bytes, lines: list[str]) -> None:
    """Only line feeds and carriage returns end lines; byte order marks are obeyed and not shown."""
    shown = excerpt(SourceText.of(raw), "0", 1000, by_words)
    assert (shown.text, shown.total_lines, shown.last_line) == (
        "\n".join(lines),
        len(lines),
        len(lines),
    )


def test_a_very_long_line_is_cut_with_a_mark() -> None:
    """The rest of the excerpt goes on after it."""
    shown = of("é" * 5000 + "\nnext\n", "0", 100)
    assert shown.text == "é" * (LINE_BYTES // 2) + " [line cut: 5,904 more bytes]\nnext"
    assert (shown.last_line, shown.truncated) == (2, True)


def test_a_column_moves_along_a_long_line_and_means_nothing_in_a_short_one() -> None:
    """So a minified file can be read piece by piece."""
    digits = "".join(str(number % 10) for number in range(5000))
    assert of(digits + "é" * 10, "0:4995", 100).text == "[line from column 4995] 56789" + "é" * 10
    assert of("short", "0:3", 100).text == "short"


def test_a_line_longer_than_the_budget_is_cut_to_it() -> None:
    """One line is always shown as far as the budget goes, marked."""
    shown = excerpt(SourceText.of(b"abcdefgh" * 100 + b"\nnext\n"), "0", 10, by_fours)
    assert shown.text == "abcdefgh" * 4 + "ab [cut]"
    assert (shown.tokens, shown.first_line, shown.last_line, shown.truncated) == (10, 0, 1, True)


def test_bytes_that_are_no_utf8_are_replaced_and_noted_within_the_budget() -> None:
    """The note is there only if the lines shown have such bytes."""
    source = SourceText.of(b"good\ncaf\xe9\ngood again\n")
    assert excerpt(source, "0", 100, by_words).text == f"good\ncaf\ufffd\ngood again\n{NOT_UTF8}"
    assert excerpt(source, "0", 1, by_words).text == "good"
    assert excerpt(source, "1", 30, lambda text: 2 * by_words(text)).tokens <= 30


def test_binary_content_is_told_and_not_shown() -> None:
    """A NUL early on makes it binary."""
    shown = excerpt(SourceText.of(b"\x7fELF\0\1\2"), "0", 100, by_words)
    assert shown == Excerpt("[binary content, not shown as text]", 0, 0, 0, 6, truncated=True)


def test_all_stops_at_the_readers_own_bounds() -> None:
    """Tokens and bytes both bound it, and the truncation is told."""
    many = of("word\n" * (READER_TOKENS + 10), "0", ALL_TOKENS)
    assert (many.tokens, many.last_line, many.truncated) == (READER_TOKENS, READER_TOKENS, True)
    heavy = of(("x" * 999 + "\n") * 1000, "0", ALL_TOKENS)
    assert (heavy.last_line, heavy.truncated) == (READER_BYTES // 1000, True)


def test_a_basis_changes_with_each_part_it_stands_for() -> None:
    """Fingerprint, position, budget and level; and the kind of file where the text depends on
    it.
    """
    request = ReadRequest(obj_id="n", path="a.py", tokens=5)
    variants = [
        basis_of(request, "f"),
        basis_of(request, "g"),
        basis_of(request.model_copy(update={"pos": "1:0"}), "f"),
        basis_of(request.model_copy(update={"tokens": 6}), "f"),
        basis_of(request.model_copy(update={"lod": 1}), "f"),
        basis_of(request.model_copy(update={"lod": 1, "path": "a.md"}), "f"),
    ]
    assert len(set(variants)) == len(variants)
    assert basis_of(request.model_copy(update={"path": "b.md", "obj_id": "m"}), "f") == variants[0]


texts = st.lists(st.text(st.sampled_from("ab \té\u2028"), max_size=20), max_size=30).map("\n".join)
counters = st.sampled_from([by_words, by_fours, at_least_three, len])


@given(text=texts, line=st.integers(0, 40), tokens=st.integers(0, 200), count=counters)
def test_every_excerpt_is_whole_lines_within_the_budget(
    text: str, line: int, tokens: int, count: object
) -> None:
    """Whole consecutive lines of the source that hold the position, or one line cut with a mark, or
    nothing.
    """
    assert callable(count)
    source = SourceText.of(text.encode())
    lines = text.removesuffix("\n").split("\n") if text else []
    shown = excerpt(source, str(line), tokens, count)
    assert shown == excerpt(source, str(line), tokens, count)
    assert shown.tokens == count(shown.text) <= tokens or shown.text == ""
    assert shown.total_lines == source.total_lines == len(lines)
    here = position(source, str(line)).line
    covered = lines[shown.first_line : shown.last_line]
    if shown.text.endswith(" [cut]"):
        assert lines[here].startswith(shown.text.removesuffix(" [cut]")) and covered == [
            lines[here]
        ]
    else:
        assert shown.text == "\n".join(covered)
        assert not covered or shown.first_line <= here < shown.last_line
        assert shown.truncated == (len(covered) < len(lines))


@given(text=texts, count=counters)
def test_a_source_that_fits_is_shown_whole_from_any_position(text: str, count: object) -> None:
    """The budget that the whole text counts is enough for it."""
    assert callable(count)
    source = SourceText.of(text.encode())
    whole = excerpt(source, "0", 10_000, count)
    assert whole.text == text.removesuffix("\n")
    tokens = max(count(whole.text), len(text) // 16 + 1)
    for line in range(0, source.total_lines, 5):
        assert excerpt(source, str(line), tokens, count) == whole


@given(data=st.binary(max_size=400), line=st.integers(0, 10), tokens=st.integers(0, 100))
def test_any_bytes_give_text_that_utf8_can_hold(data: bytes, line: int, tokens: int) -> None:
    """No surrogates, whatever the source holds, and never over budget."""
    shown = excerpt(SourceText.of(data), str(line), tokens, by_fours)
    assert shown.text.encode("utf-8").decode("utf-8") == shown.text
    assert by_fours(shown.text) <= tokens


@given(text=texts)
def test_offsets_of_lines_agree_with_splitting(text: str) -> None:
    """Finding a line by offset, forwards and backwards, is splitting at line feeds."""
    source = SourceText.of(text.encode())
    lines = [line.text for line in source.down_from(0)]
    assert lines == (text.removesuffix("\n").split("\n") if text else [])
    for number in range(len(lines)):
        start = source.start_of(number)
        assert source.line_at(start) == number
        assert [line.text for line in source.up_from(start)] == lines[:number][::-1]
    assert source.start_of(len(lines) + 5) == len(source.data)
