"""What went wrong with a model call, as an error that Temporal retries or does not, in the
provider's own words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

import httpx
from temporalio.exceptions import ApplicationError

from activities._captured import CapturedCall, Silence, TooLarge
from activities._causes import causes_of
from activities._charsets import plain_type
from activities._cut_streams import error_words
from activities._packages import package_missing
from activities._unpacked import Garbled
from activities._unstreamed import (
    EmptyResponse,
    ErrorReply,
    NotAModel,
    TornReply,
    fault_in,
    first_in,
)
from runtime.history.condensers.window_errors import is_window_error

MOST_WORDS = 2_000
"""Bytes of a provider's message that are kept; a failure stands in the workflow's history."""

MOST_READ = 8_000
"""Characters of it in which a reason is looked for: some patterns take the square of their
number.
"""

LONGEST_WAIT = timedelta(hours=24)

UNSENDABLE = (
    "a header cannot be sent: the key, or a value of 'extra_headers', has a line break, another"
    " control character or one beyond ASCII in it"
)
_ILLEGAL = "Illegal header value"


class FailureKind(StrEnum):
    """The type names of the errors that a model call ends with."""

    AUTHENTICATION = "AuthenticationError"
    PAYMENT = "PaymentRequiredError"
    PERMISSION = "PermissionDeniedError"
    NOT_FOUND = "NotFoundError"
    BAD_REQUEST = "BadRequestError"
    WINDOW = "ContextWindowExceeded"
    POLICY = "ContentPolicyViolation"
    RATE_LIMIT = "RateLimitError"
    SERVER = "ServerError"
    TIMEOUT = "ModelTimeout"
    CONNECTION = "ConnectionFailed"
    BROKEN = "StreamBroken"
    PACKAGE = "MissingPackage"
    NOT_A_MODEL = "NotAModel"
    WINDOW_FULL = "WindowFull"
    CUT = "CallCut"

    @property
    def retryable(self) -> bool:
        """Whether the same call may go well later."""
        return self in _RETRYABLE


class StreamBroken(Exception):
    """A stream ended without the provider's word that it is complete."""


_RETRYABLE = frozenset(
    {
        FailureKind.RATE_LIMIT,
        FailureKind.SERVER,
        FailureKind.TIMEOUT,
        FailureKind.CONNECTION,
        FailureKind.BROKEN,
    }
)
_KEY_REFUSED = 401
_BY_STATUS = {
    _KEY_REFUSED: FailureKind.AUTHENTICATION,
    402: FailureKind.PAYMENT,
    403: FailureKind.PERMISSION,
    404: FailureKind.NOT_FOUND,
    408: FailureKind.TIMEOUT,
    409: FailureKind.SERVER,
    413: FailureKind.WINDOW,
    425: FailureKind.SERVER,
    429: FailureKind.RATE_LIMIT,
    504: FailureKind.TIMEOUT,
}
_BY_CLASS = {
    "ContextWindowExceededError": FailureKind.WINDOW,
    "ContentPolicyViolationError": FailureKind.POLICY,
    "Timeout": FailureKind.TIMEOUT,
}
_CREDENTIALS = re.compile(r"credentials|api[ _-]?key", re.IGNORECASE)
"""In the words of an error of a call for which nothing was sent: a library found no key, and asked
nobody.
"""

_NUMBER = re.compile(r"\d+(\.\d+)?", re.ASCII)

_NOT_SAID = "Traceback (most recent call last)"
"""Where litellm's words go on with its own stack."""

_LITELLM = re.compile(
    r"(litellm\.)?\w*(Error|Exception|Timeout)\s*:\s*(\w+(Exception|Error)\s*-\s*)?"
)


def failure_of(error: Exception, captured: CapturedCall) -> ApplicationError:
    """The error to raise for ``error``, which ended the call ``captured``."""
    cause = _unwrapped(error)
    # Masked first: half a secret is found by no search.
    words = captured.secrets.mask(_words(cause, captured))[:MOST_READ]
    # Temporal takes no lone surrogates, which JSON may have: the call would be tried for ever.
    words = words.encode("utf-8", "replace").decode("utf-8")
    kind = _kind(cause, words, captured)
    message = _bounded(words)
    if captured.status is not None and captured.status >= 400:
        cut = ", the first megabyte of a longer answer" if captured.cut else ""
        message = f"{message} (HTTP {captured.status}{cut})"
    delay = retry_after(captured.headers, datetime.now(UTC)) if kind.retryable else None
    # Another worker may have a newer key; how often that is tried is counted.
    refused = kind is FailureKind.AUTHENTICATION and captured.status == _KEY_REFUSED
    retried = kind.retryable or refused
    return ApplicationError(
        message, type=kind.value, non_retryable=not retried, next_retry_delay=delay
    )


def _unwrapped(error: Exception) -> Exception:
    original = getattr(error, "original_exception", None)
    return _unwrapped(original) if isinstance(original, Exception) else error


def _kind(cause: Exception, words: str, captured: CapturedCall) -> FailureKind:
    failure = captured.failure or fault_in(captured) or cause
    refused = isinstance(failure, ErrorReply) or (
        captured.status is not None and captured.status >= 400
    )
    # Before the status: such a page comes with 200, as a reply does.
    if isinstance(failure, NotAModel):
        return FailureKind.NOT_A_MODEL
    if _package(cause, captured) is not None:
        return FailureKind.PACKAGE
    if isinstance(failure, Silence):
        return FailureKind.TIMEOUT
    if isinstance(failure, StreamBroken | TooLarge | Garbled | EmptyResponse | TornReply):
        return FailureKind.BROKEN
    if _is_unsendable(cause, captured):
        return FailureKind.AUTHENTICATION
    if isinstance(failure, httpx.TransportError) and not refused:
        return FailureKind.BROKEN if captured.size else FailureKind.CONNECTION
    if captured.attempt is None and captured.status is None and _CREDENTIALS.search(words):
        return FailureKind.AUTHENTICATION
    if captured.attempt is None and isinstance(cause, TypeError):
        # litellm gave a client an argument that it does not take: it will again.
        return FailureKind.BAD_REQUEST
    # What came over the wire counts more than what litellm makes of it.
    status = captured.status if refused else getattr(cause, "status_code", None)
    if isinstance(failure, ErrorReply):
        status = _code_in(captured)
    # What says nothing of whose fault it is may pass: it is tried again.
    status = status if isinstance(status, int) and status >= 400 else 500
    named = _BY_CLASS.get(type(cause).__name__)
    if named is not None and status < 500:
        return named
    code = _code_in(captured) if refused else None
    if is_window_error(words, error_type=type(cause).__name__, code=code, status=status):
        return FailureKind.WINDOW
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return FailureKind.BAD_REQUEST if 400 <= status < 500 else FailureKind.SERVER


def _package(cause: Exception, captured: CapturedCall) -> str | None:
    """What to install for a call that sent nothing, for a package was missing."""
    told = getattr(cause, "status_code", None)
    refused = isinstance(told, int) and told < 500
    return None if captured.attempt is not None or refused else package_missing(cause)


def _words(cause: Exception, captured: CapturedCall) -> str:
    """What the provider said; where it said nothing, what the transport or litellm did."""
    if captured.status is not None and captured.status >= 400 and captured.size:
        said = _said(captured)
        if said:
            return said
    if _is_unsendable(cause, captured):
        return UNSENDABLE
    failure = captured.failure or fault_in(captured)
    if failure is not None and (captured.status is None or captured.status < 400):
        return str(failure) or type(failure).__name__
    if (package := _package(cause, captured)) is not None:
        return package
    if captured.succeeded and (told := error_words(captured)):
        return told
    text = str(getattr(cause, "message", None) or cause) or type(cause).__name__
    # Its names stand in front of each other where one of its errors was made of another.
    at = 0
    while (name := _LITELLM.match(text, at)) and at < name.end() < len(text):
        at = name.end()
    text = text[at:]
    return text.partition(_NOT_SAID)[0].strip() or text


def _is_unsendable(cause: Exception, captured: CapturedCall) -> bool:
    """Whether a header cannot be sent: the transport refuses it, in words that quote it escaped,
    where no search finds a key; or it cannot be encoded, so that nothing reached the transport.
    """
    failure = captured.failure or cause
    if isinstance(failure, httpx.LocalProtocolError):
        return str(failure).startswith(_ILLEGAL)
    return captured.attempt is None and any(
        isinstance(one, UnicodeEncodeError) and one.encoding == "ascii" for one in causes_of(cause)
    )


def _said(captured: CapturedCall) -> str:
    """The message in an error response's body: the field where providers put it, else the text."""
    headers = {"content-type": plain_type(captured.content_type)}
    # By httpx, which knows the charset that the headers name.
    text = httpx.Response(captured.status or 500, headers=headers, content=captured.content).text
    try:
        message = _message_in(json.loads(text))
    except (ValueError, RecursionError):
        message = None
    return (message or text).strip()


def _code_in(captured: CapturedCall) -> str | int | None:
    """The provider's own code for the error, where its body has one."""
    value = first_in(captured.said)
    error = value.get("error") if isinstance(value, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str | int) else None


def _message_in(value: Any) -> str | None:
    if isinstance(value, list) and value:
        return _message_in(value[0])
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        return None
    for name in ("error", "message", "detail", "errors"):
        if value.get(name):
            return _message_in(value[name])
    return None


def retry_after(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """How long the provider asks to wait (RFC 9110, section 10.2.3; OpenAI's header in milliseconds
    first); None where it says nothing that can be meant.
    """
    lowered = {name.lower(): value.strip() for name, value in headers.items()}
    value = lowered.get("retry-after", "")
    for number, seconds in ((lowered.get("retry-after-ms", ""), 0.001), (value, 1.0)):
        if _NUMBER.fullmatch(number):
            # One far off must not hold a job for ever.
            wait = timedelta(seconds=min(float(number) * seconds, LONGEST_WAIT.total_seconds()))
            # To wait for nothing is no wait: Temporal makes its own of it, which is to be counted.
            if wait:
                return wait
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    wait = (at if at.tzinfo else at.replace(tzinfo=UTC)) - now
    # A date in the past is a clock's that differs from ours: it asks nobody to try at once.
    return min(wait, LONGEST_WAIT) if wait > timedelta(0) else None


def _bounded(text: str) -> str:
    data = text.encode("utf-8", "replace")
    return text if len(data) <= MOST_WORDS else data[:MOST_WORDS].decode("utf-8", "ignore") + "…"
