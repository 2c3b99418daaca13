"""A job's tools: typed Python functions that a statement calls and an activity runs.

A tool is named ``module:function``. The module is looked for in the jobs file's directory first, and imported there as
a submodule of a private package of that directory: the ``mytools`` of two batches are two modules, and neither is
``sys.modules["mytools"]``. What is not there is imported as usual.
"""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import importlib
import inspect
import keyword
import sys
import threading
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import validate_call
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from runtime.context import api
from runtime.context.contract import MODULES
from runtime.errors import InputError
from runtime.spec.models import ToolSpec
from runtime.tool_stubs import result_text, stub_line

MAX_DOC = 500
MAX_STUB = 4_000
CONTRACT_NAMES = (
    api.NAMES
    | {handle.name for handle in api.HANDLES.values()}
    | {"Any", "IO", "Literal", "Optional", "Path", "PathLike", "Self", "Union"}
    | set(MODULES)
)
"""Names that a statement already knows, beside Python's builtins; a tool cannot take one of them."""

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


def describe_tool(target: str, search_path: str) -> ToolSpec:
    """What the tool ``target`` looks like to a statement.

    Raises:
        InputError: it cannot be imported, is no typed function, or has a name that is taken.
    """
    return open_tool(target, search_path).spec


def load_tool(target: str, search_path: str) -> Callable[..., Any]:
    """The function ``module:function``, its module looked for in the directory ``search_path`` first.

    Raises:
        InputError: there is no such module or function, or importing it fails.
    """
    module_name, _, name = target.partition(":")
    if not name.isidentifier() or not all(part.isidentifier() for part in module_name.split(".")):
        raise InputError(f"expected a tool as 'module:function', got {target!r}")
    module = _import(module_name, search_path)
    function: Callable[..., Any] | None = getattr(module, name, None)
    if function is None:
        raise InputError(f"the module {module_name!r} has no function {name!r}")
    check_function(function, target)
    return function


def check_function(function: object, target: str) -> None:
    """Check what can be told of a function before its annotations can be read.

    Raises:
        InputError: it is no function that gives its result, or has no name that a statement could call it by.
    """
    if not inspect.isfunction(function):
        raise InputError(f"expected {target!r} to be a function, got {type(function).__name__}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InputError(f"expected {target!r} to return its result, but it is a generator")
    check_name(target.partition(":")[2])


def check_name(name: str) -> None:
    """Check that a statement can call a tool by ``name``.

    Raises:
        InputError: if not.
    """
    if keyword.iskeyword(name) or name.startswith("_"):
        raise InputError(f"a tool cannot be called {name!r}")
    if name in CONTRACT_NAMES or hasattr(builtins, name):
        raise InputError(f"a tool cannot be called {name!r}: statements know that name as something else")


def open_tool(target: str, search_path: str) -> Tool:
    """The tool ``target``, ready to be called.

    Raises:
        InputError: as ``describe_tool`` does.
    """
    function = load_tool(target, search_path)
    name = target.partition(":")[2]
    signature = typed_signature(function, target)
    stub = stub_line(name, signature)
    if len(stub) > MAX_STUB:
        raise InputError(f"expected the signature of {target!r} to fit in {MAX_STUB} characters, got {len(stub)}")
    spec = ToolSpec(
        name=name,
        target=target,
        search_path=search_path,
        stub=stub,
        doc=_first_paragraph(function),
        is_async=inspect.iscoroutinefunction(function),
    )
    return Tool(spec, function, _binder(signature, target), result_text(signature.return_annotation))


def typed_signature(function: Callable[..., Any], target: str) -> inspect.Signature:
    """The signature of ``function`` with its annotations evaluated.

    Raises:
        InputError: a parameter has no annotation, or an annotation cannot be evaluated.
    """
    signature = inspect.signature(function)
    try:
        hints = typing.get_type_hints(inspect.unwrap(function), include_extras=True)
    except Exception as error:
        raise InputError(f"the annotations of {target!r} cannot be read: {_told(error)}") from error
    parameters = []
    for parameter in signature.parameters.values():
        if parameter.name not in hints:
            raise InputError(f"tools are typed, but the parameter {parameter.name!r} of {target!r} has no annotation")
        parameters.append(parameter.replace(annotation=hints[parameter.name]))
    return signature.replace(parameters=parameters, return_annotation=hints.get("return", Any))


def _binder(signature: inspect.Signature, target: str) -> Callable[..., Arguments]:
    """A function of the tool's signature that gives its coerced arguments, so that the tool's own errors stay apart."""

    def bind(*args: Any, **kwargs: Any) -> Arguments:
        return Arguments(args, kwargs)

    bind.__name__ = bind.__qualname__ = target.partition(":")[2]
    bind.__signature__ = signature.replace(return_annotation=Arguments)  # type: ignore[attr-defined]
    bind.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
    try:
        return validate_call(bind)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise InputError(
            f"a parameter of {target!r} has a type that a call cannot be checked against: {_told(error)}"
        ) from error


def _first_paragraph(function: Callable[..., Any]) -> str:
    """The first paragraph of the docstring on one line, at most ``MAX_DOC`` printable characters."""
    paragraph = (inspect.getdoc(function) or "").strip().split("\n\n")[0]
    return "".join(c for c in " ".join(paragraph.split()) if c.isprintable())[:MAX_DOC]


def _import(name: str, search_path: str) -> types.ModuleType:
    """The module ``name``, from ``search_path`` if it is there."""
    local = _is_local(name, Path(search_path))
    full = f"{_private_package(search_path)}.{name}" if local else name
    with _IMPORTING:
        try:
            importlib.invalidate_caches()
            with contextlib.redirect_stdout(sys.stderr), _siblings(search_path):
                return importlib.import_module(full)
        except ModuleNotFoundError as error:
            if error.name is not None and (full == error.name or full.startswith(error.name + ".")):
                raise InputError(
                    f"no module {name!r}, neither in {search_path!r} nor on Python's import path"
                ) from error
            raise InputError(f"importing {name!r} failed: {_told(error)}") from error
        except (Exception, SystemExit) as error:
            raise InputError(f"importing {name!r} failed: {_told(error)}") from error


def _is_local(name: str, directory: Path) -> bool:
    """Whether ``directory`` holds the module or package that ``name`` begins with."""
    top, *rest = name.split(".")
    package = directory / top
    return (
        package.with_name(f"{top}.py").is_file()
        or (package / "__init__.py").is_file()
        or (bool(rest) and package.is_dir())
    )


def _private_package(search_path: str) -> str:
    """The name of the package, made on first use, whose submodules are the modules in ``search_path``.

    It has to be in ``sys.modules``: dataclasses and pydantic find a class's names by its module's name.
    """
    name = "_holdfast_tools_" + hashlib.sha256(search_path.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    if name not in sys.modules:
        package = types.ModuleType(name, f"The tools in {search_path}.")
        package.__path__ = [search_path]
        sys.modules[name] = package
    return name


@contextlib.contextmanager
def _siblings(search_path: str) -> Iterator[None]:
    """Let a tool's module import its neighbours by their plain names, and forget those names afterwards.

    The directory comes last on the path, so it hides nothing that is installed.
    """
    before = set(sys.modules)
    sys.path.append(search_path)
    try:
        yield
    finally:
        sys.path.reverse()
        sys.path.remove(search_path)
        sys.path.reverse()
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and _first_part(file, search_path) == name.partition(".")[0]:
                del sys.modules[name]


def _first_part(file: str, directory: str) -> str | None:
    """The module name that ``file`` has as a neighbour in ``directory``, without what follows the first dot."""
    try:
        return Path(file).relative_to(directory).parts[0].removesuffix(".py")
    except ValueError:
        return None


def _told(error: BaseException) -> str:
    """An exception's type and message on one line, at most 300 characters."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 300 else text[:300] + "..."
