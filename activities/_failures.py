"""What went wrong with a model call, as an error that Temporal retries or does not, in the
provider's own words.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

import httpx
from temporalio.exceptions import ApplicationError

from activities._packages import package_missing
from activities._recorder import CallRecorder, Silence, TooLarge
from activities._unstreamed import EmptyResponse, ErrorReply, NotAModel, fault_in
from runtime.history.condensers.window_errors import is_window_error

MOST_WORDS = 2_000
"""Bytes of a provider's message that are kept; a failure stands in the workflow's history."""

MOST_READ = 8_000
"""Characters of it in which a reason is looked for: some patterns take the square of their
number.
"""

LONGEST_WAIT = timedelta(hours=24)


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
_BY_STATUS = {
    401: FailureKind.AUTHENTICATION,
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

_NOT_SAID = "Traceback (most recent call last)"
"""Where litellm's words go on with its own stack."""

_LITELLM = re.compile(
    r"^(litellm\.)?\w*(Error|Exception|Timeout)\s*:\s*(\w+(Exception|Error)\s*-\s*)?"
)


def failure_of(error: Exception, recorder: CallRecorder) -> ApplicationError:
    """The error to raise for ``error``, which ended the call that ``recorder`` recorded."""
    cause = _unwrapped(error)
    # Masked first: half a secret is found by no search.
    words = recorder.secrets.mask(_words(cause, recorder))[:MOST_READ]
    kind = _kind(cause, words, recorder)
    message = _bounded(words)
    if recorder.status is not None and recorder.status >= 400:
        cut = ", the first megabyte of a longer answer" if recorder.cut else ""
        message = f"{message} (HTTP {recorder.status}{cut})"
    delay = _retry_after(recorder.headers, datetime.now(UTC)) if kind.retryable else None
    return ApplicationError(
        message, type=kind.value, non_retryable=not kind.retryable, next_retry_delay=delay
    )


def _unwrapped(error: Exception) -> Exception:
    original = getattr(error, "original_exception", None)
    return _unwrapped(original) if isinstance(original, Exception) else error


def _kind(cause: Exception, words: str, recorder: CallRecorder) -> FailureKind:
    failure = recorder.failure or fault_in(recorder) or cause
    refused = isinstance(failure, ErrorReply) or (
        recorder.status is not None and recorder.status >= 400
    )
    if isinstance(failure, NotAModel):
        return FailureKind.NOT_A_MODEL
    if _package(cause, recorder) is not None:
        return FailureKind.PACKAGE
    if isinstance(failure, Silence):
        return FailureKind.TIMEOUT
    if isinstance(failure, StreamBroken | TooLarge | EmptyResponse):
        return FailureKind.BROKEN
    if isinstance(failure, httpx.TransportError) and not refused:
        return FailureKind.BROKEN if recorder.size else FailureKind.CONNECTION
    if recorder.attempt is None and recorder.status is None and _CREDENTIALS.search(words):
        return FailureKind.AUTHENTICATION
    if recorder.attempt is None and isinstance(cause, TypeError):
        # litellm gave a client an argument that it does not take: it will again.
        return FailureKind.BAD_REQUEST
    status = recorder.status if refused else getattr(cause, "status_code", None)
    if isinstance(failure, ErrorReply):
        status = _code_in(recorder)
    status = status if isinstance(status, int) and status >= 400 else 500
    named = _BY_CLASS.get(type(cause).__name__)
    if named is not None and status < 500:
        return named
    code = _code_in(recorder) if refused else None
    if is_window_error(words, error_type=type(cause).__name__, code=code, status=status):
        return FailureKind.WINDOW
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return FailureKind.BAD_REQUEST if 400 <= status < 500 else FailureKind.SERVER


def _package(cause: Exception, recorder: CallRecorder) -> str | None:
    """What to install for a call that sent nothing, for a package was missing."""
    told = getattr(cause, "status_code", None)
    refused = isinstance(told, int) and told < 500
    return None if recorder.attempt is not None or refused else package_missing(cause)


def _words(cause: Exception, recorder: CallRecorder) -> str:
    """What the provider said; where it said nothing, what the transport or litellm did."""
    if recorder.status is not None and recorder.status >= 400 and recorder.size:
        said = _said(recorder)
        if said:
            return said
    failure = recorder.failure or fault_in(recorder)
    if failure is not None and (recorder.status is None or recorder.status < 400):
        return str(failure) or type(failure).__name__
    if (package := _package(cause, recorder)) is not None:
        return package
    text = str(getattr(cause, "message", None) or cause) or type(cause).__name__
    while (shorter := _LITELLM.sub("", text, count=1)) != text and shorter:
        text = shorter
    return text.partition(_NOT_SAID)[0].strip() or text


def _said(recorder: CallRecorder) -> str:
    """The message in an error response's body: the field where providers put it, else the text."""
    headers = {
        name: value
        for name, value in recorder.headers.items()
        if name.lower() != "transfer-encoding"
    }
    try:
        text = httpx.Response(recorder.status or 500, headers=headers, content=recorder.body).text
    except httpx.DecodingError:
        text = recorder.body.decode("utf-8", "replace")
    try:
        found = _message_in(json.loads(text))
    except (json.JSONDecodeError, RecursionError):
        found = None
    return (found or text).strip()


def _code_in(recorder: CallRecorder) -> str | int | None:
    """The provider's own code for the error, where its body has one."""
    try:
        error = json.loads(recorder.content).get("error")
        code = error.get("code") if isinstance(error, dict) else None
    except (ValueError, AttributeError, RecursionError):
        return None
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


def _retry_after(headers: dict[str, str], now: datetime) -> timedelta | None:
    """How long the provider asks to wait (RFC 9110, section 10.2.3; OpenAI's header in milliseconds
    first).
    """
    lowered = {name.lower(): value.strip() for name, value in headers.items()}
    milliseconds, value = lowered.get("retry-after-ms", ""), lowered.get("retry-after", "")
    try:
        if milliseconds:
            wait = timedelta(milliseconds=float(milliseconds))
        elif re.fullmatch(r"\d+(\.\d+)?", value):
            wait = timedelta(seconds=float(value))
        elif value:
            at = parsedate_to_datetime(value)
            wait = (at if at.tzinfo else at.replace(tzinfo=UTC)) - now
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return min(max(wait, timedelta(0)), LONGEST_WAIT)


def _bounded(text: str) -> str:
    data = text.encode("utf-8", "replace")
    return text if len(data) <= MOST_WORDS else data[:MOST_WORDS].decode("utf-8", "ignore") + "…"
