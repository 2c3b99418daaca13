"""The messages that litellm is handed: as a turn's prompt has them, whatever the call before did
with its own.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from model_calls import Job, Make, anthropic_server, model_at, openai_server

from activities._lent import Lent, _returned, forget

JOB = "night/long"


def message(number: int) -> dict[str, Any]:
    """A reply with a call, as a prompt has it."""
    function = {"name": "python", "arguments": f'{{"code": "{number}"}}'}
    calls = [{"id": f"c{number}", "type": "function", "function": function}]
    return {"role": "assistant", "tool_calls": calls}


@pytest.fixture
def prompt() -> Any:
    """The messages of a long prompt of a job that is forgotten afterwards."""
    yield [message(number) for number in range(40)]
    forget(JOB)


def taken_over(last: Sequence[Any], lent: Sequence[Any]) -> int:
    """How many copies of the last call serve this one too."""
    return sum(old is new for old, new in zip(last, lent, strict=False))


def test_a_turn_copies_its_news_alone(prompt: list[Any]) -> None:
    """However long the prompt is: what was given back as it was handed out is handed out again."""
    copies = []
    last: list[Any] = []
    for number in range(10):
        prompt.append(message(100 + number))
        lent = Lent(JOB, prompt)
        assert lent == prompt
        copies.append(len(prompt) - taken_over(last, lent))
        last = list(lent)
        lent.give_back()
    assert copies == [41, *[1] * 9]


def test_a_copy_is_a_list_of_the_same_messages(prompt: list[Any]) -> None:
    """litellm makes one for its log in every call."""
    lent = Lent(JOB, prompt)
    made = copy.copy(lent)
    assert type(made) is list
    assert [id(message) for message in made] == [id(message) for message in lent]


def test_messages_that_a_prompt_takes_over_are_compared_with_themselves(prompt: list[Any]) -> None:
    """Those at a prompt's end are made anew once, and are the same ones from then on."""
    Lent(JOB, copy.deepcopy(prompt)).give_back()
    Lent(JOB, prompt).give_back()
    kept = _returned.get(JOB)
    assert kept is not None
    assert [one is other for one, other in zip(kept.originals, prompt, strict=True)] == [True] * 40


@pytest.mark.parametrize("place", [0, 17, 39])
def test_what_a_call_has_changed_is_copied_anew(prompt: list[Any], place: int) -> None:
    """From the first message on that is not what it was; the prompt's own are never changed."""
    whole = copy.deepcopy(prompt)
    lent = Lent(JOB, prompt)
    lent[place]["tool_calls"][0]["function"]["name"] = "changed"
    last = list(lent)
    # A provider's part takes the system's message out of the list.
    lent.pop(5)
    lent.give_back()
    again = Lent(JOB, prompt)
    assert again == prompt == whole
    assert taken_over(last, again) == place


def test_another_prompt_is_copied_from_where_it_differs(prompt: list[Any]) -> None:
    """As after a condensation."""
    lent = Lent(JOB, prompt)
    lent.give_back()
    other = [*prompt[:3], message(77), *prompt[30:]]
    again = Lent(JOB, other)
    assert again == other
    assert taken_over(lent, again) == 3


def test_a_call_at_the_same_time_has_copies_of_its_own(prompt: list[Any]) -> None:
    """Nothing is shared by two calls that are under way, nor taken from one that has failed."""
    Lent(JOB, prompt).give_back()
    one, other = Lent(JOB, prompt), Lent(JOB, prompt)
    assert taken_over(one, other) == 0
    assert taken_over(one, Lent(JOB, prompt)) == 0


def test_what_equals_something_else_is_copied_each_time(prompt: list[Any]) -> None:
    """1 and True are equal, and their JSON is not."""
    prompt.append({"role": "assistant", "thinking_blocks": [{"type": "thinking", "budget": 1}]})
    lent = Lent(JOB, prompt)
    lent[-1]["thinking_blocks"][0]["budget"] = True
    lent.give_back()
    assert Lent(JOB, prompt)[-1]["thinking_blocks"][0]["budget"] is not True


def test_a_message_of_another_job_is_not_handed_out(prompt: list[Any]) -> None:
    """Copies belong to a job."""
    lent = Lent(JOB, prompt)
    lent.give_back()
    assert taken_over(lent, Lent("night/other", prompt)) == 0


@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize(
    "make, same",
    # The marks for Anthropic's cache move on, and so two messages are others.
    [(openai_server, [2, 5, 8]), (anthropic_server, [2, 1, 4])],
    ids=["openai", "anthropic"],
)
async def test_litellm_gives_back_what_it_was_handed(make: Make, same: list[int]) -> None:
    """So a turn's work on a prompt's messages is for those that are new, from litellm on too."""
    handed: list[tuple[Any, ...]] = []
    async with make(lambda messages, number: {"code": f"print({number})"}).serving() as server:
        job = Job(model_at(server))
        for _ in range(4):
            await job.take_turn()
            returned = _returned.get(f"nightly/{job.name}")
            assert returned is not None
            handed.append(returned.copies)
    assert [len(copies) for copies in handed] == [2, 5, 8, 11]
    assert [taken_over(*pair) for pair in pairwise(handed)] == same
