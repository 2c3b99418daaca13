"""The request for a summary and its reply: plain values, fit to cross an activity's border."""

from __future__ import annotations

from enum import StrEnum

from runtime.base.values import Value


class SummaryForm(StrEnum):
    """How the summary is asked for: a prompt of its own, or the agent's own prompt with the
    instruction at its end.
    """

    OWN_PROMPT = "own_prompt"
    AGENT_PREFIX = "agent_prefix"


class SummaryRequest(Value):
    """What to summarise and how.

    ``event_ids`` are the events that the summary will stand for, ``whole_event_ids`` those of the
    first request of this condensation: a smaller input asks for fewer of them. ``prompt`` is the
    text to send: in the agent's prefix form it follows the agent's own prompt, otherwise it stands
    alone. ``attempt`` counts from 1 for each input, ``shrinks`` how often the input was made
    smaller. ``failures`` says why earlier attempts were of no use.
    """

    condensation_id: str
    turn: int
    event_ids: tuple[str, ...]
    whole_event_ids: tuple[str, ...]
    form: SummaryForm
    prompt: str
    input_tokens: int
    max_summary_tokens: int
    attempt: int = 1
    shrinks: int = 0
    failures: tuple[str, ...] = ()


class SummaryReply(Value):
    """What came of a request: a text, or why there is none."""

    text: str = ""
    failure: str = ""
    llm_response_id: str | None = None
