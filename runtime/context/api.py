"""The model-facing functions and methods, defined once: calls are bound by them, stubs and contract
are made from them.

Every method has two spellings, ``SetLod`` and ``set_lod``; the definition holds the first.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from runtime.context.outcomes import Refused


class Kind(StrEnum):
    """How an argument may be passed."""

    NORMAL = "normal"
    KEYWORD = "keyword"
    REST = "rest"


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, its annotation and default as Python text."""

    name: str
    annotation: str
    default: str | None = None
    kind: Kind = Kind.NORMAL

    def stub(self) -> str:
        """The parameter as it stands in a ``def``."""
        star = "*" if self.kind is Kind.REST else ""
        tail = f" = {self.default}" if self.default is not None else ""
        return f"{star}{self.name}: {self.annotation}{tail}"


@dataclass(frozen=True)
class Signature:
    """One function or method."""

    name: str
    parameters: tuple[Parameter, ...]
    returns: str
    doc: str

    def python(self) -> inspect.Signature:
        """The signature that binds calls; defaults are the texts' marker ``...``, left to the
        handler.
        """
        kinds = {
            Kind.NORMAL: inspect.Parameter.POSITIONAL_OR_KEYWORD,
            Kind.KEYWORD: inspect.Parameter.KEYWORD_ONLY,
            Kind.REST: inspect.Parameter.VAR_POSITIONAL,
        }
        return inspect.Signature(
            [
                inspect.Parameter(
                    p.name,
                    kinds[p.kind],
                    default=inspect.Parameter.empty if p.default is None else ...,
                )
                for p in self.parameters
            ]
        )

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by name, only those that were given.

        Raises:
            Refused: with a ``TypeError``, when they do not fit.
        """
        try:
            return dict(self.python().bind(*args, **kwargs).arguments)
        except TypeError as error:
            raise Refused(
                TypeError, f"{self.name}(): {error}; use {self.name}({self.shape()})"
            ) from None

    def shape(self) -> str:
        """The parameters as a caller sees them: ``path, pos="0:0"``."""
        return ", ".join(
            f"*{p.name}" if p.kind is Kind.REST else p.name + (f"={p.default}" if p.default else "")
            for p in self.parameters
        )


def snake_case(name: str) -> str:
    """The other spelling of a method's name: ``set_lod`` of ``SetLod``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


# Not Literals: a variable of an earlier statement is known to the checker as ``str``, and would be
# refused.
_FREQ = "str | tuple[Any, ...]"
_MODE = "str | None"
_LOD = Parameter("lod", "int | None", "None")
_TOKENS = Parameter("tokens", "int | None", "None")
_NODE = "ViewHandle | GroupHandle | NoteHandle"

FUNCTIONS: tuple[Signature, ...] = (
    Signature(
        "view",
        (
            Parameter("path", "str | PathLike[str] | IO[Any]"),
            Parameter("pos", "str | int", '"0:0"'),
            Parameter("tokens", "int", "2000"),
            Parameter("lod", "int", "0"),
            Parameter("mode", _MODE, "None"),
            Parameter("freq", f"{_FREQ} | None", "None"),
        ),
        "ViewHandle",
        "a live view of a source",
    ),
    Signature(
        "group",
        (
            Parameter("members", _NODE, kind=Kind.REST),
            Parameter("tokens", "int", "500", Kind.KEYWORD),
            Parameter("lod", "int", "2", Kind.KEYWORD),
            Parameter("mode", _MODE, "None", Kind.KEYWORD),
            Parameter("freq", f"{_FREQ} | None", "None", Kind.KEYWORD),
        ),
        "GroupHandle",
        "a summary of its members, kept current",
    ),
    Signature("ls", (), "list[str]", "a list, one line for each handle"),
    Signature(
        "show",
        (Parameter("obj", _NODE), _LOD, _TOKENS),
        "None",
        "prints the handle's text into this turn's result",
    ),
    Signature(
        "pin",
        (Parameter("obj", _NODE), Parameter("reason", "str | None", '"pinned"')),
        "None",
        "always shown, whatever else is dropped; reason=None unpins",
    ),
    Signature(
        "tick", (), "None", "what runs is updated before the next turn, whether it is due or not"
    ),
    Signature(
        "wait", (Parameter("seconds", "float"),), "None", "sleeps when the statement has ended"
    ),
    Signature(
        "wait_for",
        (
            Parameter("nodes", _NODE, kind=Kind.REST),
            Parameter("timeout", "float | None", "None", Kind.KEYWORD),
        ),
        "None",
        "sleeps until one of the nodes, which must run, changes; of all that run if none is named;"
        " timeout in seconds",
    ),
    Signature(
        "note",
        (Parameter("text", "str"), Parameter("tokens", "int", "500")),
        "NoteHandle",
        "a text of your own, pinned: always shown, in every turn, whatever is condensed",
    ),
)

CONDENSE = Signature(
    "condense", (), "None", "older turns are forgotten behind a summary before the next turn"
)
FINISH = Signature(
    "finish", (Parameter("result", "Any", "None"),), "None", "ends the job with this result"
)

FINISH_WITH_PATCH = Signature(
    "finish",
    (*FINISH.parameters, Parameter("patch", "bool", "False")),
    "None",
    f"{FINISH.doc}; patch=True hands over what it changed in its files, as a patch",
)
"""That of a job that may change its workspace."""

_PATH = Parameter("path", "str | PathLike[str]")

SPAWN = Signature(
    "spawn",
    (
        Parameter("goal", "str"),
        Parameter("result", "dict[str, Any] | None", "None", Kind.KEYWORD),
        Parameter("turns", "int | None", "None", Kind.KEYWORD),
        Parameter("tokens", "int | None", "None", Kind.KEYWORD),
        Parameter("usd", "float | None", "None", Kind.KEYWORD),
    ),
    "ViewHandle",
    "starts a sub-job, and gives a view of it",
)
"""What a job has that may start others (docs/batches.md)."""

HANDS: tuple[Signature, ...] = (
    Signature(
        "write",
        (_PATH, Parameter("text", "str | bytes")),
        "None",
        "a file's whole content; directories above it are made",
    ),
    Signature(
        "edit",
        (
            _PATH,
            Parameter("old", "str"),
            Parameter("new", "str"),
            Parameter("count", "int", "1"),
        ),
        "None",
        "replaces old, which must be there exactly count times",
    ),
    Signature("delete", (_PATH,), "None", "a file, or a directory with all in it"),
    Signature(
        "move", (_PATH, Parameter("to", "str | PathLike[str]")), "None", "a file or a directory"
    ),
    Signature(
        "sh",
        (
            Parameter("command", "str"),
            Parameter("timeout", "float", "60"),
            Parameter("stdin", "str", '""'),
            Parameter("env", "dict[str, str] | None", "None"),
        ),
        "CommandResult",
        "runs a shell command",
    ),
)
"""What a job has that may change its workspace (docs/workspaces.md)."""

COMMAND_RESULT: Mapping[str, str] = {
    "exit_code": "int",
    "stdout": "str",
    "stderr": "str",
    "seconds": "float",
    "note": "str",
    "output": "str",
}
"""The attributes of what ``sh`` gives."""

_POLICY: tuple[Signature, ...] = (
    Signature("SetLod", (Parameter("lod", "int"),), "Self", "sets the level of detail"),
    Signature(
        "SetTokens", (Parameter("tokens", "int"),), "Self", "sets the budget; All for no bound"
    ),
)
_LOOKS: tuple[Signature, ...] = (
    Signature("Render", (_LOD, _TOKENS), "str", "the text as a str"),
    Signature(
        "GetDigest",
        (),
        "dict[str, Any]",
        "mode, lod, tokens, lines, fingerprint and so on, as a dict",
    ),
)
_COMMON: tuple[Signature, ...] = (
    Signature(
        "Run",
        (Parameter("freq", _FREQ, '"Sync"'), Parameter("min_turn_interval", "int", "1")),
        "Self",
        'follow the source: "Sync" each turn, or every min_turn_interval turns; ("Periodic", 60)'
        ' when so many seconds are over; "Async" read in the background',
    ),
    Signature("Pause", (), "Self", "stop following; keeps the last known state"),
    Signature("Refresh", (), "Self", "update at once"),
    *_LOOKS,
)

VIEW_METHODS: tuple[Signature, ...] = (
    *_POLICY,
    Signature("SetPos", (Parameter("pos", "str | int"),), "Self", "moves the view"),
    Signature(
        "Scroll",
        (Parameter("delta_lines", "int", "0"), Parameter("delta_tokens", "int", "0")),
        "Self",
        "moves by lines, or by about so many tokens; negative goes back",
    ),
    *_COMMON,
)
GROUP_METHODS: tuple[Signature, ...] = (
    *_POLICY,
    Signature("Add", (Parameter("members", _NODE, kind=Kind.REST),), "Self", "adds members"),
    Signature("Remove", (Parameter("members", _NODE, kind=Kind.REST),), "Self", "removes members"),
    *_COMMON,
)
NOTE_METHODS: tuple[Signature, ...] = (
    Signature("SetText", (Parameter("text", "str"),), "Self", "replaces the text"),
    Signature("Append", (Parameter("text", "str"),), "Self", "adds lines"),
    Signature(
        "SetTokens",
        (Parameter("tokens", "int"),),
        "Self",
        "sets the budget; a text beyond it is refused",
    ),
    *_LOOKS,
)

NODE_ATTRIBUTES: Mapping[str, str] = {
    "obj_id": "str",
    "obj_type": "str",
    "mode": "str",
    "freq": "str | tuple[str, float] | None",
    "tokens": "int",
    "lod": "int",
    "dirty": "bool",
    "pinned": "str | None",
    "min_turn_interval": "int",
    "last_tick_turn": "int",
    "text": "str",
}
VIEW_ATTRIBUTES: Mapping[str, str] = {
    **NODE_ATTRIBUTES,
    "path": "str",
    "pos": "str",
    "first_line": "int",
    "last_line": "int",
    "total_lines": "int",
    "truncated": "bool",
    "fault": "str | None",
}
GROUP_ATTRIBUTES: Mapping[str, str] = {**NODE_ATTRIBUTES, "members": f"list[{_NODE}]"}


@dataclass(frozen=True)
class Handle:
    """A kind of node as the model knows it: its handle's class, the attributes with their types,
    the methods.
    """

    name: str
    attributes: Mapping[str, str]
    methods: tuple[Signature, ...]


HANDLES: Mapping[str, Handle] = {
    "view": Handle("ViewHandle", VIEW_ATTRIBUTES, VIEW_METHODS),
    "group": Handle("GroupHandle", GROUP_ATTRIBUTES, GROUP_METHODS),
    "note": Handle("NoteHandle", NODE_ATTRIBUTES, NOTE_METHODS),
}


NAMES: frozenset[str] = frozenset(s.name for s in (*FUNCTIONS, CONDENSE, FINISH)) | {"All"}
"""What statements can call or name without importing it, beside Python's builtins and the job's
tools.
"""

HAND_NAMES: frozenset[str] = frozenset(s.name for s in HANDS)
"""What only statements of such jobs can call."""


def names(*, hands: bool, spawn: bool = False) -> frozenset[str]:
    """The names of the contract that a statement cannot bind."""
    known = NAMES | HAND_NAMES if hands else NAMES
    return known | {SPAWN.name} if spawn else known


def functions(*, hands: bool) -> tuple[Signature, ...]:
    """``FUNCTIONS``; in a job with hands what a command gave can be viewed too."""
    if not hands:
        return FUNCTIONS
    view, *others = FUNCTIONS
    path, *options = view.parameters
    path = replace(path, annotation=f"{path.annotation} | CommandResult")
    return (replace(view, parameters=(path, *options)), *others)


def finish(*, hands: bool) -> Signature:
    """How a job ends itself."""
    return FINISH_WITH_PATCH if hands else FINISH


def by_spelling(signatures: tuple[Signature, ...]) -> dict[str, Signature]:
    """The signatures by both spellings of their names."""
    table = {s.name: s for s in signatures}
    return {snake_case(s.name): s for s in signatures} | table
