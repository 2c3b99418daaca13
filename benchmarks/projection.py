"""What projections cost: time by the number of nodes and tokens, and money under the three policies.

``python -m benchmarks.projection`` prints both tables. The jobs run in a plain loop, without Temporal and without a model: the
statements are given, all else is the product's. Prices are those of ``MODEL`` in litellm's table. A prompt is taken to cost its
stable prefix at the price of cache reads, what later prompts keep at that of cache writes, and the tail as plain tokens.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from activities._script import reply_to
from runtime.prices import prices_of
from runtime.projection.prefix import prefix_of
from runtime.projection.prices import Prices, prompt_cost
from runtime.projection.segments import Segment
from runtime.spec.load import load_jobs_file
from runtime.spec.models import JobSpec, ProjectionPolicy
from tests.job.plain_loop import PlainLoop, native, statements

ROOT = Path(__file__).parent.parent
MODEL = "claude-sonnet-4-5"
TURNS = 120
NODES = (10, 100, 500, 2_000)
TOKENS = (10_000, 50_000, 200_000)
TARGET_SHARE = 0.95


@dataclass(frozen=True)
class SessionCost:
    """One session under one policy. ``share`` is the median over its turns but the first."""

    session: str
    policy: ProjectionPolicy
    turns: int
    prompt_tokens: int
    share: float
    breaks: int
    usd: float


@dataclass(frozen=True)
class ProjectionTime:
    """Milliseconds of one turn's projection where one node of ``nodes`` changed, and of the first one, with all new."""

    nodes: int
    tokens: int
    first_ms: float
    next_ms: float
    new_tokens: int


def cost_of(layouts: Sequence[Sequence[Segment]], prices: Prices) -> tuple[float, float, int]:
    """The price in US dollars, the median share of the stable prefix, and how often the prefix broke."""
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
    loop.job.places.prices = prices
    loop.run()
    usd, share, breaks = cost_of(loop.layouts, prices)
    tokens = sum(segment.tokens for layout in loop.layouts for segment in layout)
    return SessionCost(name, policy, len(loop.layouts), tokens, share, breaks, usd)


# Recorded sessions: the observations of three agents' runs, and edits of files that are in view


def observations() -> list[str]:
    """What the recorded agents were shown in answer to their actions (tests/data)."""
    found: list[str] = []
    for path in sorted((ROOT / "tests" / "data").glob("*.traj.json")):
        history = json.loads(path.read_text())["history"]
        told = [message["content"] for message in history[2:] if message["role"] in ("user", "tool")]
        texts = (t if isinstance(t, str) else "".join(part.get("text", "") for part in t) for t in told)
        found += [text[:6_000] for text in texts]
    return found


FILES = ("runtime/job/job.py", "runtime/job/surface.py", "runtime/projection/project.py", "runtime/tokens.py")


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
    yield "\n".join(f"f{n} = view({Path(f).name!r}, tokens=2000, freq='Sync')" for n, f in enumerate(FILES))
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
    loop = PlainLoop(folder, statements(*made(turns)), tools=[said], options=options, between=edits(folder, every))
    return session_cost(name, policy, loop)


def _budget(turns: int) -> dict[str, Any]:
    return {"turns": turns, "tokens": 10**12, "usd": 1e9, "wall_seconds": 1e9}


def quickstart(policy: ProjectionPolicy) -> Iterator[SessionCost]:
    """The jobs of examples/quickstart that need no tool of their own."""
    for spec in load_jobs_file(ROOT / "examples" / "quickstart" / "jobs.yaml").jobs:
        if not spec.tools:
            yield session_cost(f"quickstart/{spec.id}", policy, _quickstart_loop(spec, policy))


def _quickstart_loop(spec: JobSpec, policy: ProjectionPolicy) -> PlainLoop:
    script = str(spec.model.script)
    turn = iter(range(1, 1_000))

    def respond(messages: list[dict[str, Any]]) -> Any:
        number = next(turn)
        return native(str(reply_to(script, messages, number).code), number)

    kept = spec.model_dump(include={"goal", "result", "budget", "context_tokens"})
    return PlainLoop(Path(spec.workspace), respond, options={**kept, "projection": policy})


# Time by size


def projection_time(nodes: int, tokens: int, folder: Path) -> ProjectionTime:
    """A job with so many views of so many tokens in all; then one of their files changes."""
    each = max(tokens // nodes, 8)
    for number in range(nodes):
        words = " ".join(f"w{number}" for _ in range(each // 3))
        (folder / f"f{number}.txt").write_text(f"first line\n{words}\n")
    sources = [
        "\n".join(f"v{n} = view('f{n}.txt', tokens={each + 40})" for n in range(start, min(start + 100, nodes)))
        for start in range(0, nodes, 100)
    ]
    options = {"context_tokens": 10 * tokens + 1_000_000}
    loop = PlainLoop(folder, statements(*sources, "v0.Run()", "x = 1", "x = 2", "x = 3"), options=options)
    times: list[float] = []
    project = loop.job.project

    def timed(now: float) -> Any:
        started = time.process_time()
        made = project(now)
        times.append((time.process_time() - started) * 1000)
        return made

    loop.job.project = timed  # type: ignore[method-assign]
    while len(loop.layouts) < len(sources) + 2:
        loop.turn()
    (folder / "f0.txt").write_text("another first line\n")
    loop.turn()
    prefix = prefix_of(loop.layouts[-2], loop.layouts[-1])
    return ProjectionTime(nodes, tokens, sum(times[: len(sources) + 1]), times[-1], prefix.tokens - prefix.stable)


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    arguments = parser.parse_args()
    print(f"{'nodes':>6} {'tokens':>8} {'all new, ms':>12} {'one changed, ms':>16} {'tokens not stable':>18}")
    for nodes in NODES:
        for tokens in TOKENS:
            with tempfile.TemporaryDirectory() as folder:
                row = projection_time(nodes, tokens, Path(folder))
            print(f"{row.nodes:>6,} {row.tokens:>8,} {row.first_ms:>12.1f} {row.next_ms:>16.1f} {row.new_tokens:>18,}")
    print(
        f"\n{'session':<24} {'policy':<7} {'turns':>5} {'prompt tokens':>14} {'median share':>13} {'breaks':>7} {MODEL}"
    )
    for session, rows in costs(arguments.turns).items():
        for row in rows.values():
            print(
                f"{session:<24} {row.policy:<7} {row.turns:>5} {row.prompt_tokens:>14,} {row.share:>13.3f} "
                f"{row.breaks:>7} ${row.usd:.4f}"
            )


def costs(turns: int) -> dict[str, dict[ProjectionPolicy, SessionCost]]:
    """All sessions under all policies."""
    found: dict[str, dict[ProjectionPolicy, SessionCost]] = {}
    for policy in ProjectionPolicy:
        rows = list(quickstart(policy))
        for name in SESSIONS:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(recorded_session(name, policy, Path(folder), turns))
        for row in rows:
            found.setdefault(row.session, {})[policy] = row
    return found


if __name__ == "__main__":
    main()
