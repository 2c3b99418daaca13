"""What an error came of: litellm raises its own in place of others, and names not all of them."""

from __future__ import annotations

from collections.abc import Iterator


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """``error``, what it was raised for or while that was handled, and so on back to the first."""
    # Nothing keeps causes from going in a circle.
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__
