"""Imports of modules that are supplied, and of the interpreter's own by other names."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from runtime.interpreter import stand_ins, supplied
from runtime.interpreter.lowered.edits import Edits
from runtime.interpreter.supplied import BUILT_IN


class Imports(Edits):
    """Supplied modules and names are assigned, where Python would import them."""

    def visit_Import(self, node: ast.Import) -> None:
        """``import a, b as c``: supplied modules are assigned."""
        if not any(_supplied(alias.name) or self._is_regex(alias) for alias in node.names):
            return
        parts: list[str] = []
        for alias in node.names:
            if self._is_regex(alias):
                parts.append(f"{alias.asname} = {self._regex()}")
            elif not _supplied(alias.name):
                parts.append("import " + _alias(alias))
            elif alias.asname:
                parts.append(f"{alias.asname} = {self._module(alias.name)}")
            else:
                top = alias.name.partition(".")[0]
                self.need(alias.name)
                parts.append(f"{top} = {self._module(top)}")
        self.edit(self.text.start(node), self.text.end(node), "; ".join(parts))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """``from a import b as c``: what is supplied is assigned, the rest is imported."""
        module = node.module or ""
        # Left as they are: the interpreter refuses them, and its words are told to the model.
        if node.level or any(alias.name == "*" for alias in node.names):
            return
        if self.natural and module == "pathlib":
            self._paths(node)
            return
        if self.alike and module == "re":
            # In parentheses: behind a semicolon ``match = ...`` is no assignment to Monty's parser.
            names = "".join(f"{alias.asname or alias.name}, " for alias in node.names)
            values = "".join(f"{self._regex(alias)}, " for alias in node.names)
            self.edit(self.text.start(node), self.text.end(node), f"({names}) = ({values})")
            return
        ours = [
            alias
            for alias in node.names
            if _supplied(f"{module}.{alias.name}") or _has(module, alias.name)
        ]
        if not ours and (module not in supplied.MODULES or supplied.natives(module)):
            return
        rest = [_alias(alias) for alias in node.names if alias not in ours]
        parts = [_rest(module, rest)] if rest else []
        if rest:
            self.need(supplied.BUILT_INS)
        for alias in ours:
            inner = f"{module}.{alias.name}"
            value = (
                self._module(inner) if _supplied(inner) else f"{self._module(module)}.{alias.name}"
            )
            parts.append(f"{alias.asname or alias.name} = {value}")
        self.edit(self.text.start(node), self.text.end(node), "; ".join(parts))

    def _paths(self, node: ast.ImportFrom) -> None:
        """``from pathlib import PurePath``, which is ``Path`` here."""
        paths = {alias.name for alias in node.names} & stand_ins.PATHS
        if paths:
            names = [
                f"Path as {alias.asname or alias.name}" if alias.name in paths else _alias(alias)
                for alias in node.names
            ]
            text = f"from pathlib import {', '.join(names)}"
            self.edit(self.text.start(node), self.text.end(node), text)

    def _is_regex(self, alias: ast.alias) -> bool:
        return self.alike and alias.name == "re" and alias.asname not in (None, "re")

    def _regex(self, alias: ast.alias | None = None) -> str:
        """``re``, or something of it, under a name by which its calls are not known."""
        self.need("_regex")
        return "holdfast_regex" if alias is None else f"holdfast_regex.{alias.name}"

    def _module(self, name: str) -> str:
        self.need(name)
        return supplied.variable(name)


def _alias(alias: ast.alias) -> str:
    return alias.name + (f" as {alias.asname}" if alias.asname else "")


def _rest(module: str, names: Sequence[str]) -> str:
    """The import of what is not supplied. Of a module that is supplied alone nothing else can be
    had, and the interpreter would say that there is no such module.
    """
    if module not in supplied.MODULES or supplied.natives(module):
        return f"from {module} import {', '.join(names)}"
    missing = f"cannot import name {names[0].partition(' ')[0]!r} from {module!r}"
    return f"raise {BUILT_IN}ImportError({missing!r})"


def _supplied(module: str) -> bool:
    return module in supplied.MODULES


def _has(module: str, name: str) -> bool:
    """Whether a supplied module gives the name, and not the interpreter's own."""
    if module not in supplied.MODULES:
        return False
    return name in supplied.names(module) and name not in supplied.natives(module)
