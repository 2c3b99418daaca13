"""A model: its name, its price, and which options a jobs file may give."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from runtime.base.quoted import shown
from runtime.jobsfile.written.base import Written, not_null
from runtime.jobsfile.written.bounds import MAX_COUNT
from runtime.jobsfile.written.patterns import MODEL_PATTERN
from runtime.jobsfile.written.wrong import WRONG_NUMBER, wrong

SET_BY_HOLDFAST = frozenset(
    {
        "acompletion",
        "client",
        "context_window_fallback_dict",
        "fallbacks",
        "function_call",
        "functions",
        "max_retries",
        "messages",
        "model",
        "n",
        "num_retries",
        "parallel_tool_calls",
        "stream",
        "stream_options",
        "tool_choice",
        "tools",
    }
)
"""Arguments of the litellm call that a jobs file may not give, since the model activity does."""

REPLY_LIMITS = frozenset({"max_completion_tokens", "max_output_tokens", "max_tokens"})
"""Options that bound a reply: where less of a budget is left, the model activity asks for less."""


class WrittenPrice(Written):
    """US dollars per million tokens: of the prompt, of replies, and read from and written to the
    provider's cache.
    """

    input: float = Field(ge=0, le=MAX_COUNT, description="A million tokens of prompts.")
    output: float = Field(ge=0, le=MAX_COUNT, description="A million tokens of replies.")
    cache_read: float | None = Field(
        default=None,
        ge=0,
        le=MAX_COUNT,
        description="Those of prompts that the cache had; as input if left out.",
    )
    cache_write: float | None = Field(
        default=None,
        ge=0,
        le=MAX_COUNT,
        description="Those that were put there; as input if left out.",
    )


FREE = "free"


def _price(value: Any) -> Any:
    """``free`` and 0 as what they stand for."""
    # ``false`` equals 0 to Python.
    if value == FREE or (value == 0 and not isinstance(value, bool)):
        return {"input": 0, "output": 0}
    if not isinstance(value, dict):
        raise wrong(
            f"expected {{input: DOLLARS, output: DOLLARS}} per million tokens, or {FREE!r}, got"
            f" {shown(value)}",
            WRONG_NUMBER,
        )
    return value


OwnPrice = Annotated[
    WrittenPrice,
    BeforeValidator(_price, json_schema_input_type=WrittenPrice | Literal["free", 0]),
]


class WrittenModel(BaseModel):
    """A litellm model, or scripted/FILE. Further keys are passed to litellm as they are."""

    model_config = ConfigDict(
        strict=True, extra="allow", allow_inf_nan=False, frozen=True, defer_build=True
    )

    name: str = Field(
        pattern=MODEL_PATTERN,
        description=(
            "A litellm model name such as openai/gpt-5, or scripted/FILE (relative to the jobs"
            " file)."
        ),
    )
    price: OwnPrice | None = Field(
        default=None,
        description=(
            "What the model's tokens cost, where litellm's table does not know or an endpoint has"
            " prices of its own; 0 or free for one that costs nothing."
        ),
    )

    _no_nulls = field_validator("*", mode="before")(not_null)

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"name": value}
        if not isinstance(value, dict):
            raise wrong(f"expected a model's name or a mapping with its name, got {shown(value)}")
        return value

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> dict[str, Any]:
        """A name alone is a model too."""
        mapping = handler.resolve_ref_schema(handler(core_schema))
        mapping["properties"]["api_base"] = {
            "type": "string",
            "description": "The endpoint's URL, where it is not the provider's own.",
        }
        forbidden = "|".join(sorted(SET_BY_HOLDFAST))
        mapping["propertyNames"] = {"not": {"pattern": f"^({forbidden}|api_key)$"}}
        name = mapping["properties"]["name"]
        description = mapping.pop("description")
        return {
            "description": description,
            "anyOf": [{"type": "string", "pattern": name["pattern"]}, mapping],
        }
