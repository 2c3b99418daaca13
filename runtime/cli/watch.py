"""``holdfast watch``: a batch as it runs, from another terminal or a script."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from runtime.cli.exit_codes import exit_code
from runtime.cli.options import ANY_SERVER, Batch, Store
from runtime.cli.output import json_line, note, say, stdout
from runtime.server.target import Target

if TYPE_CHECKING:
    from runtime.client.batch_watch import Picture


def command(
    batch: Batch,
    target: Target = ANY_SERVER,
    store: Store = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object for each change, and for the end.")
    ] = False,
) -> None:
    """Watch a batch until it ends.

    It shows how many jobs have each status, what was spent, the rate of turns and tokens over the
    last minute, the jobs that have run longest, and the newest errors by kind. It asks the batch,
    and a few of its open jobs at a time: watching five thousand takes no more than watching five.
    Ctrl-C leaves the batch alone. Where no server runs it shows once the jobs that have begun, as
    the archive has them.

    Exit code 0: all jobs succeeded; 1: some did not; 3: a budget stopped some; 130: interrupted.
    """
    import asyncio

    raise typer.Exit(asyncio.run(_watched(batch, target, store, _viewer(json))))


class Viewer(Protocol):
    """Shows one picture after the other."""

    def show(self, picture: Picture) -> None:
        """The next one."""
        ...

    def stop(self) -> None:
        """There are no more."""
        ...


async def _watched(batch: str, target: Target, store: str | None, viewer: Viewer) -> int:
    import time

    from runtime.cli.stores import archive_to_read
    from runtime.client.batch_watch import BatchWatch
    from runtime.client.control import Control
    from runtime.server.connection import connect_if_up

    objects = archive_to_read(store)
    async with connect_if_up(target) as connection:
        control = Control(connection.client, objects) if connection is not None else None
        watch = BatchWatch(objects, control, batch, time.monotonic)
        return await _shown(watch.pictures(), viewer)


async def _shown(pictures: AsyncIterator[Picture], viewer: Viewer) -> int:
    picture: Picture | None = None
    try:
        async for picture in pictures:
            viewer.show(picture)
    finally:
        viewer.stop()
    # A watch gives a picture before it ends, or raises.
    assert picture is not None
    code = exit_code(picture.counts)
    _say_end(viewer, picture, code)
    return code


def _say_end(viewer: Viewer, picture: Picture, code: int) -> None:
    if isinstance(viewer, _Json):
        json_line({"event": "end", **_document(picture), "exit_code": code})
        return
    from runtime.cli.batch_board import spent, sums

    # Without a server nobody knows whether all of the batch's jobs have begun, and it has ended.
    how = "as it was left" if picture.silent else "ended"
    say(f"{how}: {sums(picture)}; {spent(picture)}")
    if picture.silent:
        note(picture.silent)
    if code:
        say(f"holdfast errors {picture.batch}")


def _viewer(json: bool) -> Viewer:
    if json:
        return _Json()
    # A table needs a cursor that can be moved.
    if not stdout().isatty() or os.environ.get("TERM") == "dumb":
        return _Plain()
    return _Table()


class _Json:
    """A line for each picture that tells something new."""

    def __init__(self) -> None:
        self._last: Any = None

    def show(self, picture: Picture) -> None:
        told = _document(picture)
        # Rates and times are others at each look, and no news.
        news = {name: told[name] for name in ("counts", "turns", "tokens", "errors", "silent")}
        if news != self._last and not picture.ended:
            self._last = news
            json_line({"event": "picture", **told})

    def stop(self) -> None:
        """Nothing to do."""


class _Plain:
    """A line whenever a job has come to stand otherwise."""

    def __init__(self) -> None:
        self._last: tuple[dict[str, int], str] | None = None

    def show(self, picture: Picture) -> None:
        from runtime.cli.batch_board import spent, sums

        if picture.ended or (picture.counts, picture.silent) == self._last:
            return
        self._last = picture.counts, picture.silent
        if picture.silent:
            note(f"{picture.silent}: asking again")
        else:
            say(f"{sums(picture)}; {spent(picture)}")

    def stop(self) -> None:
        """Nothing to do."""


class _Table:
    """A table that redraws itself."""

    def __init__(self) -> None:
        import time

        from runtime.cli.drawing import begin_drawing, table_console

        self._console = table_console()
        self._clock, self._began = time.monotonic, time.monotonic()
        self._picture: Picture | None = None
        self._live = begin_drawing(self._console, self._drawn, 2)

    def show(self, picture: Picture) -> None:
        self._picture = picture

    def stop(self) -> None:
        """Leaves the terminal as it was."""
        self._live.stop()

    def _drawn(self) -> Any:
        from runtime.cli.batch_board import drawn

        if self._picture is None:
            return ""
        width, height = self._console.size
        return drawn(self._picture, width, height, self._clock() - self._began)


def _document(picture: Picture) -> dict[str, Any]:
    from dataclasses import asdict

    told = asdict(picture)
    del told["ended"]
    return {**told, "slowest": list(told["slowest"]), "errors": list(told["errors"])}
