"""What the sources of a job's statements tell of its classes and functions, where the sandbox does
not.

The sandbox neither lists an instance's attributes nor shows a function's code. So attributes are
looked for by the names that some statement assigns, and a function or a class stands for its
source.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from runtime.base.digests import digest_bytes
from runtime.base.syntax import tree_of
from runtime.base.values import Compact

MAX_SOURCE_CHARS: Final = 100_000
"""Characters of a statement that is read for definitions.

A longer one is taken to assign any attribute.
"""

_DEFINES: Final = re.compile(r"\b(?:class|def|lambda|setattr|exec|eval)\b|\.\w")
_FUNCTION: Final = re.compile(r"<function '(?P<name>[^']*)' at (?P<at>0x[0-9a-f]+)>")
_NOWHERE: Final = "0x0"
"""Where every function is that has defaults or captured variables."""

_LAMBDA: Final = "<lambda>"
_DYNAMIC: Final = frozenset({"setattr", "exec", "eval"})
_LINE: Final = re.compile(r".*?(?:\r\n|\n|\r|\Z)", re.DOTALL)
"""A line as the parser counts them, with its end."""


class Definitions(Compact):
    """Classes with the attributes that they give themselves, attributes that others give, and
    sources' digests by name.

    ``functions`` are those that variables held when the last statement ended, as the sandbox shows
    them. ``dynamic`` says that a statement may have assigned attributes whose names no source
    tells.
    """

    classes: dict[str, tuple[str, ...]] = {}
    loose: tuple[str, ...] = ()
    sources: dict[str, str] = {}
    functions: dict[str, str] = {}
    dynamic: bool = False

    def after(self, source: str) -> Definitions:
        """With what a statement defines. One that cannot be parsed defines nothing."""
        # Most statements define nothing, and need not be parsed for that.
        if _DEFINES.search(source) is None:
            return self
        if len(source) > MAX_SOURCE_CHARS:
            return self.model_copy(update={"dynamic": True})
        try:
            defined = _defined_in(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return self
        classes = {
            # With those of a class of that name from before: its instances may still be there.
            name: tuple(sorted({*self.classes.get(name, ()), *names}))
            for name, names in defined.classes.items()
        }
        named = {name: _digest(texts) for name, texts in defined.sources.items()}
        return Definitions(
            classes=self.classes | classes,
            loose=tuple(sorted({*self.loose, *defined.loose})),
            sources=self.sources | named,
            functions=self.functions,
            dynamic=self.dynamic or defined.dynamic,
        )

    def named(self, shown: Iterable[str], source: str) -> Definitions:
        """With the functions that variables hold now, shown as the sandbox does; ``source`` is the
        statement that ended.

        A function that was not there before is of this statement, if that defines one of its name.
        """
        new = Definitions().after(source).sources
        functions: dict[str, str] = {}
        for text in sorted(set(shown)):
            name, at = _parts(text)
            known = self.functions.get(text)
            # Where it is tells a function from a later one of its name. Those that are nowhere look
            # alike, so for them a definition in this statement counts.
            if known is not None and (at != _NOWHERE or name == _LAMBDA or name not in new):
                functions[text] = known
            else:
                functions[text] = new.get(name) or self.sources.get(name, name)
        return (
            self
            if functions == self.functions
            else self.model_copy(update={"functions": functions})
        )


NO_DEFINITIONS: Final = Definitions()
"""Those of a job that has run no statement."""


def is_opaque(shown: str) -> bool:
    """Whether a function, as the sandbox shows it, may have captured variables or defaults."""
    return _parts(shown)[1] == _NOWHERE


def _parts(shown: str) -> tuple[str, str]:
    match = _FUNCTION.fullmatch(shown)
    return (match["name"], match["at"]) if match is not None else (shown, _NOWHERE)


def _digest(texts: list[str]) -> str:
    return digest_bytes("\n".join(texts).encode("utf-8", "surrogatepass")).removeprefix("sha256:")[
        :16
    ]


class _Defined(ast.NodeVisitor):
    """What one statement's tree defines."""

    def __init__(self, source: str) -> None:
        # Once for all definitions, and in bytes, in which the parser counts columns.
        self._lines = [line.encode() for line in _LINE.findall(source)]
        self._class = ""
        self._self = ""
        self.classes: dict[str, set[str]] = {}
        self.loose: set[str] = set()
        self.sources: dict[str, list[str]] = {}
        self.dynamic = False

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._define(node.name, node)
        names = self.classes.setdefault(node.name, set())
        for part in node.body:
            names |= {target.id for target in _targets(part) if isinstance(target, ast.Name)}
        outer, self._class = self._class, node.name
        self.generic_visit(node)
        self._class = outer

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._define(node.name, node)
        outer = self._self
        # The first parameter is the instance, whatever a statement calls it.
        if self._class and node.args.args:
            self._self = node.args.args[0].arg
        self.generic_visit(node)
        self._self = outer

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._define(_LAMBDA, node)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Store):
            own = self._class and isinstance(node.value, ast.Name) and node.value.id == self._self
            (self.classes[self._class] if own else self.loose).add(node.attr)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        self.dynamic |= node.id in _DYNAMIC

    def visit_Call(self, node: ast.Call) -> None:
        match node:
            case ast.Call(
                func=ast.Name(id="setattr"), args=[target, ast.Constant(value=str(name)), value]
            ):
                # A name that is written out is no computed one, so ``setattr`` itself is not
                # visited.
                self.loose.add(name)
                self.visit(target)
                self.visit(value)
            case _:
                self.generic_visit(node)

    def _define(self, name: str, node: ast.stmt | ast.expr) -> None:
        self.sources.setdefault(name, []).append(self._text(node))

    def _text(self, node: ast.stmt | ast.expr) -> str:
        """As ``ast.get_source_segment``, which looks through the whole source each time."""
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        lines = self._lines[first : last + 1]
        # The end before the beginning: both may be in one line.
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return b"".join(lines).decode()


@lru_cache(maxsize=8)
def _defined_in(source: str) -> _Defined:
    """What a statement defines, which is asked twice. Raises what ``ast.parse`` does."""
    defined = _Defined(source)
    defined.visit(tree_of(source))
    return defined


def _targets(node: ast.stmt) -> Iterator[ast.expr]:
    if isinstance(node, ast.AnnAssign):
        yield node.target
    elif isinstance(node, ast.Assign):
        yield from node.targets
