"""The listing of a session's variables, and the places that a statement changed in them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final

from pydantic_monty import MontyError, MontySession

from runtime.interpreter import namespace, pool, walk
from runtime.interpreter.contents import Contents, parse
from runtime.interpreter.definitions import Definitions
from runtime.interpreter.namespace import Namespace
from runtime.interpreter.paths import changed_paths

KEPT_CHARS: Final = 16_000_000
"""Characters of contents that are kept, to tell what the next statement of a job changed in
them.
"""


class _Kept:
    """The contents that were listed last, by the digest of their namespace.

    What is not here is listed again.
    """

    def __init__(self) -> None:
        self._contents: OrderedDict[str, Contents] = OrderedDict()
        self._chars = 0
        self._lock = threading.Lock()

    def put(self, digest: str, contents: Contents) -> None:
        """Keep contents, and forget the oldest beyond the limit."""
        with self._lock:
            self._drop(digest)
            self._contents[digest] = contents
            self._chars += contents.chars
            # The one that was just put included, if it is too much by itself.
            while self._chars > KEPT_CHARS:
                self._drop(next(iter(self._contents)))

    def take(self, digest: str) -> Contents | None:
        """The contents of a namespace, which are kept no longer: a job needs those of its last
        statement only.
        """
        with self._lock:
            contents = self._contents.get(digest)
            self._drop(digest)
            return contents

    def _drop(self, digest: str) -> None:
        dropped = self._contents.pop(digest, None)
        if dropped is not None:
            self._chars -= dropped.chars


_kept = _Kept()


def told(session: MontySession, expression: str, inputs: dict[str, Any] | None = None) -> Any:
    """The value of an expression of the framework's, after a statement.

    What it prints goes nowhere: a statement may have had it run code of its own, and the standard
    output of a worker is its user's.
    """
    return session.feed_run(expression, inputs=inputs, print_callback=lambda *_: None)


def contents_of(
    session: MontySession, definitions: Definitions, source: str, hidden: frozenset[str]
) -> Contents:
    """All that the session's variables hold after the statement ``source``, whose definitions are
    in ``definitions``.
    """
    inputs = {
        "holdfast_classes": {name: list(names) for name, names in definitions.classes.items()},
        "holdfast_loose": list(definitions.loose),
    }
    contents = parse(told(session, walk.CALL, inputs), hidden)
    named = definitions.named((line[1:] for line in contents.lines if line.startswith("f")), source)
    return Contents(contents.roots, contents.lines, named)


def keep(names: Namespace, contents: Contents) -> None:
    """Keep what was listed, for the next statement's diff."""
    _kept.put(names.digest, contents)


def paths(
    before: Namespace,
    after: Namespace,
    now: Contents,
    load: Callable[[], AbstractContextManager[MontySession]],
    hidden: frozenset[str],
) -> dict[str, tuple[str, ...]]:
    """The places that changed, by variable.

    ``load`` restores the session as it was, where its contents are not kept.

    Raises:
        NoVerdict: if the session that was restored ended before it told them.
    """
    names = namespace.changed(before, after)
    if not names:
        return {}
    was = _kept.take(before.digest)
    if was is None:
        try:
            with load() as session:
                was = contents_of(session, before.definitions, "", hidden)
        except (MontyError, RuntimeError) as error:
            raise pool.NoVerdict(
                f"the variables before the statement could not be listed: {error}"
            ) from error
    return {name: changed_paths(name, was, now) for name in names}
