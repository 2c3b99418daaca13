"""Whether a prompt fills the model's window: replies that are none, since it left the model no room
to write one; and refusals without a reason, which cannot be for its length.
"""

from __future__ import annotations

from activities._answer import Answer
from activities._options import ModelOptions
from activities.prices import window_of
from runtime.projection.replies import CUT_OFF

NEARLY_FULL = 0.9
"""The share of a model's window from which on a prompt fills it: providers count otherwise than
tables say.
"""

HALF_FULL = 0.5
"""The share up to which a prompt is far from filling it, whatever is counted otherwise, and also
with the reply that may be asked for.
"""

NO_ROOM = (
    "the reply is empty and was cut off: the prompt may have left no room for one in the model's"
    " window"
)


def left_no_room(answer: Answer, tokens: int, accepted: int, options: ModelOptions) -> bool:
    """Whether an answer to a prompt of ``tokens`` is empty for lack of room.

    ``accepted`` is the size of the largest prompt that the model has answered; with 0 nothing is
    known, and there is nothing to leave out.

    An answer that has used up all that the options' own limit leaves it had the room that it was
    given.
    """
    empty = not answer.text.strip() and not answer.tool_calls and answer.refusal is None
    if not accepted or not empty or answer.finish_reason not in CUT_OFF:
        return False
    said = options.arguments
    most = said.get("max_completion_tokens") or said.get("max_tokens")
    written = getattr(answer.usage, "completion_tokens", None) or 0
    if isinstance(most, int) and written >= most:
        return False
    window = window_of(options.name)
    prompt = getattr(answer.usage, "prompt_tokens", None) or tokens
    return tokens > accepted or (window is not None and prompt + written >= window * NEARLY_FULL)


def has_room(tokens: int, options: ModelOptions) -> bool:
    """Whether a prompt of ``tokens`` is far from filling the model's window, as far as that is
    known.
    """
    window = window_of(options.name)
    return window is not None and tokens <= window * HALF_FULL
