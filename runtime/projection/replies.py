"""What a model's reply says: a statement to execute, a text for the user, or what is wrong with it.

A statement comes as a native tool call ``python`` with one argument ``code``, or as one ``<script
type="text/x-python">`` block. Models mix the two, so both are read whichever form was asked for;
the form only decides how a problem is worded. The forms and the problems are those of issue 2, "The
model's answer".
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from runtime.base.fences import one_line
from runtime.base.native_arguments import load_arguments
from runtime.base.plurals import counted
from runtime.base.values import ToolCall

TOOL_NAME = "python"
"""The native tool by which a model hands over a statement."""

TOOL_ARGUMENT = "code"
"""The tool's only argument: the statement's source."""

SCRIPT_OPEN = '<script type="text/x-python">'
SCRIPT_CLOSE = "</script>"

_OPEN = re.compile(r"""(?<!`)<script\s+type\s*=\s*["']?text/x-python["']?\s*>""", re.IGNORECASE)
_CLOSE = re.compile(r"</script\s*>", re.IGNORECASE)
_CLOSE_LINE = re.compile(r"^[ \t]*</script\s*>", re.IGNORECASE | re.MULTILINE)
_ANY_TAG = re.compile(r"(?<!`)</?script\b[^>\n]*>?", re.IGNORECASE)
CUT_OFF = frozenset({"length", "max_tokens", "model_length", "model_context_window_exceeded"})
"""Finish reasons of replies that had no room for more."""

_REFUSED = frozenset({"content_filter", "refusal", "safety"})
_AFTER_REFUSAL = (
    "Nothing was executed. Do what the goal allows, or call finish(...) and say why not."
)


@dataclass(frozen=True)
class ParsedReply:
    """A reply's meaning.

    With ``problem`` set nothing is executed, and ``problem`` is what to tell the model.

    ``statement`` is None for a reply that only speaks to the user. ``tool_call_id`` is the id of
    the (first) native call, also when there is a problem with it. ``user_text`` is the text outside
    the statement, stripped.
    """

    statement: str | None
    tool_call_id: str | None
    user_text: str
    problem: str | None


def parse_reply(
    text: str, tool_calls: Sequence[ToolCall], finish_reason: str, refusal: str | None, form: str
) -> ParsedReply:
    """Reads a reply. ``form`` is ``tool`` or ``script``; ``finish_reason`` is litellm's."""
    # Read first, whatever the form: models mix the two, and both in one reply are a problem.
    blocks, user_text, broken = _script_blocks(text)
    call_id = tool_calls[0].id if tool_calls else None
    statement: str | None = None
    # What was cut off or refused is not executed, however whole a block in it looks.
    problem = _ending_problem(finish_reason, refusal, form)
    if problem is None and len(tool_calls) + len(blocks) > 1:
        problem = _several(len(tool_calls), len(blocks), form)
    elif problem is None and tool_calls:
        statement, problem = _native_statement(tool_calls[0])
    elif problem is None and (blocks or broken):
        statement, problem = (None, broken) if broken else (blocks[0], None)
        if statement is not None and not statement.strip():
            statement, problem = (
                None,
                f"Your script block is empty; nothing was executed. {how_to_write(form)}",
            )
    elif problem is None and not user_text:
        problem = f"Your reply was empty. {how_to_write(form)}"
    if problem is not None and broken is None and not blocks:
        user_text = text.strip()
    return ParsedReply(
        statement=statement, tool_call_id=call_id, user_text=user_text, problem=problem
    )


def how_to_write(form: str) -> str:
    """One sentence that tells the model how to hand over its statement in ``form``."""
    if form == "tool":
        return (
            f"Call the tool `{TOOL_NAME}` once, with your statement's Python source as its argument"
            f" `{TOOL_ARGUMENT}`."
        )
    return (
        f"Write one block {SCRIPT_OPEN} … {SCRIPT_CLOSE} with your statement's Python source,"
        " each tag on a line of its own."
    )


def _ending_problem(finish_reason: str, refusal: str | None, form: str) -> str | None:
    if refusal:
        return f"You refused: {short(refusal)} {_AFTER_REFUSAL}"
    if finish_reason in _REFUSED:
        return f"Your reply was stopped by the provider ({finish_reason}). {_AFTER_REFUSAL}"
    if finish_reason in CUT_OFF:
        return (
            "Your reply was cut off by the token limit, so nothing was executed. Write a shorter"
            f" statement, and do the rest in later turns. {how_to_write(form)}"
        )
    return None


def _several(calls: int, blocks: int, form: str) -> str:
    if calls and blocks:
        several = f"{counted(calls, 'tool call')} and {counted(blocks, 'script block')}"
    else:
        several = counted(calls, "tool call") if calls else counted(blocks, "script block")
    return (
        f"Your reply has {several}; a turn executes one statement, so nothing was executed."
        f" {how_to_write(form)}"
    )


def _native_statement(call: ToolCall) -> tuple[str | None, str | None]:
    """The statement of one native call, or the problem with it."""
    usage = f"{how_to_write('tool')} Nothing was executed."
    if call.name != TOOL_NAME:
        return (
            None,
            (
                f"There is no tool `{short(call.name)}` to call natively. {usage}"
                " What the contract lists is called as a function inside the statement."
            ),
        )
    try:
        # Models write line ends into the text as they are, which strict JSON forbids.
        arguments = load_arguments(call.arguments, strict=False)
    except (ValueError, RecursionError) as error:
        reason = _fault(error)
        return None, f"The arguments of your call are not valid JSON ({reason}). {usage}"
    if not isinstance(arguments, dict) or set(arguments) != {TOOL_ARGUMENT}:
        got = (
            ", ".join(f"`{short(name)}`" for name in arguments)
            if isinstance(arguments, dict)
            else ""
        )
        return (
            None,
            (
                f"Your call's arguments are {got or 'not an object with one key'}, not"
                f" `{TOOL_ARGUMENT}` alone. {usage}"
            ),
        )
    code = arguments[TOOL_ARGUMENT]
    if not isinstance(code, str):
        return None, f"Your call's argument `{TOOL_ARGUMENT}` is not a string. {usage}"
    if not code.strip():
        return None, f"Your call's argument `{TOOL_ARGUMENT}` is empty. {usage}"
    if any("\ud800" <= letter <= "\udfff" for letter in code):
        return (
            None,
            (
                f"Your call's argument `{TOOL_ARGUMENT}` has lone surrogates, which are no"
                f" characters. {usage}"
            ),
        )
    return code, None


def _fault(error: Exception) -> str:
    """Why a text is no JSON."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos}"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return "a number in it has more digits than Python reads (4,300)"


def _script_blocks(text: str) -> tuple[list[str], str, str | None]:
    """The script blocks of ``text``, the text around them, and what is wrong with a block that is
    broken.
    """
    blocks: list[str] = []
    outside: list[str] = []
    position = 0
    while opening := _OPEN.search(text, position):
        outside.append(text[position : opening.start()])
        closing = _closing(text, opening.end())
        if closing is None:
            rest = "".join(outside).strip()
            return (
                blocks,
                rest,
                (
                    f"Your script block is not closed by {SCRIPT_CLOSE}; nothing was executed."
                    f" {how_to_write('script')}"
                ),
            )
        blocks.append(_body(text[opening.end() : closing.start()]))
        position = closing.end()
    outside.append(text[position:])
    rest = "".join(outside).strip()
    stray = _ANY_TAG.search(rest)
    broken = None
    # Beside a good block it is a text that speaks of tags.
    if stray and not blocks:
        broken = (
            f"Your script block is broken: the tag is {short(stray[0])}. Nothing was executed."
            f" {how_to_write('script')}"
        )
    return blocks, rest, broken


def _closing(text: str, start: int) -> re.Match[str] | None:
    """The tag that closes a block: on the opening line, else the first on a line of its own, else
    the first.

    So a statement may hold the closing tag in a string, as long as the block's own stands on its
    own line.
    """
    first = _CLOSE.search(text, start)
    if first is None or "\n" not in text[start : first.start()]:
        return first
    return _CLOSE_LINE.search(text, start) or first


def _body(source: str) -> str:
    """A block's source without the line breaks at its tags, and without an indentation that all
    lines share.
    """
    lines = source.removeprefix("\r").removeprefix("\n").rstrip()
    return textwrap.dedent(lines) if lines[:1] in (" ", "\t") else lines


def short(text: str) -> str:
    """The beginning of a text on one line, for a sentence about it."""
    return one_line(text if len(text) <= 200 else text[:200] + "…")
