"""What settings of condensers make sense, told at their construction and of a jobs file alike."""

from __future__ import annotations

from collections.abc import Mapping


def contradiction(
    *,
    max_size: int | None = None,
    keep_first: int = 0,
    input_tokens: int | None = None,
    summary_tokens: int = 1,
) -> tuple[str, str] | None:
    """The setting that two settings make senseless together, and why; None if they go together."""
    if max_size is not None and keep_first >= max_size:
        return (
            "keep_first",
            f"{keep_first} events that always stay leave nothing to forget of max_size {max_size}",
        )
    if input_tokens is not None and summary_tokens > input_tokens:
        return (
            "summary_tokens",
            (
                f"a summary of {summary_tokens} tokens is longer than input_tokens {input_tokens},"
                " which it stands for"
            ),
        )
    return None


def check(condenser: str, *, least: Mapping[str, tuple[int, int]], **together: int) -> None:
    """Refuse a condenser's settings: ``least`` has each setting's value and the least that it may
    be.

    Raises:
        ValueError: naming the condenser, the setting and what was expected.
    """
    for name, (value, lowest) in least.items():
        if value < lowest:
            raise ValueError(f"{condenser}: {name} must be at least {lowest}, not {value}")
    if (fault := contradiction(**together)) is not None:
        raise ValueError(f"{condenser}: {fault[0]}: {fault[1]}")
