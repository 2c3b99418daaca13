"""What projections cost: time by the number of nodes and tokens, and money under the three
policies.

``python -m benchmarks.projection`` prints both tables; ``--write docs/benchmarks.md`` puts them
there. The jobs run in a plain loop, without Temporal and without a model: the statements are given,
all else is the product's. Prices are those of ``MODEL`` in litellm's table. A prompt is taken to
cost its stable prefix at the price of cache reads, what later prompts keep at that of cache writes,
and the tail as plain tokens.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from activities._script import reply_to
from activities.prices import prices_of
from benchmarks.blocks import write_block
from runtime.base.spec.models import JobSpec, ProjectionPolicy
from runtime.jobsfile.load import load_jobs_file
from runtime.projection.prefix import prefix_of
from runtime.projection.prices import Prices, prompt_cost
from runtime.projection.project import tokens_of
from runtime.projection.segments import Segment
from runtime.tools.functions import load_tool
from tests.job.plain_loop import PlainLoop, count, native, statements

ROOT = Path(__file__).parent.parent
MODEL = "claude-sonnet-4-5"
TURNS = 120
NODES = (10, 100, 500, 2_000)
TOKENS = (10_000, 50_000, 200_000)
CHANGES = 9
"""Turns in which the time of a projection is taken."""


@dataclass(frozen=True)
class SessionCost:
    """One session under one policy.

    ``share`` is the median over its turns but the first, ``bound`` that of ``bound_of``.
    """

    session: str
    policy: ProjectionPolicy
    turns: int
    prompt_tokens: int
    share: float
    bound: float
    breaks: int
    usd: float

    def row(self) -> str:
        """The row of the table."""
        return (
            f"| {self.session} | {self.policy} | {self.turns} | {self.prompt_tokens:,} |"
            f" {self.share:.3f} | {self.bound:.3f} | {self.breaks} | ${self.usd:.4f} |"
        )


@dataclass(frozen=True)
class ProjectionTime:
    """Milliseconds of processor time of the tick and the projection of one turn, reading left out.

    ``next_ms`` is the median of turns in which one node of ``nodes`` changed, ``first_ms`` the sum
    of those in which all were made. ``prompt`` are the tokens of the last prompt, ``new_tokens``
    those that are not in its stable prefix.
    """

    nodes: int
    tokens: int
    first_ms: float
    next_ms: float
    prompt: int
    new_tokens: int

    def row(self) -> str:
        """The row of the table."""
        return (
            f"| {self.nodes:,} | {self.prompt:,} | {self.first_ms:.0f} | {self.next_ms:.1f} |"
            f" {self.new_tokens:,} |"
        )


TIME_HEADER = """| nodes | tokens of the prompt | all nodes new, ms | one node changed, ms | tokens behind the stable prefix |
|--:|--:|--:|--:|--:|"""

COST_HEADER = f"""| session | policy | turns | prompt tokens | median stable share | at most | breaks | {MODEL} |
|---|---|--:|--:|--:|--:|--:|--:|"""


def bound_of(before: Sequence[Segment], after: Sequence[Segment]) -> float:
    """The share of ``after`` that a projection could have kept, had it left all that is in both
    where it stood.

    The rest is new text: the model's reply, its result, views it opened, and the tail.
    """
    kept = Counter(segment.digest for segment in before if not segment.tail)
    stays = 0
    # Each segment before stands for one after, however many are equal.
    for segment in after:
        if kept[segment.digest] > 0:
            kept[segment.digest] -= 1
            stays += segment.tokens
    total = sum(segment.tokens for segment in after)
    return stays / total if total else 1.0


def cost_of(layouts: Sequence[Sequence[Segment]], prices: Prices) -> tuple[float, float, int]:
    """The price in US dollars, the median share of the stable prefix, and how often the prefix
    broke.
    """
    plain, shares, breaks = 0.0, [], 0
    before: Sequence[Segment] = ()
    for layout in layouts:
        prefix = prefix_of(before, layout)
        plain += prompt_cost(prices, stable=prefix.stable, new=prefix.new, tail=prefix.tail)
        if before:
            shares.append(prefix.share)
            breaks += prefix.broken is not None
        before = layout
    return plain * prices.usd, statistics.median(shares), breaks


def session_cost(name: str, policy: ProjectionPolicy, loop: PlainLoop) -> SessionCost:
    """Run a session to its end."""
    prices = prices_of(MODEL)
    # A plain loop has no activity that tells the job of prices as it begins.
    loop.job.places.prices = prices
    loop.run()
    usd, share, breaks = cost_of(loop.layouts, prices)
    tokens = sum(segment.tokens for layout in loop.layouts for segment in layout)
    bound = statistics.median(map(bound_of, loop.layouts, loop.layouts[1:]))
    return SessionCost(name, policy, len(loop.layouts), tokens, share, bound, breaks, usd)


# Recorded sessions: the observations of three agents' runs, and edits of files that are in view


def observations() -> list[str]:
    """What the recorded agents were shown in answer to their actions (tests/data)."""
    found: list[str] = []
    for path in sorted((ROOT / "tests" / "data").glob("*.traj.json")):
        history = json.loads(path.read_text())["history"]
        told = [
            message["content"] for message in history[2:] if message["role"] in ("user", "tool")
        ]
        texts = (
            t if isinstance(t, str) else "".join(part.get("text", "") for part in t) for t in told
        )
        found += [text[:6_000] for text in texts]
    return found


FILES = (
    "runtime/job/job.py",
    "runtime/job/surface.py",
    "runtime/projection/project.py",
    "runtime/base/tokens.py",
)


def edits(workspace: Path, every: int) -> Callable[[int], None]:
    """Edits a line of one of the files before every so many turns, the same at each run."""

    def edit(turn: int) -> None:
        if turn == 1:
            for file in FILES:
                shutil.copy(ROOT / file, workspace / Path(file).name)
        elif every and turn % every == 0:
            chance = random.Random(turn)
            path = workspace / Path(chance.choice(FILES)).name
            lines = path.read_text().splitlines()
            lines[chance.randrange(len(lines) // 2)] = f"# edited before turn {turn}"
            path.write_text("\n".join(lines) + "\n")

    edit(1)
    return edit


def reading(turns: int) -> Iterator[str]:
    """Opens views now and then, lets go of old ones, and works."""
    for turn in range(turns):
        name, file = f"v{turn // 15 % 3}", Path(FILES[turn // 15 % len(FILES)]).name
        yield f"{name} = view({file!r}, tokens=1500)" if turn % 15 == 0 else f"print(said({turn}))"


def editing(turns: int) -> Iterator[str]:
    """Follows four files that are edited, and works."""
    yield "\n".join(
        f"f{n} = view({Path(f).name!r}, tokens=2000, freq='Sync')" for n, f in enumerate(FILES)
    )
    for turn in range(1, turns):
        yield f"print(said({turn}))"


def tidying(turns: int) -> Iterator[str]:
    """Opens large views, and makes them small some turns later."""
    for turn in range(turns):
        file = Path(FILES[turn // 8 % len(FILES)]).name
        match turn % 8:
            case 0:
                yield f"big = view({file!r}, tokens=4000)"
            case 5:
                yield "big.SetLod(1).SetTokens(150)"
            case _:
                yield f"print(said({turn}))"


SESSIONS: dict[str, tuple[Callable[[int], Iterator[str]], int]] = {
    "reading": (reading, 0),
    "editing, often": (editing, 2),
    "editing, rarely": (editing, 15),
    "tidying": (tidying, 0),
}


def recorded_session(name: str, policy: ProjectionPolicy, folder: Path, turns: int) -> SessionCost:
    """One of ``SESSIONS`` under a policy."""
    texts = observations()

    def said(turn: int) -> str:
        return texts[turn % len(texts)]

    made, every = SESSIONS[name]
    options = {"projection": policy, "context_tokens": 150_000, "budget": _budget(turns)}
    loop = PlainLoop(
        folder,
        statements(*made(turns)),
        tools=[said],
        options=options,
        between=edits(folder, every),
    )
    return session_cost(name, policy, loop)


def _budget(turns: int) -> dict[str, Any]:
    return {"turns": turns, "tokens": 10**12, "usd": 1e9, "wall_seconds": 1e9}


def quickstart(policy: ProjectionPolicy) -> Iterator[SessionCost]:
    """The jobs of examples/quickstart."""
    for spec in load_jobs_file(ROOT / "examples" / "quickstart" / "jobs.yaml").jobs:
        yield session_cost(f"quickstart/{spec.id}", policy, _quickstart_loop(spec, policy))


def _quickstart_loop(spec: JobSpec, policy: ProjectionPolicy) -> PlainLoop:
    script = str(spec.model.script)
    turn = iter(range(1, 1_000))

    def respond(messages: list[dict[str, Any]]) -> Any:
        number = next(turn)
        return native(str(reply_to(script, messages, number).code), number)

    kept = spec.model_dump(include={"goal", "result", "budget", "context_tokens"})
    sys.path[:0] = [tool.search_path for tool in spec.tools]
    tools = [load_tool(tool.target) for tool in spec.tools]
    return PlainLoop(
        Path(spec.workspace), respond, tools=tools, options={**kept, "projection": policy}
    )


# Time by size


CHANGED = "".join(f"line {number} of the file that changes\n" for number in range(12))
"""The file of the node that changes: the same, whatever else there is."""


def projection_time(nodes: int, tokens: int, folder: Path) -> ProjectionTime:
    """A job with so many views of so many tokens in all; then the file of one of them changes, turn
    by turn.
    """
    each = max((tokens - count(CHANGED)) // (nodes - 1), 8)
    for number in range(1, nodes):
        line = f"w{number} " * 10
        lines = max(each // count(line + "\n"), 1)
        (folder / f"f{number}.txt").write_text("\n".join([line] * lines))
    (folder / "f0.txt").write_text(CHANGED)
    sources = [
        "\n".join(
            f"v{n} = view('f{n}.txt', tokens={each + 400})"
            for n in range(start, min(start + 100, nodes))
        )
        for start in range(0, nodes, 100)
    ]
    turns = [f"x{number} = {number}" for number in range(CHANGES + 1)]
    loop = PlainLoop(
        folder,
        statements(*sources, "v0.Run()", *turns),
        options={"context_tokens": 10 * tokens + 1_000_000, "projection": ProjectionPolicy.APPEND},
    )
    times = _timed(loop)
    # Until all views are open, and the one that will change is read by itself.
    while len(loop.layouts) < len(sources) + 2:
        loop.turn()
    first = sum(times)
    times.clear()
    for number in range(CHANGES):
        (folder / "f0.txt").write_text(
            CHANGED.replace("line 5", f"line five, changed {number} times")
        )
        loop.turn()
    prefix = prefix_of(loop.layouts[-2], loop.layouts[-1])
    new = prefix.tokens - prefix.stable
    return ProjectionTime(
        nodes, tokens, first, statistics.median(times), tokens_of(loop.layouts[-1]), new
    )


def _timed(loop: PlainLoop) -> list[float]:
    """The milliseconds of each turn's tick and projection, as the loop goes on."""
    times: list[float] = []
    tick, project = loop.job.apply_tick, loop.job.project

    def ticked(results: Any) -> None:
        started = time.process_time()
        tick(results)
        times.append((time.process_time() - started) * 1000)

    def projected(now: float) -> Any:
        started = time.process_time()
        made = project(now)
        times[-1] += (time.process_time() - started) * 1000
        return made

    loop.job.apply_tick, loop.job.project = ticked, projected  # type: ignore[method-assign]
    return times


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--write", type=Path, help="the document whose tables are to be replaced")
    arguments = parser.parse_args()
    lines: list[str] = []
    for line in table(arguments.turns):
        print(line, flush=True)
        lines.append(line)
    if arguments.write is not None:
        write_block(arguments.write, "projection", "\n".join(lines))


def table(turns: int) -> Iterator[str]:
    """The lines of both tables."""
    yield TIME_HEADER
    for nodes in NODES:
        for tokens in TOKENS:
            with tempfile.TemporaryDirectory() as folder:
                yield projection_time(nodes, tokens, Path(folder)).row()
    yield ""
    yield COST_HEADER
    for policies in zip(*(sessions(policy, turns) for policy in ProjectionPolicy), strict=True):
        yield from (cost.row() for cost in policies)


def sessions(policy: ProjectionPolicy, turns: int) -> Iterator[SessionCost]:
    """All sessions under a policy."""
    yield from quickstart(policy)
    for name in SESSIONS:
        with tempfile.TemporaryDirectory() as folder:
            yield recorded_session(name, policy, Path(folder), turns)


if __name__ == "__main__":
    main()
