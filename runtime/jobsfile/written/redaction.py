"""What is masked in all that a job reads."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from runtime.base.errors import InputError
from runtime.base.quoted import shown
from runtime.base.redaction.patterns import compiled
from runtime.jobsfile.written.base import Written
from runtime.jobsfile.written.bounds import MAX_REDACTIONS
from runtime.jobsfile.written.patterns import VARIABLE_PATTERN
from runtime.jobsfile.written.wrong import wrong


class WrittenRedaction(Written):
    """What to mask in all that the job reads, beside well-known keys and the secrets of the
    environment.
    """

    env: list[Annotated[str, Field(pattern=VARIABLE_PATTERN)]] = Field(
        default=[],
        max_length=MAX_REDACTIONS,
        description="Names of the worker's environment variables whose values are secret.",
    )
    patterns: list[Annotated[str, Field(min_length=1, max_length=1000)]] = Field(
        default=[],
        max_length=MAX_REDACTIONS,
        description=(
            "Regular expressions (RE2's: Python's without look-around and back-references); what"
            " matches one is masked."
        ),
    )

    @field_validator("patterns")
    @classmethod
    def _compile(cls, patterns: list[str]) -> list[str]:
        for pattern in patterns:
            try:
                # A pattern that fits the empty text fits everywhere, and would mask nothing.
                empty = compiled(pattern).fullmatch(b"") is not None
            except InputError as error:
                raise wrong(f"expected regular expressions: {error}") from None
            if empty:
                raise wrong(f"expected a pattern that matches no empty text, got {shown(pattern)}")
        return patterns
