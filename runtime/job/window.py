"""What a provider's refusal of a prompt says of its window."""

from __future__ import annotations

import re

SMALLER = 0.75
"""How much smaller the next prompt is where the refusal names no sizes."""

MARGIN = 0.95
"""How much smaller than the provider's own figures say: its count is not ours."""

_N = r"([\d,]{3,})(?:\.0)?"
_SIZES = (
    (re.compile(rf"{_N} tokens? ?> ?{_N}", re.I | re.S), (2, 1)),
    (
        re.compile(
            rf"maximum (?:\w+ )?length (?:is|of) {_N}.{{0,80}}?(?:requested|resulted in"
            rf"|contains|has) (?:about )?{_N}",
            re.I | re.S,
        ),
        (1, 2),
    ),
    (
        re.compile(
            rf"(?:length|count)(?: of| is)? \(?{_N}\)?.{{0,40}}(?:longer than|exceeds|exceed"
            rf"|less than).{{0,60}}?{_N}",
            re.I | re.S,
        ),
        (2, 1),
    ),
    (re.compile(rf"(?:total|prompt) length {_N}.{{0,80}}context length {_N}", re.I | re.S), (2, 1)),
)
"""How OpenAI, Anthropic and most servers of open models name the limit and the prompt's size."""


def learned_limit(refusal: str, size: int) -> int:
    """The most that prompts may have from now on, in our tokens, after one of ``size`` was refused
    with these words.

    Where the provider names its limit and its count of the prompt, the share between the two;
    always less than ``size``.
    """
    for pattern, (limit_group, size_group) in _SIZES:
        if match := pattern.search(refusal):
            limit, counted = _number(match[limit_group]), _number(match[size_group])
            # Figures the wrong way round are of something else than the prompt's size.
            if 0 < limit < counted:
                return int(size * limit / counted * MARGIN)
    return int(size * SMALLER)


def _number(text: str) -> int:
    digits = text.replace(",", "")
    return int(digits) if digits else 0
