"""A small, real source for the tests of the context: files in memory, read by the rules of
``ReadRequest``.

Tokens are words, so that every count in a test can be checked by eye.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from runtime.base.digests import digest_of
from runtime.context.graph import ContextGraph
from runtime.context.outcomes import NeedsRead, NodeRef, Outcome, Raised, Returned
from runtime.context.payloads import Preparation
from runtime.context.sources import ALL_TOKENS, ReadRequest, ReadResult, ReadStatus


def words(text: str) -> int:
    """The number of words of ``text``: the tests' token count."""
    return len(text.split())


def read(files: dict[str, str], request: ReadRequest) -> ReadResult:
    """Read ``request`` from ``files``: whole lines from ``pos`` on within the budget; level 1 keeps
    ``def`` and ``class`` lines.
    """
    if request.path not in files:
        return ReadResult(
            obj_id=request.obj_id,
            status=ReadStatus.ERROR,
            error_type="FileNotFoundError",
            error_message=f"no such file: {request.path}",
        )
    content = files[request.path]
    fingerprint = digest_of(content)
    basis = digest_of([fingerprint, request.pos, request.tokens, request.lod])
    if basis == request.known:
        return ReadResult(
            obj_id=request.obj_id, status=ReadStatus.UNCHANGED, basis=basis, fingerprint=fingerprint
        )
    lines = content.splitlines()
    first = _first_line(lines, request.pos)
    taken: list[str] = []
    for line in lines[first:]:
        if request.tokens != ALL_TOKENS and words("\n".join([*taken, line])) > request.tokens:
            break
        taken.append(line)
    shown = [
        line for line in taken if request.lod == 0 or line.lstrip().startswith(("def ", "class "))
    ]
    text = "\n".join(shown)
    return ReadResult(
        obj_id=request.obj_id,
        status=ReadStatus.OK,
        basis=basis,
        fingerprint=fingerprint,
        text=text,
        first_line=first,
        last_line=first + len(taken),
        total_lines=len(lines),
        tokens=words(text),
        truncated=len(taken) < len(lines),
    )


def _first_line(lines: list[str], pos: str) -> int:
    if pos.startswith("/"):
        return next((i for i, line in enumerate(lines) if pos[1:] in line), 0)
    if pos.startswith("-"):
        return max(len(lines) - int(pos[1:]), 0)
    return min(int(pos.partition(":")[0]), len(lines))


@dataclass
class Job:
    """A graph, its files, and the turn: what a job's loop is, without the rest of the loop."""

    files: dict[str, str] = field(default_factory=dict)
    graph: ContextGraph = field(default_factory=lambda: ContextGraph(words))
    turn: int = 1
    now: float = 1_000.0
    reads: list[str] = field(default_factory=list)

    def finish(self, outcome: Outcome) -> Outcome:
        """Carry out the read that ``outcome`` asks for, if it does."""
        if isinstance(outcome, NeedsRead):
            self.reads.append(outcome.request.obj_id)
            return self.graph.complete(
                outcome.call, read(self.files, outcome.request), turn=self.turn
            )
        return outcome

    def call(self, name: str, *args: Any, **kwargs: Any) -> Outcome:
        """A function's outcome."""
        return self.finish(self.graph.call_function(name, args, kwargs, turn=self.turn))

    def on(self, node: str, method: str, *args: Any, **kwargs: Any) -> Outcome:
        """A method's outcome."""
        return self.finish(self.graph.call_method(node, method, args, kwargs, turn=self.turn))

    def view(self, path: str, **kwargs: Any) -> str:
        """The id of a new view."""
        return node_of(self.call("view", path, **kwargs))

    def group(self, *members: str, **kwargs: Any) -> str:
        """The id of a new group."""
        return node_of(self.call("group", *map(NodeRef, members), **kwargs))

    def tick(self, seconds: float = 60.0) -> list[str]:
        """Begin the next turn, ``seconds`` after the last; the ids of the nodes that were read."""
        self.turn += 1
        self.now += seconds
        self.graph.background.apply(turn=self.turn, now=self.now)
        due = self.graph.due_reads(turn=self.turn, now=self.now)
        self.graph.apply_tick(
            [read(self.files, request) for request in due], turn=self.turn, now=self.now
        )
        self.graph.background.cancel()
        return [request.obj_id for request in due]

    def begin(self) -> dict[str, Preparation]:
        """The preparations that start now, by their node."""
        return {p.obj_id: p for p in self.graph.background.begin(turn=self.turn, now=self.now)}

    def prepared(self, preparation: Preparation, written: str = "") -> None:
        """A preparation has read its source as it is now, or a model has ``written`` a group's
        summary.
        """
        request = preparation.request
        summary = ReadResult(
            obj_id=request.obj_id, status=ReadStatus.OK, text=written, tokens=words(written)
        )
        result = read(self.files, request) if preparation.material is None else summary
        self.graph.background.ready(preparation.payload_id, result, self.now)

    def feed(self) -> list[str]:
        """The delta feed's lines."""
        return [f"{delta.name}: {delta.summary}" for delta in self.graph.take_deltas()]

    def get(self, node: str, name: str) -> Any:
        """An attribute's value."""
        outcome = self.graph.get_attribute(node, name)
        assert isinstance(outcome, Returned), outcome
        return outcome.value


def node_of(outcome: Outcome) -> str:
    """The id of the node that a call returned."""
    assert isinstance(outcome, Returned), outcome
    assert isinstance(outcome.value, NodeRef), outcome
    return outcome.value.obj_id


def raised(outcome: Outcome) -> Raised:
    """The exception that a call raised."""
    assert isinstance(outcome, Raised), outcome
    return outcome


def numbered(count: int, *, start: int = 0) -> str:
    """A file of ``count`` lines of one word: ``line0``, ``line1``, ..."""
    return "\n".join(f"line{number}" for number in range(start, start + count))
