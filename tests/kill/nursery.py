"""The commands of experiments of many kills, forked from a process that has loaded everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.forks import forked as forks
from tests.forks.forked import Forked
from tests.kill.processes import environment


def without_overlays() -> None:
    """Have what commands change found by looking through all files, as on a host without overlays
    (the fixture ``tracking``).
    """
    from activities.versions import Versions

    Versions.overlays = False  # type: ignore[assignment]


def forked(
    home: Path,
    arguments: Sequence[str],
    log: Path,
    extra: Mapping[str, str],
    before: Callable[[], None] | None = None,
) -> Forked:
    """As ``processes.holdfast``, by a fork, which does something ``before``. Its environment is not
    in ``/proc``.
    """
    with log.with_suffix(".out").open("wb") as out, log.with_suffix(".err").open("wb") as err:
        return forks.forked(
            arguments,
            home,
            environment(home, extra),
            out=out.fileno(),
            err=err.fileno(),
            before=before,
        )


@contextmanager
def forked_endpoint(policy: Path, log: Path) -> Iterator[str]:
    """As ``tests.servers.program.endpoint``, by a fork."""
    arguments = ["--policy", str(policy), "--log", str(log)]
    process = forks.forked_module("tests.servers.openai_server", arguments)
    assert process.stdout is not None
    with process.stdout:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait()
