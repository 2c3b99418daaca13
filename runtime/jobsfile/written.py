"""A jobs file as it is written: the pydantic models that check it and give its JSON Schema.

What needs the disk (workspaces, scripts, tools) is checked later, in ``resolve``; these models see
plain values.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, LiteralString
from urllib.parse import parse_qsl, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from runtime.base.durations import PATTERN, parse_duration
from runtime.base.errors import InputError
from runtime.base.quoted import shown
from runtime.base.redaction.patterns import compiled
from runtime.base.spec.finish import VARIABLE
from runtime.base.spec.models import (
    DEFAULT_CONCURRENCY,
    DEFAULT_CONTEXT_TOKENS,
    DEFAULT_EXCLUDE,
    LEAST_SECTION,
    Budget,
    CondenserSpec,
    Retry,
    Sections,
    Spawn,
)
from runtime.base.spec.servers import DEFAULT_TIMEOUT
from runtime.base.url_rules import PATTERN as PATTERN_OF_URLS
from runtime.base.url_rules import UrlRule
from runtime.history.condensers.kinds import KINDS

# What a job is goes through a workflow's input, where a payload may have 2 MiB: all is bounded.
MAX_GOAL_BYTES = 256 * 1024
MAX_JOBS = 1_000_000
MAX_TOOLS = 64
# More than anybody needs, and less than the 2**53 up to which every reader of JSON is exact.
MAX_COUNT = 10**12
MAX_REDACTIONS = 64
MAX_PATTERNS = 256
MAX_SETUP = 16 * 1024
MAX_URLS = 64
MAX_LIMITS = 64
MAX_OPTION_BYTES = 64 * 1024
STORE_SCHEMES = ("file", "s3")
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
TEMPLATE_PATTERN = r"\{[A-Za-z_]"
NAME_RULE = "letters, digits, '.', '_' and '-', a letter or digit first, at most 100"
VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"
TARGET_PATTERN = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"
MODEL_PATTERN = r"^\S(.*\S)?$"
SERVER_PATTERN = r"^[A-Za-z][A-Za-z0-9_]{0,39}$"
URL_PATTERN = "^https?://"
RULES = {
    VARIABLE_PATTERN: (
        "the name of an environment variable (letters, digits and '_', no digit first), without '$'"
    ),
    TARGET_PATTERN: "a tool as 'module:function'",
    MODEL_PATTERN: "a model's name without spaces around it",
    SERVER_PATTERN: "a server's name (letters, digits and '_', a letter first, at most 40)",
    URL_PATTERN: "a URL that begins with http:// or https://",
}
"""What is expected of a text that does not fit a pattern."""

_DEFAULTS = Budget()
_SPAWN = Spawn()
_RETRY = Retry()
_SECTIONS = Sections()
_CONDENSER = CondenserSpec(kind="summary")

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

# A token is often a piece of text: only where a name says what it opens is it a secret.
_SECRET_KEY = re.compile(
    r"(^|_)(api_?key|apikey|password|secret|credentials?|authorization|access_key"
    r"|access_key_id|private_key)($|_)"
    r"|(^|_)(api|auth|access|session|bearer|ad|hf|id|refresh|security)_token$|^token$"
    r"|^(x_api_key|cookie|proxy_authorization)$"
)


WRONG: Final = "holdfast"
WRONG_NUMBER: Final = "holdfast_number"
"""Kinds of errors of validators in this package; the second is of those that take numbers, too."""


def wrong(text: str, kind: LiteralString = WRONG) -> PydanticCustomError:
    """The error of a validator in this package: ``text`` is shown as it is."""
    return PydanticCustomError(kind, "{text}", {"text": text})


def is_secret_key(key: str) -> bool:
    """Whether an option of this name would hold a secret."""
    return _SECRET_KEY.search(key.lower().replace("-", "_")) is not None


def is_secret_name(name: str) -> bool:
    """Whether a parameter of this name in a URL would hold a secret."""
    return (
        is_secret_key(name)
        or re.search(r"(key|token|secret|signature|sig|auth|password)$", name.lower()) is not None
    )


def is_name(text: str) -> bool:
    """Whether ``text`` may name a batch or a job."""
    return re.fullmatch(NAME_PATTERN, text) is not None and not text.endswith("\n")


def _name(value: Any) -> Any:
    if not isinstance(value, str) or not is_name(value):
        raise wrong(f"expected a name ({NAME_RULE}), got {shown(value)}")
    return value


def _duration(value: Any) -> float:
    try:
        return parse_duration(value)
    except ValueError:
        text = f"expected a duration such as 6h or 90m, got {shown(value)}"
        raise wrong(text, WRONG_NUMBER) from None


def _deadline(value: Any) -> float | str:
    """A duration, or a time, which is given back in UTC."""
    try:
        # Durations first: a number of seconds is one of them, and no time.
        return parse_duration(value)
    except ValueError:
        pass
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
        if at is None or at.tzinfo is None:
            raise ValueError("not a time with its zone")
        return at.astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        raise wrong(
            "expected a duration such as 8h, or a time with its zone such as"
            f" 2026-05-31T08:00:00+02:00, got {shown(value)}",
            WRONG_NUMBER,
        ) from None


def _url(value: str) -> str:
    try:
        UrlRule.of(value)
    except ValueError as error:
        raise wrong(f"{error}, got {shown(value)}") from None
    return value


def _goal(value: Any) -> Any:
    if isinstance(value, str):
        if not value.strip():
            raise wrong("expected a text that says what to do, got an empty one")
        size = len(value.encode("utf-8", "surrogatepass"))
        if size > MAX_GOAL_BYTES:
            raise wrong(
                f"expected at most {MAX_GOAL_BYTES} bytes, got {size}; put long material in the"
                " workspace"
            )
    return value


Name = Annotated[
    str, BeforeValidator(_name), WithJsonSchema({"type": "string", "pattern": NAME_PATTERN})
]
Duration = Annotated[
    float,
    BeforeValidator(_duration),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": PATTERN},
            ]
        }
    ),
]
Deadline = Annotated[
    float | str,
    BeforeValidator(_deadline),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": f"{PATTERN}|T.*(Z|[+-][0-9]{{2}}:?[0-9]{{2}})$"},
            ]
        }
    ),
]
Goal = Annotated[str, BeforeValidator(_goal)]


def _as_the_loader_does(schema: dict[str, Any]) -> None:
    """Say in ``schema`` that a key is left out or has a value (``null`` is neither), and drop
    compound defaults.
    """
    for name, part in schema.get("properties", {}).items():
        default = part.get("default")
        if isinstance(default, dict) or (isinstance(default, list) and default):
            del part["default"]
        kinds = part.get("anyOf", [])
        if name not in NULLABLE and {"type": "null"} in kinds:
            rest = [kind for kind in kinds if kind != {"type": "null"}]
            del part["anyOf"], part["default"]
            part.update(rest[0] if len(rest) == 1 else {"anyOf": rest})


NULLABLE = frozenset({"result", "spawn"})
"""Keys for which ``null`` means something: no schema, where the defaults have one."""


def _not_null(value: Any, info: ValidationInfo) -> Any:
    # A key with nothing behind it is null to YAML, and more often forgotten than meant.
    if value is None and info.field_name not in NULLABLE:
        raise wrong("expected a value, got nothing; leave the key out instead")
    return value


class Written(BaseModel):
    """A mapping of a jobs file."""

    model_config = ConfigDict(
        # A number in quotes is a text, and 1 is not true: types are those of YAML and JSON.
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        frozen=True,
        json_schema_extra=_as_the_loader_does,
    )

    _no_nulls = field_validator("*", mode="before")(_not_null)


class WrittenBudget(Written):
    """What a job may spend. Keys that a job leaves out come from the defaults."""

    turns: int = Field(default=_DEFAULTS.turns, ge=1, le=MAX_COUNT, description="Model calls.")
    tokens: int = Field(
        default=_DEFAULTS.tokens,
        ge=1,
        le=MAX_COUNT,
        description="Prompt and completion tokens of all calls together.",
    )
    usd: float = Field(
        default=_DEFAULTS.usd, gt=0, description="US dollars, as litellm prices the calls."
    )
    wall: Duration = Field(
        default=_DEFAULTS.wall_seconds,
        description=(
            "Time that is worked for the job, its own waits included: seconds, or a text such as"
            " 30s, 90m, 6h, 2d."
        ),
    )
    deadline: Deadline | None = Field(
        default=None,
        description=(
            "When the job ends by the clock: a duration after its start, or a time such as"
            " 2026-05-31T08:00:00+02:00."
        ),
    )


class WrittenBatchBudget(Written):
    """What all jobs of a batch may spend together; what is left out is not bounded."""

    turns: int | None = Field(default=None, ge=1, le=MAX_COUNT, description="Model calls.")
    tokens: int | None = Field(
        default=None, ge=1, le=MAX_COUNT, description="Prompt and completion tokens of all calls."
    )
    usd: float | None = Field(default=None, gt=0, description="US dollars.")
    wall: Duration | None = Field(
        default=None, description="Time by the clock from the batch's start on."
    )


class WrittenLimit(Written):
    """How fast an account or a tool may be called, by all batches and workers together."""

    requests_per_minute: float | None = Field(default=None, gt=0, description="Calls a minute.")
    tokens_per_minute: int | None = Field(
        default=None,
        ge=1,
        le=MAX_COUNT,
        description=(
            "Prompt and completion tokens a minute; calls a minute follow from what calls use."
        ),
    )
    concurrent: int | None = Field(
        default=None, ge=1, le=256, description="Calls at a time, of each worker process."
    )

    @model_validator(mode="after")
    def _some(self) -> WrittenLimit:
        if not self.model_fields_set:
            raise wrong("expected requests_per_minute, tokens_per_minute or concurrent")
        return self


class WrittenToolLimit(Written):
    """How fast a tool may be called, by all batches and workers together."""

    requests_per_minute: float | None = Field(default=None, gt=0, description="Calls a minute.")
    concurrent: int | None = Field(
        default=None, ge=1, le=256, description="Calls at a time, of each worker process."
    )

    @model_validator(mode="after")
    def _some(self) -> WrittenToolLimit:
        if not self.model_fields_set:
            raise wrong("expected requests_per_minute or concurrent")
        return self


class WrittenLimits(Written):
    """How fast models and tools may be called. What is not named is not limited."""

    models: dict[Annotated[str, Field(min_length=1, max_length=200)], WrittenLimit] = Field(
        default={},
        max_length=MAX_LIMITS,
        description=(
            "By patterns of models' names (openai/*), each of which stands for a provider's"
            " account; the longest that matches counts."
        ),
    )
    tools: dict[Annotated[str, Field(pattern=TARGET_PATTERN)], WrittenToolLimit] = Field(
        default={}, max_length=MAX_LIMITS, description="By tools, as module:function."
    )


class WrittenRetry(Written):
    """How long a model call is patient, and how often a job that has failed is started again. Keys
    that a job leaves out come from the defaults.
    """

    on: list[Literal["provider", "tool", "error"]] = Field(
        default=["provider", "tool", "error"],
        min_length=1,
        max_length=3,
        description=(
            "What must have failed for that: the model's provider, a tool or the workspace, or"
            " anything else (error)."
        ),
    )
    times: int = Field(
        default=_RETRY.times,
        ge=0,
        le=100,
        description=(
            "How often a job that has failed is started again, from its first turn, as another run"
            " of the same job."
        ),
    )

    attempts: int = Field(
        default=_RETRY.attempts,
        ge=1,
        le=10_000,
        description=(
            "Failed attempts at one call, after which the job has failed. What they use is booked."
        ),
    )
    time: Duration = Field(
        default=_RETRY.time,
        description=(
            "What the failed attempts at one call, and the waits after them, may take in all."
        ),
    )
    first_byte: Duration = Field(
        default=_RETRY.first_byte,
        description="Time from a request to the first byte of a streamed reply.",
    )
    stall: Duration = Field(default=_RETRY.stall, description="Time between two pieces of a reply.")


SectionTokens = Annotated[int, Field(ge=LEAST_SECTION, le=10_000_000)]
"""Tokens of a prompt's part."""


class WrittenSections(Written):
    """The most tokens of a prompt's parts. Keys that a job leaves out come from the defaults."""

    history: SectionTokens | None = Field(
        default=None,
        description=(
            "Statements, results and messages; beyond it the job condenses. Unbounded by default."
        ),
    )
    views: SectionTokens | None = Field(
        default=None,
        description=(
            "Views; beyond it the oldest leave a mark, and pinned ones are shown smaller. Unbounded"
            " by default."
        ),
    )
    groups: SectionTokens | None = Field(
        default=None,
        description="Groups; beyond it the largest are shown smaller. Unbounded by default.",
    )
    notes: SectionTokens | None = Field(
        default=None,
        description="Notes; beyond it the largest are shown smaller. Unbounded by default.",
    )
    feed: SectionTokens = Field(
        default=_SECTIONS.feed,
        description="What changed since the last turn, at most an eighth of context_tokens.",
    )
    handles: SectionTokens = Field(
        default=_SECTIONS.handles,
        description="The table of handles, at most an eighth of context_tokens.",
    )


class WrittenWorkspace(Written):
    """A workspace of the job's own, which it may change; nobody else's files are written."""

    from_: str | None = Field(
        default=None,
        alias="from",
        min_length=1,
        description=(
            "The directory that it begins as a copy of, relative to the jobs file, or another"
            " job's workspace after its turn N (holdfast://JOB@N). Left out: it begins empty."
        ),
    )
    write: bool = Field(
        default=True,
        description="Whether the job may change it. A path alone is a directory that it may not.",
    )
    exclude: list[Annotated[str, Field(min_length=1, max_length=1000)]] = Field(
        default=list(DEFAULT_EXCLUDE),
        max_length=MAX_PATTERNS,
        description=(
            "Patterns as in .gitignore: what they match is neither copied nor kept. Replaces the"
            " default ones, which are what tools make anew."
        ),
    )
    setup: str = Field(
        default="",
        max_length=MAX_SETUP,
        description=(
            "Shell commands that fill /env (for example: python3 -m venv /env && /env/bin/pip"
            " install pytest). They run once for equal inputs on a host, with network, before the"
            " first turn; commands find /env read-only, and /env/bin in their PATH."
        ),
    )
    sandbox: Literal["auto", "bwrap", "none"] = Field(
        default="auto",
        description=(
            "What commands run in: bubblewrap, or nothing (none), which lets them do all that the"
            " worker's user may. auto is bubblewrap, and refuses to start without."
        ),
    )
    network: bool = Field(default=False, description="Whether commands reach the network.")
    keep: list[Annotated[str, Field(min_length=1, max_length=1000)]] = Field(
        default=[],
        max_length=MAX_PATTERNS,
        description="Patterns as in .gitignore of files that are handed over with the result.",
    )
    secrets: list[Annotated[str, Field(pattern=VARIABLE_PATTERN)]] = Field(
        default=[],
        max_length=MAX_REDACTIONS,
        description=(
            "Names of the worker's environment variables that commands are given; their values are"
            " masked in what comes back."
        ),
    )

    @model_validator(mode="before")
    @classmethod
    def _from_path(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"from": value, "write": False}
        if not isinstance(value, dict):
            raise wrong(f"expected a directory or a mapping, got {shown(value)}")
        if value.get("write") is False:
            if value.get("from") is None:
                raise wrong("expected 'from': a workspace that is not written is a directory's")
            if more := sorted(value.keys() - {"from", "write"}):
                raise wrong(f"{more[0]!r} is for a workspace that the job may write")
        return value

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> dict[str, Any]:
        """A path alone is a workspace too."""
        mapping = handler.resolve_ref_schema(handler(core_schema))
        description = mapping.pop("description")
        return {"description": description, "anyOf": [{"type": "string", "minLength": 1}, mapping]}

    @field_validator("exclude", "keep")
    @classmethod
    def _patterns(cls, patterns: list[str]) -> list[str]:
        from pathspec import GitIgnoreSpec

        for pattern in patterns:
            try:
                GitIgnoreSpec.from_lines([pattern])
            except ValueError:
                raise wrong(f"expected a pattern as in .gitignore, got {shown(pattern)}") from None
        return patterns


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


class WrittenPrice(Written):
    """US dollars per million tokens: of the prompt, of replies, and read from and written to the
    provider's cache.
    """

    input: float = Field(ge=0, description="A million tokens of prompts.")
    output: float = Field(ge=0, description="A million tokens of replies.")
    cache_read: float | None = Field(
        default=None, ge=0, description="Those of prompts that the cache had; as input if left out."
    )
    cache_write: float | None = Field(
        default=None, ge=0, description="Those that were put there; as input if left out."
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

    _no_nulls = field_validator("*", mode="before")(_not_null)

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


class WrittenServer(Written):
    """An MCP server: a command, or a URL."""

    command: list[Annotated[str, Field(min_length=1, max_length=4_096)]] = Field(
        default=[],
        max_length=100,
        description=(
            "The program that speaks the protocol over its standard streams, and its arguments; it"
            " is started once for each worker."
        ),
    )
    directory: str | None = Field(
        default=None,
        min_length=1,
        description="Where the command is started; the jobs file's directory if left out.",
    )
    url: str | None = Field(
        default=None,
        max_length=2_000,
        pattern=URL_PATTERN,
        description="Where the server is reached over streamable HTTP.",
    )
    env: list[Annotated[str, Field(pattern=VARIABLE_PATTERN)]] = Field(
        default=[],
        max_length=100,
        description=(
            "Names of the worker's environment variables that the command gets, beside PATH, HOME,"
            " LANG, LC_ALL and TMPDIR."
        ),
    )
    token: str | None = Field(
        default=None,
        pattern=VARIABLE_PATTERN,
        description=(
            "The name of the worker's environment variable whose value requests to the URL carry as"
            " bearer token."
        ),
    )
    timeout: Duration = Field(
        default=DEFAULT_TIMEOUT, description="How long a call may take.", le=6 * 3_600.0
    )
    effects: dict[str, Literal["pure", "idempotent", "once"]] = Field(
        default={},
        max_length=100,
        description=(
            "How often tools may run for one call, by the server's names for them, in place of what"
            " its annotations say: pure, idempotent or once."
        ),
    )


WrittenApproval = Literal["never", "always", "once-per-args"]


def _patterns_of_commands(value: Any) -> Any:
    """A word alone is for all commands."""
    return {"*": value} if isinstance(value, str) else value


class _OneForAll:
    """The JSON Schema of a mapping whose one value may stand alone, for all keys."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> dict[str, Any]:
        """One value, or the mapping."""
        mapping = handler(core_schema)
        return {"anyOf": [mapping["additionalProperties"], mapping]}


class WrittenApprovals(Written):
    """Which calls wait for a person."""

    tools: dict[str, WrittenApproval] = Field(
        default={},
        max_length=100,
        description=(
            "Whether a person is asked before a tool is called, by its name (of a server's:"
            " server.method), in place of what the tool says: always, never, or once in the job for"
            " equal arguments."
        ),
    )
    sh: Annotated[
        dict[Annotated[str, Field(min_length=1, max_length=1000)], WrittenApproval],
        BeforeValidator(_patterns_of_commands),
        _OneForAll,
    ] = Field(
        default={},
        max_length=MAX_PATTERNS,
        description=(
            "The same for the commands of sh, by patterns of the shell (*, ?, [...]) of which the"
            " first one that fits holds; a word alone is for all commands. A command that holds"
            " several is asked about if one of them is."
        ),
    )
    wait: Duration | None = Field(
        default=None,
        description=(
            "When a question that nobody has answered is answered by itself; if left out, the job"
            " waits as long as it may last."
        ),
    )
    otherwise: Literal["reject", "approve"] = Field(
        default="reject", description="The answer that it then gets."
    )


class WrittenSpawn(Written):
    """How many sub-jobs a job may start, and what each is lent of its budget."""

    max: int = Field(
        default=_SPAWN.max, ge=1, le=1_000, description="Sub-jobs that the job may start in all."
    )
    depth: int = Field(
        default=_SPAWN.depth,
        ge=1,
        le=4,
        description="Generations below the job: with 1, its sub-jobs start none.",
    )
    turns: int = Field(
        default=_SPAWN.turns, ge=1, le=MAX_COUNT, description="Turns that a sub-job is lent."
    )
    tokens: int = Field(
        default=_SPAWN.tokens, ge=1, le=MAX_COUNT, description="Tokens that a sub-job is lent."
    )
    usd: float = Field(default=_SPAWN.usd, gt=0, description="US dollars that a sub-job is lent.")
    model: WrittenModel | None = Field(
        default=None, description="The model of sub-jobs; the job's own if left out."
    )


_NO_BUDGET = WrittenBudget()
_NO_RETRY = WrittenRetry()
_NO_SECTIONS = WrittenSections()
_NO_APPROVALS = WrittenApprovals()
_NO_REDACTION = WrittenRedaction()
"""One each for all jobs that leave them out: a default is copied for each."""


class WrittenSettings(Written):
    """What a job is run with; the same keys are allowed in ``defaults`` and in each job."""

    model: WrittenModel | None = Field(
        default=None,
        description=(
            "The model; a job without one takes the default one, and one of the two is needed."
        ),
    )
    form: Literal["auto", "tool", "script"] = Field(
        default="auto",
        description=(
            "How the model hands over its statement: a native tool call, or a script block in its"
            " text. auto is tool."
        ),
    )
    budget: WrittenBudget = Field(
        default_factory=lambda: _NO_BUDGET, description="What the job may spend."
    )
    retry: WrittenRetry = Field(
        default_factory=lambda: _NO_RETRY, description="How long a model call is patient."
    )
    context_tokens: int = Field(
        default=DEFAULT_CONTEXT_TOKENS,
        ge=1_000,
        le=10_000_000,
        description="The size to which prompts are projected, in tokens.",
    )
    sections: WrittenSections = Field(
        default_factory=lambda: _NO_SECTIONS,
        description="The most tokens that the parts of a prompt may have.",
    )
    condenser: Condensers = Field(
        default=[WrittenCondenser(kind="auto")],
        description=(
            "How the job makes room when its prompt grows too large: a condenser, or a list of"
            " which the first that has an answer is taken."
        ),
    )
    pin_user_messages: bool = Field(
        default=False,
        description="Whether messages sent to the job are never forgotten, as its goal is not.",
    )
    projection: Literal["auto", "inline", "append"] = Field(
        default="auto",
        description=(
            "What becomes of a view that changed: shown anew where it stands (inline), told of"
            " further down, so that the provider's cache holds (append), or whichever of the two"
            " costs less (auto)."
        ),
    )
    summary_model: WrittenModel | None = Field(
        default=None,
        description=(
            "The model that sums up views and groups at level of detail 2, in the background; a"
            " cheaper one will do. The job's own if left out, and none for a scripted one. 'none':"
            " nothing is summed up, the structure is shown instead."
        ),
    )
    urls: list[
        Annotated[
            str,
            WithJsonSchema({"type": "string", "pattern": PATTERN_OF_URLS}),
            AfterValidator(_url),
        ]
    ] = Field(
        default=[],
        max_length=MAX_URLS,
        description=(
            "Web pages that the job may view: URLs beneath which everything is allowed, or hosts"
            " such as docs.python.org, *.example.org or wiki.corp:8443, which mean https. Loopback"
            " and private addresses only where one is named, as http://localhost:8000 or 10.0.3.7."
            " None by default."
        ),
    )
    workspace: WrittenWorkspace | None = Field(
        default=None,
        description=(
            "A directory that the job may read, relative to the jobs file; or, as a mapping, a"
            " workspace of its own that it may change."
        ),
    )
    tools: list[Annotated[str, Field(pattern=TARGET_PATTERN)]] = Field(
        default=[],
        max_length=MAX_TOOLS,
        description=(
            "Typed Python functions as module:function; modules are looked for beside the jobs file"
            " first. A job's list replaces the default one."
        ),
    )
    check: Annotated[str, Field(pattern=TARGET_PATTERN)] | None = Field(
        default=None,
        description=(
            "A typed Python function of a result and of the directory of the job's files, as"
            " module:function, that gives the result of a job that succeeded a score: a number, or"
            " {'score': a number, 'remarks': text}. It is looked for and run as a tool is."
        ),
    )
    secrets: list[Annotated[str, Field(pattern=VARIABLE_PATTERN)]] = Field(
        default=[],
        max_length=MAX_REDACTIONS,
        description=(
            "Names of the worker's environment variables that these tools are given; their values"
            " are masked in what comes back. A job's list replaces the default one."
        ),
    )
    mcp: dict[Annotated[str, Field(pattern=SERVER_PATTERN)], WrittenServer] = Field(
        default={},
        max_length=8,
        description=(
            "MCP servers, by the names that statements know them by: docs.search(query='x')"
            " calls the tool search of docs. A job's mapping replaces the default one."
        ),
    )
    spawn: WrittenSpawn | None = Field(
        default=None,
        description=(
            "Lets statements start sub-jobs: spawn(goal, ...). A sub-job is a job of the same"
            " batch, with a budget out of its job's. null: none, also where the defaults allow"
            " some."
        ),
    )
    approvals: WrittenApprovals = Field(
        default_factory=lambda: _NO_APPROVALS,
        description=(
            "Which calls wait for a person's approval. A job's own replaces the default one."
        ),
    )
    redact: WrittenRedaction = Field(
        default_factory=lambda: _NO_REDACTION,
        description=(
            "What is masked in all that the job reads. A job's own replaces the default one."
        ),
    )
    result: dict[str, Any] | None = Field(
        default=None,
        description=(
            "The JSON Schema that the value given to finish(...) must satisfy; null for any value."
            " It refers to nothing outside itself; its patterns are RE2's."
        ),
    )


class WrittenMany(Written):
    """What makes a job stand for many: one for each item, combination and number."""

    for_each: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "A file of items, relative to the jobs file: .jsonl, or .csv with a header. The job"
            " stands for one for each, in whose values {field} is what the item has there."
        ),
    )
    matrix: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(
        default={},
        min_length=1,
        max_length=16,
        description=(
            "Lists of values by the fields' names: the job stands for one for each combination."
        ),
    )
    count: int = Field(
        default=1,
        ge=1,
        le=MAX_JOBS,
        description="So many jobs, or so many of each; {n} is the number, from 1.",
    )


class WrittenJob(WrittenSettings, WrittenMany):
    """One job; it may override every default."""

    id: Annotated[
        Name, WithJsonSchema({"type": "string", "pattern": f"{NAME_PATTERN}|{TEMPLATE_PATTERN}"})
    ] = Field(
        description=(
            "The job's name, unique in the file. Of one that stands for many a text with a field in"
            " it; what a name cannot have becomes '-' in the field."
        )
    )
    goal: Goal = Field(description="What the job is to do, in words.", min_length=1)


class WrittenFinish(Written):
    """Who is told when a job or the batch has ended: a command or a webhook."""

    command: str | None = Field(
        default=None,
        min_length=1,
        max_length=4_096,
        description=(
            "A shell command that a worker runs in the jobs file's directory. It gets what is told"
            " as JSON on stdin, and the idempotency key in HOLDFAST_FINISH_KEY."
        ),
    )
    webhook: str | None = Field(
        default=None,
        min_length=1,
        max_length=2_048,
        description=(
            "A URL to which a worker posts what is told, as JSON, with the header Idempotency-Key."
            " $NAME: the worker's environment variable NAME has the URL, which then stands neither"
            " in the file nor in the archive."
        ),
    )
    events: list[Literal["job", "batch"]] = Field(
        default=["job", "batch"],
        min_length=1,
        max_length=2,
        description="What is told of: the end of each job, the end of the batch, or both.",
    )
    timeout: Duration = Field(default=60.0, description="How long one try may take.", le=3_600.0)

    @model_validator(mode="after")
    def _one(self) -> WrittenFinish:
        if (self.command is None) == (self.webhook is None):
            raise wrong("expected one of 'command' and 'webhook'")
        return self

    @field_validator("webhook")
    @classmethod
    def _url_or_variable(cls, value: str | None) -> str | None:
        if value is None or VARIABLE.fullmatch(value):
            return value
        try:
            parts = urlsplit(value)
            whole = parts.scheme in ("http", "https") and bool(parts.hostname)
            # The port raises if it is no number.
            has_port = parts.port is None or parts.port > 0
        except ValueError:
            whole = has_port = False
        if not whole or not has_port:
            # What stands there is not repeated: it may be a secret.
            raise wrong("expected a URL that begins with http:// or https://, or $NAME")
        if (
            parts.username
            or parts.password
            or any(is_secret_name(n) for n, _ in parse_qsl(parts.query))
        ):
            raise wrong(
                "expected a URL without a secret: put it into an environment variable, $NAME"
            )
        return value


class WrittenHeader(Written):
    """A jobs file without its jobs."""

    batch: Name | None = Field(
        default=None, description="The batch's name; the file's stem if left out."
    )
    concurrency: int = Field(
        default=DEFAULT_CONCURRENCY,
        ge=1,
        le=1_000,
        description="How many jobs may be open at once.",
    )
    store: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "The archive: a directory (relative to the jobs file) or a URL such as"
            " s3://bucket/prefix."
        ),
    )
    budget: WrittenBatchBudget = Field(
        default=WrittenBatchBudget(),
        description="What the jobs may spend together, beside what each may ('defaults.budget').",
    )
    limits: WrittenLimits = Field(
        default=WrittenLimits(), description="How fast models and tools may be called."
    )
    priority: int | None = Field(
        default=None,
        ge=1,
        le=5,
        description=(
            "How early the batch's limited calls come among those of other batches: 1 the earliest,"
            " 3 if left out. Those of equal priority take turns."
        ),
    )
    on_finish: WrittenFinish | None = Field(
        default=None, description="Who is told when a job, and when the batch, has ended."
    )
    tools_path: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "The directory in which tools are looked for first; the jobs file's own if left out."
        ),
    )
    defaults: WrittenSettings = Field(
        default=WrittenSettings(), description="Settings of every job that does not override them."
    )


class WrittenFile(WrittenHeader):
    """A Holdfast jobs file."""

    jobs: list[WrittenJob] = Field(
        min_length=1, max_length=MAX_JOBS, description="The jobs of the batch."
    )
