"""litellm's bookkeeping for callbacks, left out where nobody listens.

For each call litellm makes a payload of all that it knows for its callbacks, prices the call three
times, and hands threads and a queue what they then find nobody for: a third of what a turn cost
here. Its settings switch off parts of that only. So this is the one place where its own methods are
replaced: they do nothing in a call of ours while no callback is registered, and what they did
before everywhere else. ``tests/model/test_model_quiet.py`` counts what is left of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

from activities._captured import current
from activities._handed_over import MESSAGES
from activities._lent import Lent
from activities._reported_usage import reports_usage

_IN_CALLS = (
    "success_handler",
    "failure_handler",
    "handle_sync_success_callbacks_for_async_calls",
    "response_cost_calculator",
    "claim_async_success_log",
)
"""Methods of litellm's ``Logging`` for which None is an answer too: nothing was done, nothing is to
be done, there is no price.
"""

_AWAITED = (
    "async_success_handler",
    "async_failure_handler",
    "dispatch_success_handlers",
    "dispatch_failure_handlers",
)

_LISTS = (
    "callbacks",
    "input_callback",
    "success_callback",
    "failure_callback",
    "_async_input_callback",
    "_async_success_callback",
    "_async_failure_callback",
)
"""Where litellm keeps its callbacks."""


_SIGNATURES = "_remove_thought_signatures_from_messages"
"""litellm's function that makes every message anew, to take out of the ids of calls what Gemini has
put there.
"""


_FIXED = "validate_and_fix_openai_messages"
"""litellm's function that makes every message anew, to see what a message of its user's may be."""

_FILES = "update_messages_with_model_file_ids"
"""litellm's function that looks in every message for files that its proxy keeps."""

_ENDED = "_finalize_completed_stream"
"""What litellm's stream does each time that it is asked for more after its end: it puts the whole
response together.
"""


_SPELLED = "async_maybe_transform"
"""The OpenAI client's function that goes through all of a request, for names that the wire spells
otherwise, and for files: 0.2 ms a message. Ours hold neither.
"""

_CLIENT = ("openai._utils", "openai.resources.chat.completions.completions")
"""Where it has that, and where it imports it to; the latter in 0.3 s, with the first call that goes
by it, unless it is there already.
"""

_TOKENIZER = "json_data"
"""litellm's copy of a tokenizer, parsed, beside the text that it is read from when it is asked for:
14 MB that nothing reads.
"""


def quieten(lite: Any) -> None:
    """Replace what works for callbacks, and drop what nothing reads. What a release does not have
    is left out.
    """
    logging: Any = import_module("litellm.litellm_core_utils.litellm_logging").Logging
    for name in _IN_CALLS:
        if (real := getattr(logging, name, None)) is not None:
            setattr(logging, name, _unless_unheard(lite, real))
    for name in _AWAITED:
        if (real := getattr(logging, name, None)) is not None:
            setattr(logging, name, _unless_unheard_later(lite, real))
    utils: Any = import_module("litellm.utils")
    if (cleaned := getattr(utils, _SIGNATURES, None)) is not None:
        setattr(utils, _SIGNATURES, _if_signed(cleaned))
    if hasattr(utils, _TOKENIZER):
        setattr(utils, _TOKENIZER, None)
    main: Any = import_module("litellm.main")
    if (fixed := getattr(main, _FIXED, None)) is not None:
        setattr(main, _FIXED, _if_not_ours(fixed))
    if (named := getattr(main, _FILES, None)) is not None:
        setattr(main, _FILES, _if_not_in_call(named))
    for client in map(sys.modules.get, _CLIENT):
        if (spelled := getattr(client, _SPELLED, None)) is not None:
            setattr(client, _SPELLED, _but_for_messages(spelled))
    streaming: Any = import_module("litellm.litellm_core_utils.streaming_handler")
    if (threaded := getattr(streaming, "asyncify", None)) is not None:
        streaming.asyncify = _of_usage(lite, threaded)
    stream: Any = streaming.CustomStreamWrapper
    if (ended := getattr(stream, _ENDED, None)) is not None:
        setattr(stream, _ENDED, _ending_once(lite, ended))


def _unheard(lite: Any) -> bool:
    """Whether this is a call of ours, and nobody listens."""
    # A call that other code of this process makes with litellm is left as it is.
    return current.get() is not None and not has_listeners(lite)


def has_listeners(lite: Any) -> bool:
    """Whether a callback is registered."""
    # Importing Gemini's part of litellm registers its cache for good, also where there is none.
    cache = getattr(lite, "cache", None)
    return any(
        callback != "cache" or cache is not None
        for name in _LISTS
        for callback in getattr(lite, name, ())
    )


def _unless_unheard(lite: Any, real: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(real)
    def told(*arguments: Any, **options: Any) -> Any:
        return None if _unheard(lite) else real(*arguments, **options)

    return told


def _unless_unheard_later(lite: Any, real: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(real)
    async def told(*arguments: Any, **options: Any) -> Any:
        return None if _unheard(lite) else await real(*arguments, **options)

    return told


def _if_signed(cleaned: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(cleaned)
    def told(messages: Any, thought_signature_separator: str) -> Any:
        if current.get() is None or _names(messages, thought_signature_separator):
            return cleaned(messages, thought_signature_separator)
        return messages

    return told


def _names(messages: Any, mark: str) -> bool:
    """Whether the id of a call in our messages holds ``mark``.

    Each call has its result, which names it.
    """
    return mark in "\n".join([m["tool_call_id"] for m in messages if "tool_call_id" in m])


def _if_not_ours(fixed: Callable[..., Any]) -> Callable[..., Any]:
    """Our messages are what litellm makes of all: with a role, calls as text, no field without a
    value; and they are the call's own.
    """

    @wraps(fixed)
    def told(messages: Any) -> Any:
        return list(messages) if isinstance(messages, Lent) else fixed(messages=messages)

    return told


def _if_not_in_call(named: Callable[..., Any]) -> Callable[..., Any]:
    """Our messages name no files."""

    @wraps(named)
    def told(messages: Any, *arguments: Any, **options: Any) -> Any:
        if current.get() is not None:
            return messages
        return named(messages, *arguments, **options)

    return told


def _but_for_messages(spelled: Callable[..., Any]) -> Callable[..., Any]:
    """Our messages are JSON, as the wire has it."""

    @wraps(spelled)
    async def told(data: Any, expected: Any) -> Any:
        messages = data.get(MESSAGES) if isinstance(data, dict) else None
        if current.get() is None or not isinstance(messages, list):
            return await spelled(data, expected)
        made = await spelled({**data, MESSAGES: []}, expected)
        return {name: messages if name == MESSAGES else value for name, value in made.items()}

    return told


def _ending_once(lite: Any, ended: Callable[..., Any]) -> Callable[..., Any]:
    """Once the usage was told, the end of a stream that is asked for again is only that. Where the
    response states no usage, of which litellm makes figures up, a chunk without it is told.
    """

    @wraps(ended)
    async def told(self: Any, *arguments: Any, **options: Any) -> Any:
        if getattr(self, "sent_last_chunk", False) and _unheard(lite):
            if getattr(self, "sent_stream_usage", False):
                raise StopAsyncIteration
            captured = current.get()
            if captured is not None and not reports_usage(captured):
                # Not the end: litellm asks once more for it, and has the last event only then.
                self.sent_stream_usage = True
                return self.model_response_creator()
        return await ended(self, *arguments, **options)

    return told


def _of_usage(lite: Any, threaded: Callable[..., Any]) -> Callable[..., Any]:
    """``asyncify``, by which a stream has a thread put a whole response together from its chunks,
    for callbacks and for the usage.

    The usage is told by the chunks that report some and the last; these few need no thread.
    """

    def asyncify(function: Callable[..., Any], **how: Any) -> Callable[..., Any]:
        async def made(*arguments: Any, **options: Any) -> Any:
            chunks = options.get("chunks")
            if not chunks or not _unheard(lite):
                return await threaded(function, **how)(*arguments, **options)
            telling = [chunk for chunk in chunks[1:] if _tells_usage(chunk)]
            return function(*arguments, **{**options, "chunks": [chunks[0], *telling]})

        return made

    return asyncify


def _tells_usage(chunk: Any) -> bool:
    """Whether litellm makes something of the chunk where it works out the usage: that it ended is
    its reason to believe a small figure.
    """
    hidden = getattr(chunk, "_hidden_params", None)
    return (
        getattr(chunk, "usage", None) is not None
        or (isinstance(hidden, dict) and hidden.get("usage") is not None)
        or any(getattr(choice, "finish_reason", None) for choice in chunk.choices)
    )
