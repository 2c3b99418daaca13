"""Classes of the library's kinds (enumerations, named tuples, typed dictionaries) and methods that
the interpreter does not call, or binds otherwise.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from runtime.interpreter import shape, stand_ins
from runtime.interpreter.dialect import Dialect
from runtime.interpreter.lowered.conditions import Conditions
from runtime.interpreter.lowered.functions import Functions

_ENUM = "holdfast_enum"
_COMMENT = re.compile("#.*")


class Classes(Functions, Conditions):
    """Classes: some are wrapped in what makes them of a library's kind, some are refused."""

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Classes of the library's kinds become what the interpreter has."""
        bases = [
            base.attr if isinstance(base, ast.Attribute) else shape.named(base)
            for base in node.bases
        ]
        kinds = [base for base in bases if base not in stand_ins.NO_BASES]
        wrapper = self._wrapper(node, kinds)
        if node.bases and not node.keywords and (not kinds or wrapper):
            header = self._colon(self.text.end(node.bases[-1]))
            word = len("class") if self.dialect >= Dialect.LAID_OUT else 0
            opening = self.source.index(node.name, self.text.start(node) + word) + len(node.name)
            self.edit(opening, header, "")
            if wrapper:
                at = self.text.start(node)
                # Before all edits that begin at this place, of which the first made comes first.
                self.text.edit_before(at, f"@{wrapper}\n{self.text.indent(node)}")
        else:
            self._all(node.bases)
        if self.faithful:
            self._own_methods(node)
        self._all(node.decorator_list)
        after = [line for item in node.body if (line := self._member(item, node.name))]
        shown = _shown(node) if wrapper is not None and wrapper.startswith(_ENUM) else []
        inner = self.text.indent(node.body[0])
        if shown and node.body[0].lineno == node.lineno and self.dialect >= Dialect.LAID_OUT:
            # No line can follow in a body on the line of its class.
            inner += " "
            self.edit(self.text.start(node.body[0]), self.text.start(node.body[0]), f"\n{inner}")
        self._functions.append(False)
        self._all(node.body)
        self._functions.pop()
        at = self.text.end(node.body[-1])
        self.edit(at, at, "".join(f"\n{inner}{line}" for line in shown))
        self.edit(at, at, "".join(f"\n{self.text.indent(node)}{line}" for line in after))

    def _colon(self, at: int) -> int:
        """Where the first colon behind ``at`` is, but for those of comments."""
        if self.dialect < Dialect.ON_ONE_LINE:
            return self.source.index(":", at)
        # No text stands there, so what # begins is a comment.
        told = _COMMENT.sub(lambda comment: " " * len(comment[0]), self.source[at:])
        return at + told.index(":")

    def _own_methods(self, node: ast.ClassDef) -> None:
        """Remember that a class has a truth, and refuse one that needs calls that nobody makes."""
        methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        if methods & stand_ins.TRUTHS:
            self.need("_truth", "_len")
        ignored = sorted(methods & stand_ins.NEVER_CALLED)
        if self.alike:
            ignored += [item.name for item in node.body if shape.tells_unequal(item)]
            # A name of the class's is none in a function of an expression's own.
            parts = [item for item in node.body if not isinstance(item, ast.FunctionDef)]
            self._only_tested.update(id(one) for item in parts for one in ast.walk(item))
        if ignored:
            told = f"{node.name}.{ignored[0]} would not be called: {stand_ins.NOT_CALLED}"
            first = node.decorator_list[0] if node.decorator_list else None
            # From the @ on.
            at = self.text.start(node) if first is None else self.text.start(first) - 1
            # Before a decorator, too, that makes the class one of the library's kinds.
            raised = f"raise NotImplementedError({told!r})\n{self.text.indent(node)}"
            self.text.edit_before(at, raised)

    def _wrapper(self, node: ast.ClassDef, kinds: Sequence[str]) -> str | None:
        """The decorator that makes a class of one of the library's kinds, if it is of one."""
        if len(set(kinds) & stand_ins.ENUMS) == 1 and all(
            kind in stand_ins.ENUMS or kind in ("str", "int") for kind in kinds
        ):
            kind = next(kind for kind in kinds if kind in stand_ins.ENUMS)
            names = [
                target.id
                for item in node.body
                if isinstance(item, ast.Assign)
                for target in item.targets
                if isinstance(target, ast.Name)
            ]
            makers = [item.name for item in node.body if shape.of_the_class(item)]
            self.need("_enum", "enum")
            return f"{_ENUM}({kind!r}, {names!r}, holdfast_mod_enum.holdfast_auto, {makers!r})"
        fields = [
            item.target.id
            for item in node.body
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
        ]
        plain = not any(isinstance(item, ast.FunctionDef) for item in node.body)
        if list(kinds) == ["NamedTuple"] and plain:
            self.need("_namedtuple")
            return f"holdfast_named_tuple({fields!r})"
        if list(kinds) == ["TypedDict"]:
            self.need("_namedtuple")
            return "holdfast_typed_dict"
        return None

    def _member(self, item: ast.stmt, owner: str) -> str | None:
        """A static or class method loses its decorator, and is made one by a line after the
        class.
        """
        if not isinstance(item, ast.FunctionDef) or len(item.decorator_list) != 1:
            return None
        decorator = item.decorator_list[0]
        if not isinstance(decorator, ast.Name) or decorator.id not in (
            "staticmethod",
            "classmethod",
            "abstractmethod",
        ):
            return None
        # From the @ on.
        start = self.text.start(decorator) - 1
        self.edit(start, self.text.line_start(item.lineno) + item.col_offset, "")
        # Its text is gone, so nothing of it may be edited when the method is visited.
        item.decorator_list = []
        if decorator.id == "abstractmethod":
            return None
        self.need("_static")
        made = f"{owner}.{item.name}"
        if decorator.id == "staticmethod":
            return f"{made} = holdfast_static({made})"
        return f"{made} = holdfast_classmethod({made}, {owner})"


def _shown(node: ast.ClassDef) -> list[str]:
    """Methods by which members of an enumeration are shown and compared, where the class has none
    of its own.
    """
    own = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
    wanted = {"__repr__": "self", "__str__": "self", "__eq__": "self, other", "__hash__": "self"}
    return [
        f"def {name}({parameters}): return holdfast_enum{name.rstrip('_')}({parameters})"
        for name, parameters in wanted.items()
        if name not in own
    ]
