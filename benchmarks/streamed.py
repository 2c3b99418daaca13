"""What the call of a model costs that streams, in processor time of the worker: ``python -m
benchmarks.streamed [--calls N] [--write FILE]``.

A local server speaks a provider's protocol, in a process of its own, and sends an event for each
seven characters of a reply: a model's token. The calls are those of the model activity, with an
archive in memory; a row has replies of so many events, or a prompt with so many turns before the
calls that are measured. ``--write docs/benchmarks.md`` puts the table there.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from activities._litellm_library import warm
from benchmarks.blocks import hand_over
from benchmarks.leaving import leave
from tests.model.model_calls import (
    Job,
    anthropic_server,
    model_at,
    openai_server,
    responses_server,
)
from tests.servers.program import endpoint
from tests.servers.provider_server import PIECE, ProviderServer

BLOCK = "streamed"
CALLS = 40
EVENTS, TURNS = (10, 100, 500), (100, 500)
SHORT, FIRST = EVENTS[0], 2
CELLS = [*((events, FIRST) for events in EVENTS), *((SHORT, turns) for turns in TURNS)]
"""Events of a reply, and turns before those that are measured."""

PROTOCOLS: dict[str, tuple[str, Callable[..., ProviderServer]]] = {
    "OpenAI, chat completions": ("openai_server", openai_server),
    "OpenAI, Responses": ("responses_server", responses_server),
    "Anthropic, messages": ("anthropic_server", anthropic_server),
}
HEAD = (
    (
        f"| protocol | {' | '.join(f'{events} events' for events in EVENTS)} |"
        f" {' | '.join(f'{SHORT} events, {turns} turns before' for turns in TURNS)} |"
    ),
    f"|---|{'--:|' * (len(EVENTS) + len(TURNS))}",
)


@contextmanager
def serving(
    module: str, make: Callable[..., ProviderServer], events: int
) -> Iterator[ProviderServer]:
    """A server of a protocol whose replies have so many events of text."""
    with tempfile.TemporaryDirectory() as folder:
        policy = Path(folder) / "policy.py"
        reply = {"text": "a word " * events, "code": "x = 1"}
        policy.write_text(f"def respond(messages, number):\n    return {reply!r}\n")
        with endpoint(policy, Path(folder) / "log", module) as address:
            server = make(None)
            server.address = address
            yield server


async def milliseconds(server: ProviderServer, calls: int, before: int) -> float:
    """Of this process's time for a call, after so many of its job that are not measured."""
    job = Job(model_at(server))
    for _ in range(before):
        await job.take_turn()
    began = time.process_time()
    for _ in range(calls):
        await job.take_turn()
    return (time.process_time() - began) / calls * 1000


async def measure(calls: int) -> str:
    """The table."""
    assert len("a word ") == PIECE
    warm()
    rows: list[str] = []
    for name, (module, make) in PROTOCOLS.items():
        cells: list[float] = []
        for events, turns in CELLS:
            with serving(module, make, events) as server:
                cells.append(await milliseconds(server, calls, turns))
        rows.append(f"| {name} | {' | '.join(f'{cell:.1f}' for cell in cells)} |")
    return "\n".join([*HEAD, *rows])


def main(arguments: Sequence[str] | None = None) -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--write", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    hand_over(asyncio.run(measure(given.calls)), BLOCK, given.write)


if __name__ == "__main__":
    main()
    leave()
