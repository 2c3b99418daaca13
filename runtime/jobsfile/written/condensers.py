"""How a job makes room when its prompt grows too large: one condenser, or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from runtime.base.quoted import shown
from runtime.base.spec.models import CondenserSpec
from runtime.history.condensers.kinds import KINDS
from runtime.jobsfile.written.base import Written
from runtime.jobsfile.written.bounds import MAX_COUNT
from runtime.jobsfile.written.models import WrittenModel
from runtime.jobsfile.written.wrong import wrong

_CONDENSER = CondenserSpec(kind="summary")

# Type checkers take no Literal that is made from a table.
if TYPE_CHECKING:
    _CondenserKind = str
else:
    _CondenserKind = Literal["auto", "none", *KINDS]

_KINDS_TOLD = " ".join(f"{name}: {kind.about}." for name, kind in KINDS.items())


class WrittenCondenser(Written):
    """How a job makes room when its prompt grows too large. A kind alone is a condenser too."""

    kind: _CondenserKind = Field(
        description=(
            f"{_KINDS_TOLD} auto: a summary by the job's model, an extract for a scripted one."
            " none: nothing is ever forgotten."
        ),
    )
    max_size: int | None = Field(
        default=None,
        ge=8,
        le=MAX_COUNT,
        description=(
            "Events in the prompt (a turn is two) above which it condenses; if left out, only its"
            " tokens count."
        ),
    )
    keep_first: int = Field(
        default=_CONDENSER.keep_first,
        ge=2,
        le=1_000,
        description=(
            "Events at the beginning that stay; the contract and the goal are the first two."
        ),
    )
    model: WrittenModel | None = Field(
        default=None, description="The model of summaries; the job's own if left out."
    )
    input_tokens: int = Field(
        default=_CONDENSER.input_tokens,
        ge=500,
        le=10_000_000,
        description="Tokens of events that one summary stands for at most.",
    )
    summary_tokens: int = Field(
        default=_CONDENSER.summary_tokens,
        ge=64,
        le=100_000,
        description="Tokens that a summary or an extract may have.",
    )

    @model_validator(mode="before")
    @classmethod
    def _from_kind(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"kind": value}
        if not isinstance(value, dict):
            raise wrong(
                f"expected a condenser's kind or a mapping with its kind, got {shown(value)}"
            )
        return value

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> dict[str, Any]:
        """A kind alone is a condenser too."""
        mapping = handler.resolve_ref_schema(handler(core_schema))
        description = mapping.pop("description")
        kind = {"type": "string", "enum": mapping["properties"]["kind"]["enum"]}
        return {"description": description, "anyOf": [kind, mapping]}


def _in_a_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


class _OneOrMore:
    """The JSON Schema of a list of which one alone may be written without the list."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> dict[str, Any]:
        """One item, or the list."""
        several = handler(core_schema)
        return {"anyOf": [several["items"], several]}


Condensers = Annotated[
    list[WrittenCondenser],
    Field(min_length=1, max_length=8),
    BeforeValidator(_in_a_list),
    _OneOrMore,
]
"""One condenser, or a list of them in order of preference."""
