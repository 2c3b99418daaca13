"""Objects that only try whether a store can be written, which no archive holds."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from runtime.base.errors import ArchiveError

TRIES = "_holdfast-tries"
"""Under this stand the objects of tries: a few bytes each, beside all that an archive lists.

They are removed at once where that is allowed; a rule of the bucket may expire the others.
"""


@runtime_checkable
class Forgetting(Protocol):
    """A store that can remove what was written as a try, and nothing else."""

    def remove_try(self, key: str) -> None:
        """Remove the object, if this identity may; else it stays.

        Raises:
            ArchiveError: if the key is not that of a try.
        """
        ...


def check_try(key: str) -> None:
    """See that ``key`` is a try's.

    Raises:
        ArchiveError: if it is not: nothing that an archive holds is ever removed.
    """
    if not key.startswith(f"{TRIES}/"):
        raise ArchiveError(f"{key} is not the object of a try, and is not removed")
