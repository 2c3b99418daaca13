"""Where Holdfast's own packages come from: beside this one, whatever else goes by their names.

``workflows``, ``activities`` and ``runtime`` are what many a Temporal project calls its own. Where
each of these names leads to ours anyway, they are imported by them. Where one leads elsewhere, ours
are ``holdfast.workflows`` and so on: modules below ``holdfast`` then find them whenever they say
``runtime``, and everybody else finds what they had before. Nothing is put on the path for that, and
nothing is taken from it.

``python -I rooms.py MODULE`` runs a module of ours, as the processes do that Holdfast starts for
itself.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
"""The directory that holds Holdfast's packages."""

ROOMS = ("workflows", "activities", "runtime")
"""The packages beside this one."""

_PACKAGE = "holdfast"
_OUTSIDE = frozenset({"holdfast.rooms", "holdfast.__main__"})
"""What is loaded before it is known where the rooms are."""


def are_private() -> bool:
    """Whether our packages have names below ``holdfast`` in this process."""
    return any(isinstance(finder, _Finder) for finder in sys.meta_path)


def claim(*, private: bool = False) -> None:
    """Settle, once for this process, by which names our packages are imported.

    ``private``: by names below ``holdfast`` in any case, for a process that others' code shares.
    """
    if are_private():
        return
    if private or not all(map(_is_ours, ROOMS)):
        sys.meta_path.insert(0, _Finder())


def _is_ours(name: str) -> bool:
    """Whether ``import name`` gives our package."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    return (
        spec is not None and spec.origin is not None and Path(spec.origin).resolve() == _init(name)
    )


def _init(name: str) -> Path:
    return ROOT / name / "__init__.py"


class _Finder:
    """Finds ``holdfast.runtime`` and its like, and loads all below ``holdfast`` so that it finds
    them by their short names.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See ``importlib.abc.MetaPathFinder``."""
        package, _, rest = fullname.partition(".")
        if package != _PACKAGE or not rest or fullname in _OUTSIDE:
            return None
        # They lie beside this package, where no search below it would look.
        if rest in ROOMS:
            place = _init(rest)
            return importlib.util.spec_from_file_location(
                fullname,
                place,
                loader=_Loader(fullname, str(place)),
                submodule_search_locations=[str(place.parent)],
            )
        spec = PathFinder.find_spec(fullname, path, target)
        if (
            spec is not None
            and spec.origin is not None
            and isinstance(spec.loader, SourceFileLoader)
        ):
            spec.loader = _Loader(fullname, spec.origin)
        return spec


class _Loader(SourceFileLoader):
    """Gives a module an ``import`` that knows the rooms."""

    def exec_module(self, module: ModuleType) -> None:
        """See ``importlib.abc.Loader``."""
        # Where a module looks up its builtins, ``__import__`` included.
        module.__dict__["__builtins__"] = _BUILTINS
        super().exec_module(module)


def _import(
    name: str,
    globals: Mapping[str, Any] | None = None,
    locals: Mapping[str, Any] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    """``__import__``, to which ``runtime`` is ``holdfast.runtime``."""
    if level or name.partition(".")[0] not in ROOMS:
        # Looked up each time: a workflow sandbox puts its own in that place.
        return builtins.__import__(name, globals, locals, fromlist or (), level)
    module = importlib.import_module(f"{_PACKAGE}.{name}")
    if fromlist:
        return builtins.__import__(module.__name__, globals, locals, fromlist, 0)
    # Without names to take from it, a statement binds the first part alone.
    return sys.modules[f"{_PACKAGE}.{name.partition('.')[0]}"]


# A copy: everybody else's ``import`` stays as it is.
_BUILTINS = {**vars(builtins), "__import__": _import}


def _run(module: str) -> None:
    """Be the process that runs ``main`` of a module of ours, and shares its path with whatever else
    there is.
    """
    # This file runs as ``__main__`` here: a second copy would put a second finder in place.
    sys.modules["holdfast.rooms"] = sys.modules[__name__]
    claim(private=True)
    # By its place, and not by its name, under which the path may have something else.
    place = Path(__file__).resolve().parent
    spec = importlib.util.spec_from_file_location(
        _PACKAGE, place / "__init__.py", submodule_search_locations=[str(place)]
    )
    assert spec is not None and spec.loader is not None
    package = sys.modules[_PACKAGE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    importlib.import_module(f"{_PACKAGE}.{module}").main()


if __name__ == "__main__":
    _run(sys.argv[1])
