"""Whether a tool is of a directory that its worker was allowed (``holdfast worker --allow DIR``).

It is asked twice: of the files before anything is imported, and of what Python has imported then,
which goes by more than one directory, and of which one module may have another's functions.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from types import ModuleType
from typing import Any

from runtime.base.errors import InputError

_KINDS: tuple[tuple[Any, list[str]], ...] = (
    (ExtensionFileLoader, EXTENSION_SUFFIXES),
    (SourceFileLoader, SOURCE_SUFFIXES),
    (SourcelessFileLoader, BYTECODE_SUFFIXES),
)


class NotAllowed(InputError):
    """What is named is not below a directory that this worker was allowed."""

    @classmethod
    def told(cls, what: str, directories: Sequence[Path]) -> NotAllowed:
        """The error of ``what``."""
        allowed = ", ".join(map(str, directories))
        return cls(f"{what} is not below a directory that this worker was allowed: {allowed}")


def is_below(path: Path, directories: Sequence[Path]) -> bool:
    """Whether ``path`` is in or below one of some resolved directories."""
    # Links first: one below an allowed directory may lead out of it.
    real = path.resolve()
    return any(real.is_relative_to(directory) for directory in directories)


def files_of(module: str, folder: str) -> list[Path]:
    """The files of a module in ``folder`` and of the packages that it is in; none if it is not
    there. Nothing is imported.
    """
    files, places = [], [folder]
    for name in module.split("."):
        # A finder of its own: those that Python keeps may not have heard of a new file.
        specs = (FileFinder(place, *_KINDS).find_spec(name) for place in places)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is None:
            return []
        files += [Path(spec.origin)] if spec.origin is not None else []
        places = list(spec.submodule_search_locations or ())
    return files


def check_module(target: str, module: ModuleType | None, directories: Sequence[Path]) -> None:
    """Check a module that was imported for the tool ``target``.

    Raises:
        NotAllowed: it is from elsewhere.
    """
    file = getattr(module, "__file__", None)
    if file is None or not is_below(Path(file), directories):
        raise NotAllowed.told(f"the module of tool {target} {file or '(no file)'}", directories)


def written_in(function: Callable[..., Any]) -> ModuleType | None:
    """The module of a function. What a decorator makes counts as of where it was put to use."""
    return sys.modules.get(inspect.unwrap(function).__module__ or "")
