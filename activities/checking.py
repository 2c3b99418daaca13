"""Giving a job's result a score: its ``check`` is called as a tool is, in a process of its own, and
what it gave is archived as an effect of the last turn.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from temporalio import activity

from activities.contracts import Checked, CheckRequest, ToolRequest, ToolResult
from activities.tools import ToolActivities
from runtime.trees.tree import Tree
from runtime.workspace.checkouts.checkout import Checkouts
from runtime.workspace.checkouts.laying import lay, write_file

CHECK = 690_000
"""The number of the check among a statement's effects; behind those that it made, before claims."""

MOST_REMARKS = 4_000


class CheckActivities:
    """The activity ``check_result``."""

    def __init__(self, checkouts: Checkouts, tools: ToolActivities) -> None:
        self._checkouts = checkouts
        self._tools = tools

    @activity.defn(name="check_result")
    async def check_result(self, request: CheckRequest) -> Checked:
        """The score of a result. One that a try before has archived stands.

        Raises:
            ApplicationError: type ``ToolUnavailable``, when the check cannot be imported here.
            ArchiveError: the archive cannot be read or written.
        """
        if not request.version:
            return checked_by(await self._called(request, request.workspace))
        copy = self._copy(request.version)
        # A check may write, so it gets files that are nobody else's.
        # Entered by hand, in a thread: laying files out may take long, and the loop serves others.
        directory = await asyncio.to_thread(copy.__enter__)
        try:
            return checked_by(await self._called(request, str(directory)))
        finally:
            await asyncio.to_thread(copy.__exit__, None, None, None)

    async def _called(self, request: CheckRequest, workspace: str) -> ToolResult:
        check = request.check
        return await self._tools.call_tool(
            ToolRequest(
                key=request.key,
                turn=request.turn,
                effect=CHECK,
                tool=check.target,
                search_path=check.search_path,
                args=(request.result, workspace),
                often=check.effect,
                timeout=check.timeout,
                retries=check.retries,
                secrets=request.secrets,
                redact=request.redact,
            )
        )

    @contextmanager
    def _copy(self, version: str) -> Iterator[Path]:
        """A version's files in a directory of their own."""
        # They have their modes, by which others might read them: nobody else comes to them there,
        # and what a worker that is killed leaves is deleted with the rest.
        with self._checkouts.scratch("check-") as top:
            directory = top / "files"
            directory.mkdir()
            trees = self._checkouts.trees
            tree = trees.tree(version)
            lay(
                directory,
                Tree().difference(tree),
                tree,
                lambda place, entry: write_file(place, entry, trees.content(entry)),
            )
            yield directory


def checked_by(result: ToolResult) -> Checked:
    """The score and the remarks in what a check returned, or why there is no score."""
    if result.error_type is not None:
        said = f"the check raised {result.error_type}: {result.error_message}"
        return Checked(remarks=said[:MOST_REMARKS])
    match result.value:
        case {"score": score, **rest} if set(rest) <= {"remarks"}:
            remarks = rest.get("remarks", "")
        case [score, remarks]:
            pass
        case score:
            remarks = ""
    if (number := _score(score)) is None or not isinstance(remarks, str):
        told = repr(result.value)[:200]
        return Checked(
            remarks=f"the check returned {told}: expected a number, or a score and remarks"
        )
    return Checked(score=number, remarks=remarks[:MOST_REMARKS])


def _score(value: Any) -> float | None:
    # Truth is a score as well: a check may only say whether.
    if not isinstance(value, bool | int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
