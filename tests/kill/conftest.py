"""The experiments that the kill tests judge.

They run side by side, and each test waits for its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.kill import experiments
from tests.kill.experiments import Survived

Outcome = Callable[[str], Survived]


@pytest.fixture(scope="session")
def outcome(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Outcome]:
    """Gives an experiment's outcome by its name.

    All that the session needs are started when the first is asked for.
    """
    path = tmp_path_factory.mktemp("experiments")
    with ThreadPoolExecutor(experiments.AT_ONCE) as pool:
        started: dict[str, Future[Survived]] = experiments.start(
            _wanted(request.session.items), path, pool
        )

        def get(name: str) -> Survived:
            if name not in started:
                started.update(experiments.start([name], path, pool))
            return started[name].result()

        yield get
        pool.shutdown(cancel_futures=True)


def _wanted(items: list[pytest.Item]) -> list[str]:
    """The experiments that the collected tests ask for, and what they are compared with first."""
    params = [
        item.callspec.params
        for item in items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
    ]
    named = [str(param["experiment"]) for param in params if "experiment" in param]
    return list(dict.fromkeys([*map(experiments.reference, named), *named]))
