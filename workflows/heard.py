"""What a workflow was told already.

Others can give a message again that they find in the history; they cannot make one.
"""

from __future__ import annotations

from collections.abc import Iterable


class Heard:
    """The ids of the messages that a workflow and the runs before it have taken."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._ids = dict.fromkeys(ids)

    @property
    def ids(self) -> tuple[str, ...]:
        """For the run that goes on."""
        return tuple(self._ids)

    def is_new(self, id: str) -> bool:
        """Whether no message of that id was given before; those of releases before may have none,
        and are new.
        """
        if id in self._ids:
            return False
        if id:
            self._ids[id] = None
        return True
