"""A durable agent of pydantic-ai, for ``benchmarks.turn`` to measure beside ours.

It does what a job of that benchmark does: its prompt has so many characters, and at each turn it
calls a tool that answers with so many random letters. Its model is a function in its process, and
its workflow runs without the SDK's sandbox. It needs ``pip install 'pydantic-ai-slim[temporal]'``,
which Holdfast itself does not.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

if TYPE_CHECKING:
    from pydantic_ai import Agent

LETTERS = "abcdefghijklmnopqrstuvwxyz "

_agents: list[Agent[None, str]] = []
"""That of this process: workflow code and its activities have the same."""


def is_there() -> bool:
    """Whether pydantic-ai can be imported."""
    return find_spec("pydantic_ai") is not None


@workflow.defn(name="Peer", sandboxed=False)
class Peer:
    """One run of the agent."""

    @workflow.run
    async def run(self, prompt: str) -> str:
        """What it said at last."""
        from pydantic_ai.usage import UsageLimits

        result = await _agents[0].run(prompt, usage_limits=UsageLimits(request_limit=None))
        return result.output


def prompt_of(turns: int, padding: str) -> str:
    """What has the agent call its tool at all of so many turns but the last."""
    return f"{turns} turns. {padding}"


@asynccontextmanager
async def peer_worker(address: str, queue: str, printed: int) -> AsyncIterator[Client]:
    """A worker of the agent, whose tool answers with so many letters."""
    from pydantic_ai.durable_exec.temporal import AgentPlugin, PydanticAIPlugin

    agent = _agent(printed)
    _agents[:] = [agent]
    client = await Client.connect(address, plugins=[PydanticAIPlugin()])
    async with Worker(
        client,
        task_queue=queue,
        workflows=[Peer],
        plugins=[AgentPlugin(agent)],
        workflow_runner=UnsandboxedWorkflowRunner(),
        build_id="peer",
    ):
        yield client


def _agent(printed: int) -> Agent[None, str]:
    from pydantic_ai import Agent
    from pydantic_ai.durable_exec.temporal import TemporalDurability
    from pydantic_ai.messages import (
        ModelMessage,
        ModelResponse,
        TextPart,
        ToolCallPart,
        UserPromptPart,
    )
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        prompt = next(part for part in messages[0].parts if isinstance(part, UserPromptPart))
        turns = int(str(prompt.content).split()[0])
        turn = sum(isinstance(message, ModelResponse) for message in messages) + 1
        part = TextPart("done") if turn == turns else ToolCallPart("letters", {"turn": turn})
        return ModelResponse(parts=[part])

    async def letters(turn: int) -> str:
        """Random text."""
        return f"{turn} {''.join(random.choices(LETTERS, k=printed))}"

    return Agent(
        FunctionModel(answer, model_name="scripted"),
        name="peer",
        tools=[letters],
        capabilities=[TemporalDurability()],
    )
