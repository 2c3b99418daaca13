"""A job's tools: typed Python functions that a statement calls and an activity runs.

A tool is named ``module:function``. It is imported and called in a process of its own (``host``,
``child``), where the jobs file's directory is looked in first: the ``mytools`` of two batches are
two modules in two processes.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import keyword
import sys
import threading
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import validate_call
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from runtime.base.effect_classes import OUTCOME_UNKNOWN
from runtime.base.errors import InputError
from runtime.base.spec.models import ToolSpec
from runtime.context import api
from runtime.context.contract import MODULES
from runtime.tools.allowed import check_module, written_in
from runtime.tools.marks import Marks
from runtime.tools.stubs import result_text, stub_line

MAX_DOC = 500
MAX_STUB = 4_000
CONTRACT_NAMES = (
    api.NAMES
    | {handle.name for handle in api.HANDLES.values()}
    | {OUTCOME_UNKNOWN, "Any", "IO", "Literal", "Optional", "Path", "PathLike", "Self", "Union"}
    | set(MODULES)
)
"""Names that a statement already knows, beside Python's builtins; a tool cannot take one of
them.
"""

WORKSPACE = "workspace"
"""The parameter by which a tool that works on the job's files gets their directory."""

_IMPORTING = threading.RLock()


@dataclass(frozen=True)
class Arguments:
    """A call's arguments, coerced to the tool's annotations."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class Tool:
    """A loaded tool."""

    spec: ToolSpec
    function: Callable[..., Any]
    bind: Callable[..., Arguments]
    """Checks and coerces a call's arguments; raises pydantic's ``ValidationError``."""
    returns: str = "Any"
    """The type of its results as the stub has it."""


def load_tool(
    target: str, search_path: str = "", allowed: Sequence[Path] = ()
) -> Callable[..., Any]:
    """The function ``module:function``. ``search_path`` is where its module was looked for first;
    ``allowed`` are the resolved directories that it may come from, none for any.

    Raises:
        InputError: there is no such module or function, importing it fails, or it is from
            elsewhere (``NotAllowed``).
    """
    module_name, _, name = target.partition(":")
    if not name.isidentifier() or not all(part.isidentifier() for part in module_name.split(".")):
        raise InputError(f"expected a tool as 'module:function', got {target!r}")
    module = _import(module_name, search_path)
    if allowed:
        check_module(target, module, allowed)
    function: Callable[..., Any] | None = getattr(module, name, None)
    if function is None:
        raise InputError(f"the module {module_name!r} has no function {name!r}")
    check_function(function, target)
    if allowed:
        # Another module's function is no tool of this one's, by whatever name.
        check_module(target, written_in(function), allowed)
    return function


def check_function(function: object, target: str) -> None:
    """Check what can be told of a function before its annotations can be read.

    Raises:
        InputError: it is no function that gives its result, or has no name that a statement could
            call it by.
    """
    if not inspect.isfunction(function):
        raise InputError(f"expected {target!r} to be a function, got {type(function).__name__}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InputError(f"expected {target!r} to return its result, but it is a generator")
    check_name(target.partition(":")[2])


def check_name(name: str, what: str = "a tool") -> None:
    """Check that a statement can know a tool, or something else, by ``name``.

    Raises:
        InputError: if not.
    """
    if keyword.iskeyword(name) or name.startswith("_"):
        raise InputError(f"{what} cannot be called {name!r}")
    if name in CONTRACT_NAMES or hasattr(builtins, name):
        raise InputError(
            f"{what} cannot be called {name!r}: statements know that name as something else"
        )


def open_tool(target: str, search_path: str, allowed: Sequence[Path]) -> Tool:
    """The tool ``target``, ready to be called.

    ``search_path`` is where its module was looked for first, ``allowed`` as for ``load_tool``.

    Raises:
        InputError: it cannot be imported, is no typed function, has a name that is taken, or is
            from elsewhere (``NotAllowed``).
    """
    function = load_tool(target, search_path, allowed)
    name = target.partition(":")[2]
    signature = typed_signature(function, target)
    marks = Marks.of(function)
    if marks.workspace:
        check_workspace(signature, target)
    stub = stub_line(name, _asked_for(signature) if marks.workspace else signature)
    if len(stub) > MAX_STUB:
        raise InputError(
            f"expected the signature of {target!r} to fit in {MAX_STUB} characters, got {len(stub)}"
        )
    spec = ToolSpec(
        name=name,
        target=target,
        search_path=search_path,
        stub=stub,
        doc=_first_paragraph(function),
        is_async=inspect.iscoroutinefunction(function),
        effect=marks.effect,
        timeout=marks.timeout,
        retries=marks.retries,
        approval=marks.approval,
        workspace=marks.workspace,
        queue=marks.queue,
    )
    return Tool(
        spec, function, _binder(signature, target), result_text(signature.return_annotation)
    )


def check_workspace(signature: inspect.Signature, target: str) -> None:
    """Check that a tool takes the directory of the job's files.

    Raises:
        InputError: if it does not.
    """
    parameter = signature.parameters.get(WORKSPACE)
    if parameter is None or parameter.kind is not parameter.KEYWORD_ONLY:
        raise InputError(
            f"expected {target!r} to have a parameter '*, {WORKSPACE}: Path' by name alone, since"
            " it works on the job's files"
        )


def _asked_for(signature: inspect.Signature) -> inspect.Signature:
    """The signature without what a statement does not give."""
    parameters = [one for one in signature.parameters.values() if one.name != WORKSPACE]
    return signature.replace(parameters=parameters)


def typed_signature(function: Callable[..., Any], target: str) -> inspect.Signature:
    """The signature of ``function`` with its annotations evaluated.

    Raises:
        InputError: a parameter has no annotation, or an annotation cannot be evaluated.
    """
    try:
        signature = unread_signature(function)
        # A wrapped function's annotations are names of its own module, not of its decorator's.
        hints = typing.get_type_hints(inspect.unwrap(function), include_extras=True)
    except Exception as error:
        raise InputError(f"the annotations of {target!r} cannot be read: {told(error)}") from error
    parameters = []
    for parameter in signature.parameters.values():
        if parameter.name not in hints:
            raise InputError(
                f"tools are typed, but the parameter {parameter.name!r} of {target!r} has no"
                " annotation"
            )
        parameters.append(parameter.replace(annotation=hints[parameter.name]))
    return signature.replace(parameters=parameters, return_annotation=hints.get("return", Any))


def unread_signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of ``function``, of which no annotation need be known yet: from Python 3.14 on
    they are evaluated when they are asked for, and may name what the module defines later, or what
    it imports for type checkers alone.
    """
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)


def _binder(signature: inspect.Signature, target: str) -> Callable[..., Arguments]:
    """A function of the tool's signature that gives its coerced arguments, so that the tool's own
    errors stay apart.
    """

    def bind(*args: Any, **kwargs: Any) -> Arguments:
        return Arguments(args, kwargs)

    bind.__name__ = bind.__qualname__ = target.partition(":")[2]
    made = signature.replace(return_annotation=Arguments)
    bind.__signature__ = made  # type: ignore[attr-defined]
    bind.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
    try:
        return validate_call(bind)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise InputError(
            f"a parameter of {target!r} has a type that a call cannot be checked against:"
            f" {told(error)}"
        ) from error


def _first_paragraph(function: Callable[..., Any]) -> str:
    """The first paragraph of the docstring on one line, at most ``MAX_DOC`` printable
    characters.
    """
    paragraph = (inspect.getdoc(function) or "").strip().split("\n\n")[0]
    return "".join(c for c in " ".join(paragraph.split()) if c.isprintable())[:MAX_DOC]


def _import(name: str, search_path: str) -> types.ModuleType:
    with _IMPORTING:
        try:
            # The module may have been written since this process last looked into its directory.
            importlib.invalidate_caches()
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            # The module itself is missing, and not one that it imports.
            if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
                raise InputError(
                    f"no module {name!r}, neither in {search_path!r} nor on Python's import path"
                ) from error
            raise InputError(f"importing {name!r} failed: {told(error)}") from error
        except (Exception, SystemExit) as error:
            raise InputError(f"importing {name!r} failed: {told(error)}") from error


def told(error: BaseException) -> str:
    """An exception's type and message on one line, at most 300 characters."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 300 else text[:300] + "..."
