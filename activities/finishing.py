"""Telling a command or a webhook that a job or a batch has ended.

At least once on the wire: a try whose answer got lost is made again, with the same key. What became
of it is kept in the archive, so that a try that follows a lost one finds it, and people see it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import IO, Any

import httpx
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities._secrets import Secrets
from activities.finish_contracts import FinishNotice, FinishTold
from runtime.archive.job import JobArchive
from runtime.archive.notices import Notice, find_notice, write_notice
from runtime.archive.stores import ObjectStore
from runtime.base.lifelines import ends_with
from runtime.base.spec.finish import masked_url, url_of, variable_of
from runtime.tools.environment import tool_environment

KEY_HEADER = "Idempotency-Key"
MOST_RESULT = 256 * 1024
"""Bytes of a result that is told; of a larger one nothing is, but that it is in the archive."""

MOST_SAID = 400
_GATED = 'read -r go && exec /bin/sh -c "$1"'
"""A shell that becomes the command $1 once a line has come on stdin, of which it reads no more; it
ends where none comes.
"""

_AGAIN = frozenset({408, 409, 425, 429})
"""Answers of the 400s after which trying again makes sense."""


class NotHeard(Exception):
    """It was not heard; ``final``: nor would it be another time."""

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.final = final


class FinishActivities:
    """The activity ``tell_finish``."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @activity.defn(name="tell_finish")
    async def tell_finish(self, notice: FinishNotice) -> FinishTold:
        """Tell of one end, unless it was told.

        Raises:
            ApplicationError: type ``NotHeard``, if it was not heard and there is a next try.
        """
        kept = await asyncio.to_thread(find_notice, self._store, notice.batch, notice.key)
        if kept is not None:
            return FinishTold(heard=kept.heard, error=kept.error, tries=kept.tries)
        tries = activity.info().attempt
        error = ""
        try:
            await self._tell(notice)
        except NotHeard as problem:
            error = str(problem)
            # Kept only when no try follows: what is kept would answer that try.
            if not problem.final and tries < notice.last:
                raise ApplicationError(error, type="NotHeard") from None
            activity.logger.warning(
                "%s was not told of the end of %s: %s",
                notice.order.shown,
                notice.job or f"batch {notice.batch}",
                error,
            )
        await asyncio.to_thread(write_notice, self._store, _kept(notice, error, tries))
        return FinishTold(heard=not error, error=error, tries=tries)

    async def _tell(self, notice: FinishNotice) -> None:
        body = await asyncio.to_thread(self._body, notice)
        if notice.order.webhook is not None:
            await _post(notice, notice.order.webhook, body)
        else:
            await _run(notice, body)

    def _body(self, notice: FinishNotice) -> bytes:
        """What is told, as JSON: of a job with its result, if that is not too large."""
        told: dict[str, Any] = {"event": notice.event, "key": notice.key, "batch": notice.batch}
        if notice.job is not None:
            end = JobArchive.of(self._store, notice.job).end(notice.run) if notice.run else None
            result = end.result if end is not None else None
            small = len(json.dumps(result)) <= MOST_RESULT
            told |= {"job": notice.job.job, "run": notice.run}
            told |= {"result": result if small else None, "result_told": small}
        return json.dumps(told | notice.told).encode()


def _kept(notice: FinishNotice, error: str, tries: int) -> Notice:
    return Notice(
        key=notice.key,
        batch=notice.batch,
        job=notice.job.job if notice.job is not None else "",
        event=notice.event,
        to=notice.order.shown,
        heard=not error,
        error=error,
        tries=tries,
        at=datetime.now(UTC).isoformat(),
    )


async def _post(notice: FinishNotice, webhook: str, body: bytes) -> None:
    """Send it to a webhook.

    Raises:
        NotHeard: if the answer is not one of the 200s, in words without the URL.
    """
    url = _url(webhook)
    where = masked_url(url)
    headers = {"content-type": "application/json", KEY_HEADER: notice.key}
    timeout = notice.order.timeout
    try:
        # The client's own limit is of each piece. What the receiver says is not read.
        async with (
            httpx.AsyncClient(timeout=timeout) as client,
            asyncio.timeout(timeout),
            client.stream("POST", url, content=body, headers=headers) as answer,
        ):
            pass
    except TimeoutError:
        raise NotHeard(f"{where} did not answer within {timeout:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        # The words of some of these errors have the URL in them.
        raise NotHeard(f"{where}: {type(error).__name__}") from None
    if not answer.is_success:
        said = answer.status_code
        final = 400 <= said < 500 and said not in _AGAIN
        raise NotHeard(f"{where} answered {said} {answer.reason_phrase}".rstrip(), final=final)


def _url(webhook: str) -> str:
    """The webhook's URL, which the worker's environment may have."""
    url = url_of(webhook, os.environ)
    if url is None:
        raise NotHeard(f"this worker's environment has no URL in {variable_of(webhook)}")
    return url


async def _run(notice: FinishNotice, body: bytes) -> None:
    """Run a command, which gets it on stdin.

    Raises:
        NotHeard: if the command cannot be run, takes too long, or exits with another code than 0.
    """
    order = notice.order
    with tempfile.TemporaryFile() as said, _lifeline() as lifeline:
        try:
            process = await asyncio.create_subprocess_exec(
                *("/bin/sh", "-c", _GATED, "sh", order.command or ""),
                cwd=order.directory,
                env=_environment(notice),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=said,
                # A group of its own, so that what the command has started can be ended with it.
                start_new_session=True,
                pass_fds=(lifeline,),
            )
        except OSError as error:
            why = f"the command cannot be run in {order.directory}: {error.strerror}"
            raise NotHeard(why) from None
        try:
            # Another worker gives it again when this one is killed: it begins only then.
            with contextlib.suppress(ProcessLookupError):
                ends_with(lifeline, process.pid)
            async with asyncio.timeout(order.timeout):
                await process.communicate(b"\n" + body)
        except TimeoutError:
            why = f"the command took more than {order.timeout:g} s and was ended"
            raise NotHeard(why) from None
        finally:
            # Also after a good end: what the command left running in its group goes with it.
            _end(process)
            await process.wait()
        if process.returncode:
            raise NotHeard(f"the command exited with {process.returncode}{_last_words(said)}")


@contextlib.contextmanager
def _lifeline() -> Iterator[int]:
    """The reading end of a pipe that this process alone can write to."""
    ends = os.pipe()
    try:
        yield ends[0]
    finally:
        for end in ends:
            os.close(end)


def _end(process: asyncio.subprocess.Process) -> None:
    """End the command and what it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _last_words(said: IO[bytes]) -> str:
    """The last line that the command printed to stderr, masked."""
    # Only the end is read: a command may have printed gigabytes.
    said.seek(max(said.seek(0, os.SEEK_END) - 8_192, 0))
    lines = said.read().decode("utf-8", "replace").strip().splitlines()
    if not lines:
        return ""
    return f": {Secrets.of_call({}).mask(lines[-1])[:MOST_SAID]}"


def _environment(notice: FinishNotice) -> dict[str, str]:
    """What a tool gets, and what is told in short."""
    told = {
        "EVENT": notice.event.value,
        "KEY": notice.key,
        "BATCH": notice.batch,
        "JOB": notice.job.job if notice.job is not None else "",
        "STATUS": str(notice.told.get("status", "")),
    }
    return tool_environment(os.environ) | {f"HOLDFAST_FINISH_{k}": v for k, v in told.items()}
