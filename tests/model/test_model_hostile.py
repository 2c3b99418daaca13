"""Whoever answers a call writes the response: none takes more work than its size allows."""

import pytest

from activities._captured import CapturedCall, Limits
from activities._failures import failure_of
from activities._secrets import Secrets
from tests.work import work


def answered(body: bytes, status: int = 200, **headers: str) -> CapturedCall:
    """A call whose response is ``body``."""
    captured = CapturedCall(
        lambda _: "1", limits=Limits(), secrets=Secrets(), turn=1, temporal_attempt=1
    )
    captured.attempt = "1"
    captured.answering(status, {"content-type": "text/html", **headers})
    captured.received(body)
    return captured


def told(body: bytes) -> str:
    """The words of the failure that a page is."""
    return failure_of(Exception("no reply"), answered(body)).message.partition(": ")[2]


@pytest.mark.parametrize(
    "piece",
    [
        b"<!---->",
        b"<!-- ",
        b"<!--x--> \n",
        b"<head ",
        b"<script>",
        b"<style></styl>",
        b"<head></head",
        b"<title",
        b"<",
        b"&#1",
        b"</head  ",
        b" ",
    ],
)
@pytest.mark.parametrize("start", [b"", b"<html>"])
def test_reading_a_page_is_work_in_proportion_to_it(piece: bytes, start: bytes) -> None:
    """Comments, elements and tags without end: sixteen times as many are no 256 times the work."""
    small, large = (start + piece * (size // len(piece)) for size in (4_000, 64_000))
    assert work(lambda: told(large)) < 64 * (work(lambda: told(small)) + 0.001)


def test_a_page_behind_comments_is_told_without_what_it_hides() -> None:
    """Comments, scripts, styles and the head, in any case; a tag without an end stays."""
    page = (
        b" <!-- a --><!---->\n<!DOCTYPE html><HEAD><title>Log &amp; in</title></HEAD >"
        b"<style>p{}</Style>One<!-- <p> --> &lt;two<script>3</script\n><p class='4'>five <six"
    )
    assert told(page) == "Log & in One <two five <six"


def test_a_page_with_an_endless_number_is_told() -> None:
    """A character's number of more digits than Python reads."""
    assert told(b"<html>&#" + b"1" * 5_000 + b";").startswith("&#111")


def test_litellms_names_are_taken_off_in_proportion_to_them() -> None:
    """However many of them stand before a message."""
    captured = answered(b"")
    captured.status = None
    small, large = (
        Exception("litellm.APIError: " * (size // 18) + "no such host")
        for size in (30_000, 480_000)
    )
    assert failure_of(large, captured).message == "no such host"
    assert work(lambda: failure_of(large, captured)) < 64 * (
        work(lambda: failure_of(small, captured)) + 0.001
    )
