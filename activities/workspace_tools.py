"""Calls of tools that work on a job's files: each in a process of its own, which gets the files of
the version before as a directory, and what it leaves there is the version after.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from pathlib import Path
from typing import Any

from temporalio.exceptions import ApplicationError

from activities._once import CallClaim, held_claim, held_result
from activities.bounds import not_allowed
from activities.commands import Commands
from activities.contracts import ToolRequest, ToolResult, WorkspaceChange
from activities.tools import FIRST_PAUSE, LONGEST_PAUSE
from runtime.archive.job import JobArchive
from runtime.base.effect_classes import EffectClass
from runtime.base.errors import InputError
from runtime.tools.allowed import NotAllowed
from runtime.tools.environment import named_secrets
from runtime.tools.functions import WORKSPACE
from runtime.tools.host import LOOK_SECONDS, Asked, HostEnded, ToolHost, ToolHosts, described


class WorkspaceTools:
    """Makes such calls on this host, in processes of ``hosts``."""

    def __init__(self, commands: Commands, hosts: ToolHosts) -> None:
        self._commands = commands
        self._hosts = hosts

    def run(
        self,
        change: WorkspaceChange,
        call: ToolRequest,
        archive: JobArchive,
        run: str,
        stop: threading.Event,
    ) -> tuple[ToolResult, str]:
        """What the statement gets, and the version after the call.

        Raises:
            ApplicationError: type ``ToolUnavailable``, when the tool cannot be imported by this
                worker; ``NotAllowed``, when it may not be.
            InterruptedError: if nobody wants it any more.
            Busy: if the job's files are in use for long.
        """
        self._check(call, stop)

        def work(files: Path) -> tuple[ToolResult, str]:
            return self._called(call, files, stop)

        if call.often is EffectClass.ONCE:
            claim = CallClaim(archive, (run, change.turn, change.effect), call)
            if (unknown := held_claim(call).archived_here(claim.taken, stop)) is not None:
                return unknown, change.held.version
            held = held_result(call)
            (result, ended), version, _ = self._commands.in_files(
                change, work, lambda write: held.archived_here(write, stop)
            )
            return (claim.broken(ended) if ended else result), version
        for retry in itertools.count():
            # Each try begins with the files of the version before.
            (result, _), version, _ = self._commands.in_files(change, work)
            if result.error_type is None or retry == call.retries:
                return result, version
            # Not a sleep: who cancels the call need not wait for the pause.
            if stop.wait(min(FIRST_PAUSE * 2**retry, LONGEST_PAUSE)):
                raise InterruptedError("the call is not wanted any more")
        raise AssertionError("a last try returns")

    def _check(self, call: ToolRequest, stop: threading.Event) -> None:
        """See that the call can be made here, before anything says that it may have been."""
        try:
            named_secrets(call.secrets, os.environ)
            described(self._hosts, call.target, call.search_path, call.secrets, stop)
        except NotAllowed as error:
            raise not_allowed(error) from error
        except (InputError, ValueError) as error:
            raise ApplicationError(f"{call.called}: {error}", type="ToolUnavailable") from error

    def _called(
        self, call: ToolRequest, files: Path, stop: threading.Event
    ) -> tuple[ToolResult, str]:
        """The outcome of one call; and how it ended, if without one."""
        place = call.search_path, call.secrets
        host = self._hosts.lent(*place)
        kwargs = {**call.kwargs, WORKSPACE: str(files)}
        try:
            asked = host.call(call.target, call.args, kwargs)
            frame = _answer(host, asked, call.timeout, stop)
        except TimeoutError:
            ended = f"it took more than its {call.timeout:g} seconds, and its process was ended"
            return ToolResult(error_type="TimeoutError", error_message=ended), ended
        except HostEnded as error:
            ended = f"the process of the tool {error}"
            return ToolResult(error_type="RuntimeError", error_message=ended), ended
        except ValueError as error:
            told = f"{call.called}: {error}"
            return ToolResult(error_type="ValueError", error_message=told), ""
        finally:
            self._hosts.give_back(host, *place)
        if "refused" in frame:
            raise not_allowed(str(frame["refused"]))
        if (why := frame.get("unavailable", frame.get("gone"))) is not None:
            raise ApplicationError(f"{call.called}: {why}", type="ToolUnavailable")
        return ToolResult.model_validate(frame["outcome"]), ""


def _answer(
    host: ToolHost, asked: Asked, seconds: float | None, stop: threading.Event
) -> dict[str, Any]:
    """The frame that answers.

    Raises:
        TimeoutError: if the call has run for so many ``seconds``; its process is ended.
        InterruptedError: if nobody wants it any more; likewise.
    """
    while True:
        try:
            return asked.answer.result(timeout=LOOK_SECONDS)
        except TimeoutError:
            late = (
                seconds is not None
                and asked.begun_at is not None
                and time.monotonic() - asked.begun_at >= seconds
            )
            if not late and not stop.is_set():
                continue
            host.close()
            if late:
                raise
        raise InterruptedError("the call is not wanted any more")
