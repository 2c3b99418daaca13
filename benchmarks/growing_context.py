"""A context that grows to 209,000 tokens in 100 calls, with a tool call in each: ``python -m
benchmarks.growing_context``.

Passed whole to each model call, as agents on Temporal commonly do, such a transcript outgrows the
50 MB that a history may have at about the 53rd call (temporalio/sdk-python#1890). Here a call
carries what is new. Each turn calls a tool and opens another file of 2,090 tokens, which stays in
the prompt.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client

from benchmarks.history_size import plain_bytes
from runtime.archive.job import JobArchive
from runtime.base.tokens import encoding
from runtime.job.stops import JobStatus
from runtime.tools.host import describe_tool
from tests.servers.temporal_server import temporal_server
from tests.workflow.stage import Stage

CALLS = 100
TOKENS_A_CALL = 2_090
TOOL = '''"""The benchmark's tool."""


def measure(number: int) -> str:
    """What was measured."""
    return "".join(f"{number * n} " for n in range(40))
'''


@dataclass(frozen=True)
class Grown:
    """One call: tokens of its prompt, and bytes so far of the history, and of all prompts as they
    went over the wire.
    """

    call: int
    prompt_tokens: int
    history_bytes: int
    prompts_bytes: int

    def row(self) -> str:
        """A row of the table."""
        history, prompts = self.history_bytes, self.prompts_bytes
        return (
            f"| {self.call} | {self.prompt_tokens:,} | {history / 1e6:.2f} MB |"
            f" {history / self.call / 1e3:.1f} kB | {prompts / 1e6:.1f} MB |"
        )


HEADER = (
    "| calls | tokens of the prompt | history | history a call | the prompts themselves"
    " |\n|---|---|---|---|---|"
)


async def measure(
    client: Client, path: Path, calls: int = CALLS, tokens: int = TOKENS_A_CALL
) -> list[Grown]:
    """Run the job, and weigh its history and its prompts after each call.

    Raises:
        AssertionError: if the job does not end well.
    """
    stage = Stage(client, path, "growing")
    await asyncio.to_thread(_lay_out, stage, calls, tokens)
    tool = describe_tool("growing_tools:measure", str(path))
    statements = [
        f"v{n} = view('f{n}.txt', tokens={tokens})\nprint(measure({n}))" for n in range(1, calls)
    ]
    async with stage.open():
        outcome, archive = await stage.run(
            [*statements, "finish('grown')"],
            turns=calls + 1,
            context_tokens=calls * tokens * 2,
            tools=(tool,),
        )
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, calls), outcome.reason
    sizes = await _history_sizes(stage, archive)
    grown, prompts = [], 0
    for call in range(1, calls + 1):
        prompts += len(archive.wire_request(outcome.run, call))
        shown = sum(segment.tokens for segment in archive.turn_layout(outcome.run, call))
        grown.append(Grown(call, shown, sizes[call], prompts))
    return grown


def _lay_out(stage: Stage, calls: int, tokens: int) -> None:
    """The files, each a little longer than what is shown of it, and the tool."""
    count = encoding("cl100k_base").count
    for number in range(1, calls):
        line = f"{number} the quick brown fox jumps over the lazy dog\n"
        (stage.workspace / f"f{number}.txt").write_text(line * (tokens // count(line) + 10))
    (stage.path / "growing_tools.py").write_text(TOOL)


async def _history_sizes(stage: Stage, archive: JobArchive) -> dict[int, int]:
    """By call: the bytes of the histories of all runs up to the scheduling of the next call, before
    they are compressed: the files here are one line again and again.
    """
    sizes: dict[int, int] = {}
    total, call = 0, 0
    for run in archive.runs():
        history = await stage.client.get_workflow_handle(
            stage.started[-1], run_id=run
        ).fetch_history()
        for event in history.events:
            name = event.activity_task_scheduled_event_attributes.activity_id
            if name.startswith("turn-") and name.removeprefix("turn-").isdigit():
                call = int(name.removeprefix("turn-"))
            total += plain_bytes(event)
            sizes[call] = total
    return sizes


async def _alone(calls: int, path: Path) -> list[Grown]:
    async with temporal_server() as environment:
        return await measure(environment.client, path, calls)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("calls", nargs="?", type=int, default=CALLS)
    parser.add_argument("--json", action="store_true", help="print each call's figures as JSON")
    options = parser.parse_args()
    calls = options.calls
    with tempfile.TemporaryDirectory() as folder:
        grown = asyncio.run(_alone(calls, Path(folder)))
    if options.json:
        print(json.dumps([vars(one) for one in grown]))
        return
    # With the 53rd call, at which a transcript that is passed whole outgrows a history.
    shown = sorted({1, calls // 4, 53 if calls >= 53 else calls // 2, 3 * calls // 4, calls})
    print(HEADER)
    for one in grown:
        if one.call in shown:
            print(one.row())


if __name__ == "__main__":
    main()
