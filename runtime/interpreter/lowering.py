"""A statement as the interpreter can run it: what Monty has not is put in terms of what it has and
of supplied pieces.

The statement's own text is what is recorded, checked and shown; the lowered one is only fed. Edits
are made in the text, in place, so columns change where a line was edited and line numbers do not,
but for what needs lines of its own: ``lines`` then tells of each line of the lowered text which
line of the statement it came from.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from runtime.base.effect_classes import OUTCOME_UNKNOWN
from runtime.base.syntax import tree_of
from runtime.interpreter import expressions, shape, stand_ins, supplied
from runtime.interpreter.dialect import Dialect
from runtime.interpreter.edited_text import EditedText
from runtime.interpreter.supplied import generators
from runtime.interpreter.surroundings import Surroundings

CALLING = f"{supplied.PREFIX}job_"
"""Before the name of a function of the job: a function of the session's own that calls it."""

_LOOPED = f"{supplied.PREFIX}looped_"
"""Before the name of a function of the job that is a loop's variable in a statement."""

_BUILT_IN = supplied.BUILT_IN
SERVER_CALL = "holdfast_server_call"
"""The host's function behind the methods of MCP servers: of a server's name, a method's, and the
arguments.
"""
_MOST_CHARS = 200_000
"""Longer statements are run as they are: the parser would take long."""

_ENUM = "holdfast_enum"
_OF_ITS_PLACE = (ast.Await, ast.NamedExpr, ast.Yield, ast.YieldFrom)
"""Expressions that mean something else in a function of their own."""


@dataclass(frozen=True)
class Lowered:
    """The text to feed, the pieces that it needs (in order), and of each of its lines the
    statement's line, from 1.
    """

    source: str
    pieces: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()


def lower(
    source: str,
    before: tuple[str, ...] = (),
    names: frozenset[str] = frozenset(),
    functions: frozenset[str] = frozenset(),
    dialect: Dialect = Dialect.LATEST,
) -> Lowered:
    """``source`` in terms of what the interpreter has, and of the pieces that the session had
    ``before``. ``names`` are those of the job's MCP servers, and ``OutcomeUnknown`` if it knows
    that; ``functions`` what it can call of the job.

    What the host's parser does not take is left as it is.
    """
    if dialect >= Dialect.LAID_OUT:
        # As Python reads them; the interpreter would leave them in texts.
        source = source.replace("\r\n", "\n").replace("\r", "\n")
    as_it_is = Lowered(source, lines=tuple(range(1, source.count("\n") + 2)))
    if len(source) > _MOST_CHARS:
        return as_it_is
    try:
        tree = tree_of(source)
        surroundings = Surroundings.of(
            source, tree, before=before, names=names, functions=functions, dialect=dialect
        )
        lowering = _Lowering(source, dialect, surroundings)
        lowering.visit(tree)
        lowering.define()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return as_it_is
    return lowering.result() if lowering.text.is_edited else as_it_is


class _Lowering(ast.NodeVisitor):
    """Edits a statement's text as it visits the nodes."""

    def __init__(self, source: str, dialect: Dialect, surroundings: Surroundings) -> None:
        self.source, self.text, self.dialect = source, EditedText(source), dialect
        self.within = surroundings
        self.edit = self.text.edit
        self.writes, self.natural = dialect >= Dialect.WRITES, dialect >= Dialect.NATURAL
        self.faithful, self.alike = dialect >= Dialect.FAITHFUL, dialect >= Dialect.ALIKE
        self.keyword_calls = [stand_ins.KEYWORD_CALLS]
        self.keyword_calls += [stand_ins.WRITING_CALLS] * self.writes
        self.keyword_calls += [stand_ins.NATURAL_CALLS] * self.natural
        self.pieces: dict[str, None] = {}
        self._functions: list[bool] = []
        self._eaten: set[int] = set()
        self._bare: set[int] = set()
        self.values: dict[str, None] = {}
        self._called_names: set[int] = set()
        self._compared: set[int] = set()
        self._only_tested: set[int] = set()
        self._around_nodes: dict[int, tuple[str, str]] = {}

    def define(self) -> None:
        """The job's functions that are values: the interpreter knows them in calls alone."""
        text = "".join(
            f"def {CALLING}{name}(*a, **k): return {name}(*a, **k)\n" for name in self.values
        )
        if text:
            self.text.edit_before(0, text)

    def visit(self, node: ast.AST) -> None:
        """With what was decided to stand around it."""
        around = self._around_nodes.pop(id(node), None) if self._around_nodes else None
        if around is None or not isinstance(node, ast.expr):
            super().visit(node)
            return
        self.edit(self.text.start(node), self.text.start(node), around[0])
        super().visit(node)
        self.edit(self.text.end(node), self.text.end(node), around[1])

    def result(self) -> Lowered:
        text, lines = self.text.result()
        return Lowered(text, supplied.closure(self.pieces), lines)

    def need(self, *pieces: str) -> None:
        self.pieces.update(dict.fromkeys(pieces))

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

    def visit_Delete(self, node: ast.Delete) -> None:
        """``del d[k]`` takes an item out, ``del x`` binds the name to what the namespace does not
        show.
        """
        # An attribute cannot be deleted: that is left to the interpreter to refuse.
        if not all(isinstance(target, ast.Name | ast.Subscript) for target in node.targets):
            return
        if self._in_parentheses(node):
            # Written anew without them.
            plain = lower(ast.unparse(node), dialect=self.dialect)
            self.need(*plain.pieces)
            self.edit(self.text.start(node), self.text.end(node), plain.source)
            return
        self.need("_del")
        at = self.text.start(node)
        for index, target in enumerate(node.targets):
            if isinstance(target, ast.Name):
                self.edit(
                    at, self.text.end(target), f"{'; ' * (index > 0)}{target.id} = holdfast_gone"
                )
            elif isinstance(target, ast.Subscript):
                self.edit(at, self.text.start(target.value), f"{'; ' * (index > 0)}holdfast_del(")
                self.visit(target.value)
                self._subscript(target)
                self.edit(self.text.end(target) - 1, self.text.end(target), ")")
            at = self.text.end(target)

    def _in_parentheses(self, node: ast.Delete) -> bool:
        at = self.text.start(node)
        for target in node.targets:
            if "(" in self.source[at : self.text.start(target)]:
                return True
            at = self.text.end(target)
        return False

    def _subscript(self, target: ast.Subscript) -> None:
        key = target.slice
        if isinstance(key, ast.Slice):
            parts = [
                ast.unparse(part) if part else "None" for part in (key.lower, key.upper, key.step)
            ]
            self.edit(
                self.text.end(target.value),
                self.text.end(target) - 1,
                f", {_BUILT_IN}slice({', '.join(parts)})",
            )
            return
        self.edit(self.text.end(target.value), self.text.start(key), ", ")
        self.visit(key)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """An f-string is written anew if something inside is lowered: the parser's positions inside
        are not to be relied on.
        """
        lowered = self._joined(node)
        if lowered is not None:
            self.edit(self.text.start(node), self.text.end(node), lowered)

    def _joined(self, node: ast.JoinedStr, *, always: bool = False) -> str | None:
        parts: list[str] = []
        changed = always
        for value in node.values:
            if not isinstance(value, ast.FormattedValue):
                parts.append(repr(ast.literal_eval(value)))
                continue
            text = ast.unparse(value.value)
            inner = self._lower(text)
            changed = changed or inner.source != text
            self.need(*inner.pieces)
            # The codes of !r, !a and !s.
            shown = {114: f"{_BUILT_IN}repr", 97: "ascii", 115: f"{_BUILT_IN}str"}.get(
                value.conversion
            )
            whole = f"{shown}({inner.source})" if shown else f"({inner.source})"
            spec = (
                self._joined(value.format_spec, always=True)
                if isinstance(value.format_spec, ast.JoinedStr)
                else "''"
            )
            parts.append(f"{_BUILT_IN}format({whole}, {spec})")
        if changed:
            self.need(supplied.BUILT_INS)
        return f"''.join([{', '.join(parts)}])" if changed else None

    def _lower(self, text: str) -> Lowered:
        """An expression of the statement, by itself."""
        if not self.natural:
            had = (*["_len"] * self.within.lengths, *["_enum"] * self.within.enums)
            return lower(text, had, self.within.servers, dialect=self.dialect)
        inner = _Lowering(text, self.dialect, self.within)
        inner.values = self.values
        inner.visit(tree_of(text))
        return inner.result() if inner.text.is_edited else Lowered(text)

    def visit_Name(self, node: ast.Name) -> None:
        """Builtins that the interpreter has not, and functions of the job that are no call."""
        if node.id in self.within.looped:
            self.edit(self.text.start(node), self.text.end(node), f"{_LOOPED}{node.id}")
        elif isinstance(node.ctx, ast.Load) and node.id in stand_ins.BUILTINS:
            piece, name = stand_ins.BUILTINS[node.id]
            self.need(piece)
            self.edit(self.text.start(node), self.text.end(node), name)
        elif isinstance(node.ctx, ast.Load) and node.id in stand_ins.ALIASES:
            self.need(supplied.BUILT_INS)
            name = stand_ins.ALIASES[node.id]
            self.edit(self.text.start(node), self.text.end(node), f"{_BUILT_IN}{name}")
        elif (
            isinstance(node.ctx, ast.Load)
            and node.id == OUTCOME_UNKNOWN
            and node.id in self.within.servers
        ):
            self.need("_unknown")
            self.edit(self.text.start(node), self.text.end(node), "holdfast_unknown")
        elif (
            isinstance(node.ctx, ast.Load)
            and node.id in self.within.functions
            and id(node) not in self._called_names
        ):
            self.values[node.id] = None
            self.edit(self.text.start(node), self.text.end(node), CALLING + node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Attributes that a piece answers, and methods that are no call."""
        if not isinstance(node.ctx, ast.Load):
            self.visit(node.value)
        elif isinstance(node.value, ast.Name) and node.value.id in self.within.servers:
            self._server(node, node.value.id)
        elif self.natural and self._naturally(node):
            pass
        elif node.attr in stand_ins.ATTRIBUTES:
            piece, name = stand_ins.ATTRIBUTES[node.attr]
            self.need(piece)
            self._around(node.value, f"{name}(", self.text.end(node), ")")
        elif node.attr in stand_ins.METHODS:
            self._method(node)
        else:
            self.visit(node.value)

    def _naturally(self, node: ast.Attribute) -> bool:
        """Lower an attribute that only runs by the patch ``NATURAL`` have; False for others."""
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        read = f", lambda o: o.{node.attr})"
        if node.attr == "__class__":
            self.need(supplied.BUILT_INS)
            self._around(node.value, f"{_BUILT_IN}type(", self.text.end(node), ")")
        elif node.attr == "__name__":
            self.need("_named")
            self._around(node.value, "holdfast_named(", self.text.end(node), ")")
        elif node.attr == "lastgroup":
            self.need("_lastgroup")
            self._around(node.value, "holdfast_lastgroup(", self.text.end(node), read)
        elif node.attr == "pattern" and self.within.expressions:
            self.need("_patterns")
            self._around(node.value, "holdfast_written(", self.text.end(node), ")")
        elif owner in self.within.caught and node.attr in stand_ins.OF_CAUGHT:
            self.need("_caught")
            head = f"holdfast_caught({owner}, {node.attr!r}"
            self.edit(self.text.start(node), self.text.end(node), head + read)
        elif owner == "re" and self.within.expressions and node.attr in expressions.NUMBERS:
            number = expressions.NUMBERS[node.attr]
            self.edit(self.text.start(node), self.text.end(node), number)
        else:
            return False
        return True

    def _server(self, node: ast.Attribute, server: str) -> None:
        """A method of an MCP server is a function of the host."""
        self.edit(
            self.text.start(node),
            self.text.end(node),
            f"(lambda *a, **k: {SERVER_CALL}({server!r}, {node.attr!r}, *a, **k))",
        )

    def _method(self, node: ast.Attribute) -> None:
        self.need("_method")
        call = f"lambda o, *a, **k: o.{node.attr}(*a, **k)"
        self._around(
            node.value, "holdfast_method(", self.text.end(node), f", {node.attr!r}, {call})"
        )

    def _around(self, inner: ast.expr, before: str, end: int, after: str) -> None:
        start, close = self.text.operand(inner, end, any_layout=self.dialect >= Dialect.LAID_OUT)
        self.edit(start, start, before)
        self.visit(inner)
        self.edit(close, end, after)

    def visit_Call(self, node: ast.Call) -> None:
        """Calls that a piece answers; a call of any other method needs nothing."""
        function = node.func
        keywords = {keyword.arg for keyword in node.keywords}
        if isinstance(function, ast.Name) and function.id in ("next", "iter"):
            first = node.args[0] if node.args else None
            if first is not None and self.text.start(first) == self.source.find(
                "(", self.text.end(function)
            ):
                self._bare.add(id(first))
        else:
            # A call takes all of an argument at once, so a list does as well as an iterator.
            self._eaten.update(id(argument) for argument in node.args)
        if self.natural:
            self._prepared(node)
        loads = self.within.files and shape.opens(node)
        listed = id(node) not in self._eaten and shape.called_name(node) in stand_ins.LISTED
        if loads:
            self.need("_opened")
            self.edit(self.text.start(node), self.text.start(node), "holdfast_opened(")
        if listed:
            self.need(supplied.BUILT_INS)
            self.edit(self.text.start(node), self.text.start(node), f"{_BUILT_IN}iter(")
        self._lowered_call(node, function, keywords)
        if loads or listed:
            self.edit(self.text.end(node), self.text.end(node), ")")

    def _prepared(self, node: ast.Call) -> None:
        """What stands around the arguments of a call."""
        function = node.func
        if isinstance(function, ast.Name):
            self._called_names.add(id(function))
        read = None
        if self.within.expressions:
            read = expressions.expression(node, faithful=self.faithful)
        if read is not None:
            pattern, flags = read
            self.need("_patterns")
            text = "" if flags is None else ", " + self._lower(ast.unparse(flags)).source
            self._around_nodes[id(pattern)] = ("holdfast_pattern(", text + ")")
            if self.faithful and flags is not None:
                self.need("_ascii")
                head = "holdfast_pattern(holdfast_ascii("
                self._around_nodes[id(pattern)] = (head, f"{text}){text})")
            if flags is not None:
                self._around_nodes[id(flags)] = ("holdfast_flags(", ")")
        if self._takes_data(function):
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                if not isinstance(argument, stand_ins.SIMPLE):
                    self.need("_plainly")
                    self._around_nodes[id(argument)] = ("holdfast_plain(", ")")

    def _takes_data(self, function: ast.expr) -> bool:
        """Whether it is ``finish``, a tool, or a method of a server."""
        if isinstance(function, ast.Attribute):
            return isinstance(function.value, ast.Name) and function.value.id in self.within.servers
        return (
            isinstance(function, ast.Name)
            and function.id in self.within.functions - stand_ins.OF_NODES
        )

    def visit_Await(self, node: ast.Await) -> None:
        """A call of the job is answered when it is made."""
        call = node.value
        function = call.func if isinstance(call, ast.Call) else None
        owner = function.value if isinstance(function, ast.Attribute) else function
        if (
            self.natural
            and isinstance(owner, ast.Name)
            and owner.id in self.within.functions | self.within.servers
        ):
            self.edit(self.text.start(node), self.text.start(call), "")
        self.visit(call)

    def visit_For(self, node: ast.For) -> None:
        """A loop takes a list as well as an iterator."""
        self._eaten.add(id(node.iter))
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """As a loop."""
        self._eaten.add(id(node.iter))
        self._tested(*node.ifs)
        self.generic_visit(node)

    def visit_If(self, node: ast.If | ast.IfExp | ast.While | ast.Assert) -> None:
        """What is tested may be an object of a class that says itself whether it is true."""
        self._tested(node.test)
        self.generic_visit(node)

    visit_IfExp = visit_While = visit_Assert = visit_If

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """As ``if``, behind ``not``."""
        if isinstance(node.op, ast.Not):
            self._tested(node.operand)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """``type(e) is ValueError``: of a caught exception, whose class is another object there."""
        if self.within.caught and self.faithful:
            sides = (node.left, *node.comparators)
            if any(shape.names_of(side) & stand_ins.EXCEPTIONS for side in sides):
                self._compared.update(id(side) for side in sides if shape.is_of_one(side, "type"))
        self.generic_visit(node)

    def visit_match_case(self, node: ast.match_case) -> None:
        """As ``if``, of a guard."""
        if node.guard is not None:
            self._tested(node.guard)
        self.generic_visit(node)

    def _tested(self, *tests: ast.expr) -> None:
        for test in tests if self.within.truths else ():
            if isinstance(test, ast.BoolOp):
                self._only_tested.add(id(test))
                self._tested(*test.values)
            elif isinstance(test, stand_ins.OBJECTS):
                self.need("_truth")
                self._around_nodes[id(test)] = ("holdfast_truth(", ")")

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """``stack or other``, whose value is the first if that is true."""
        pairs = list(pairwise(node.values))
        joints = [self.source[self.text.end(a) : self.text.start(b)] for a, b in pairs]
        if (
            not (self.within.truths and self.alike)
            or id(node) in self._only_tested
            or not any(
                isinstance(one, (*stand_ins.OBJECTS, ast.BoolOp)) for one in node.values[:-1]
            )
            # What would be another's in a function of its own, or hide the word.
            or any(
                isinstance(part, _OF_ITS_PLACE) for one in node.values[1:] for part in ast.walk(one)
            )
            or any("#" in joint for joint in joints)
        ):
            self.generic_visit(node)
            return
        self.need("_values")
        word = "or" if isinstance(node.op, ast.Or) else "and"
        self.edit(self.text.start(node), self.text.start(node), f"holdfast_{word}(")
        self.visit(node.values[0])
        for (before, after), joint in zip(pairs, joints, strict=True):
            at = self.text.end(before) + joint.index(word)
            self.edit(at, at + len(word), ", lambda:")
            self.visit(after)
        self.edit(self.text.end(node), self.text.end(node), ")")

    def visit_Starred(self, node: ast.Starred) -> None:
        """As a loop."""
        self._eaten.add(id(node.value))
        self.generic_visit(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        """The interpreter makes a list of it, which is no iterator."""
        eaten = id(node) in self._eaten
        # As the only argument it stands in the parentheses of the call, which stay where they are.
        inside = id(node) in self._bare
        start, end = self.text.start(node) + inside, self.text.end(node) - inside
        if not eaten:
            self.need(supplied.BUILT_INS)
            self.edit(start, start, f"{_BUILT_IN}iter(")
        self.visit(node.elt)
        self._all(node.generators)
        if not eaten:
            self.edit(end, end, ")")

    def _lowered_call(self, node: ast.Call, function: ast.expr, keywords: set[str | None]) -> None:
        if isinstance(function, ast.Attribute):
            self._method_call(node, function, keywords)
            return
        wanted = None
        if isinstance(function, ast.Name):
            wanted = stand_ins.FUNCTION_CALLS.get(function.id)
            if self.writes and function.id == "open":
                wanted = stand_ins.OPENS
            if self.natural:
                wanted = self._natural_call(node, function.id) or wanted
        if self.within.lengths and isinstance(function, ast.Name) and function.id == "len":
            wanted = ("_len", "holdfast_len", frozenset())
        if id(node) in self._compared:
            wanted = ("_types", "holdfast_type", frozenset())
        if self.within.truths and isinstance(function, ast.Name) and function.id == "bool":
            wanted = ("_truth", "holdfast_bool", frozenset())
        if self.within.enums and isinstance(function, ast.Name) and function.id == "isinstance":
            wanted = ("_enum", "holdfast_isinstance", frozenset())
        if isinstance(function, ast.Name) and wanted and (not wanted[2] or wanted[2] & keywords):
            self.need(wanted[0])
            self._called(node, f"{wanted[1]}({function.id}")
            return
        self.generic_visit(node)

    def _natural_call(self, node: ast.Call, name: str) -> tuple[str, str, frozenset[str]] | None:
        """What answers a builtin's call in runs by the patch ``NATURAL`` alone."""
        both = len(node.args) + len(node.keywords) == 2
        if name == "round" and both:
            return ("_round", "holdfast_round", frozenset())
        if name == "iter" and both:
            return ("_until", "holdfast_until", frozenset())
        return stand_ins.NATURAL_OPENS if name == "open" else None

    def _method_call(
        self, node: ast.Call, function: ast.Attribute, keywords: set[str | None]
    ) -> None:
        of_type = isinstance(function.value, ast.Name) and function.value.id in stand_ins.TYPES
        unbound = of_type and function.attr in stand_ins.METHODS
        if isinstance(function.value, ast.Name) and function.value.id in self.within.servers:
            self._called(node, f"{SERVER_CALL}({function.value.id!r}, {function.attr!r}")
            return
        answered = stand_ins.METHOD_CALLS.get(function.attr)
        for keyword in keywords:
            for calls in self.keyword_calls:
                if keyword is not None and (function.attr, keyword) in calls:
                    answered = (*calls[function.attr, keyword], "")
        if self.natural:
            answered = stand_ins.NATURAL_METHODS.get(function.attr, answered)
            if self.faithful:
                answered = stand_ins.FAITHFUL_METHODS.get(function.attr, answered)
            if self.within.regex:
                answered = stand_ins.REGEX_METHODS.get(function.attr, answered)
            if function.attr == "read_text" and node.args and not of_type:
                answered = ("_reads", "holdfast_reads_text", "")
        # An encoding may stand in its place; in ``Path.write_text(path, text)`` it is the text.
        if self.writes and function.attr == "write_text" and len(node.args) > 1 and not of_type:
            answered = ("_writes", "holdfast_write_text", "")
        if function.attr in stand_ins.OF_SEVERAL and not shape.is_one(node.args):
            answered = stand_ins.OF_SEVERAL[function.attr]
        if answered is not None:
            piece, name, then = answered
            self.need(piece)
            # From the object's start to the first argument: ``name(OBJECT, ``.
            self._around(function.value, f"{name}(", self.text.end(function), then)
            self._called(node, "")
        # As in ``str.lower(name)``, where the type stands in the object's place.
        elif unbound:
            self._method(function)
            self._arguments(node)
        else:
            self.visit(function.value)
            self._arguments(node)

    def _called(self, node: ast.Call, head: str) -> None:
        """Replace a call's function and its opening parenthesis by ``head`` and a comma, and visit
        its arguments.
        """
        end = self.text.end(node.func)
        start = self.text.start(node.func) if head else end
        opening = self.source.index("(", end)
        empty = not node.args and not node.keywords
        self.edit(start, opening + 1, head + ("" if empty else ", "))
        # A generator expression that is the only argument stands in the call's own parentheses.
        bare = (
            len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp) and not node.keywords
        )
        bare = bare and self.text.start(node.args[0]) == opening
        if bare:
            self.edit(opening + 1, opening + 1, "(")
        self._arguments(node)
        if bare:
            self.edit(self.text.end(node) - 1, self.text.end(node) - 1, ")")

    def _arguments(self, node: ast.Call) -> None:
        arguments: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
        # In the order of the text: a keyword may stand before ``*args``.
        for argument in sorted(arguments, key=lambda one: (one.lineno, one.col_offset)):
            self.visit(argument)

    def visit_Dict(self, node: ast.Dict) -> None:
        """Keys and values in the order of the text."""
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:
                self.visit(key)
            self.visit(value)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Targets first, as in the text."""
        self._all(node.targets)
        self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """``items += pairs.values()``: what is added to a list may be anything."""
        added = isinstance(node.op, ast.Add) and isinstance(node.value, stand_ins.ADDED)
        if added and self.dialect >= Dialect.LAID_OUT and shape.is_quiet(node.target):
            self.need("_added")
            target = self._lower(ast.unparse(node.target)).source
            self._around_nodes[id(node.value)] = (f"holdfast_added({target}, (", "))")
        self.generic_visit(node)

    def _all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """A generator function collects what it yields, and gives an iterator."""
        self._all(node.decorator_list)
        self.visit(node.args)
        collects = generators.can_collect(node)
        if collects:
            self.need(supplied.BUILT_INS)
        self._functions.append(collects)
        if collects:
            first = node.body[0]
            self._line_before(first, f"{generators.COLLECTED} = []")
        self._all(node.body)
        if collects:
            # A body on its ``def``'s own line goes on there.
            indent = self.text.indent(node.body[0]) if node.body[0].lineno != node.lineno else ""
            joint = f"\n{indent}" if indent else "; "
            at = self.text.end(node.body[-1])
            self.edit(at, at, f"{joint}return {_BUILT_IN}iter({generators.COLLECTED})")
        self._functions.pop()

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """A lambda's own ``yield`` is nobody's."""
        self._functions.append(False)
        self.generic_visit(node)
        self._functions.pop()

    def visit_Return(self, node: ast.Return) -> None:
        """The end of a generator."""
        if self._functions and self._functions[-1]:
            self.edit(
                self.text.start(node),
                self.text.end(node),
                f"return {_BUILT_IN}iter({generators.COLLECTED})",
            )
            return
        self.generic_visit(node)

    def visit_Yield(self, node: ast.Yield) -> None:
        """One more of what a generator gives."""
        self._yields(node, node.value, "append")

    def visit_YieldFrom(self, node: ast.YieldFrom) -> None:
        """All of another iterable."""
        self._yields(node, node.value, "extend")

    def _yields(self, node: ast.Yield | ast.YieldFrom, value: ast.expr | None, method: str) -> None:
        if not (self._functions and self._functions[-1]):
            return
        if value is None:
            self.edit(
                self.text.start(node), self.text.end(node), f"{generators.COLLECTED}.{method}(None)"
            )
            return
        # ``yield a, b`` is one tuple, which needs parentheses as an argument.
        self.edit(
            self.text.start(node), self.text.start(value), f"{generators.COLLECTED}.{method}(("
        )
        self.visit(value)
        self.edit(self.text.end(value), self.text.end(node), "))")

    def _line_before(self, node: ast.stmt, text: str) -> None:
        at = self.text.start(node)
        self.edit(
            at,
            at,
            f"{text}; " if self.text.indent(node) == "" else f"{text}\n{self.text.indent(node)}",
        )

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Classes of the library's kinds become what the interpreter has."""
        bases = [
            base.attr if isinstance(base, ast.Attribute) else shape.named(base)
            for base in node.bases
        ]
        kinds = [base for base in bases if base not in stand_ins.NO_BASES]
        wrapper = self._wrapper(node, kinds)
        if node.bases and not node.keywords and (not kinds or wrapper):
            header = self.source.index(":", self.text.end(node.bases[-1]))
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


def _alias(alias: ast.alias) -> str:
    return alias.name + (f" as {alias.asname}" if alias.asname else "")


def _rest(module: str, names: Sequence[str]) -> str:
    """The import of what is not supplied. Of a module that is supplied alone nothing else can be
    had, and the interpreter would say that there is no such module.
    """
    if module not in supplied.MODULES or supplied.natives(module):
        return f"from {module} import {', '.join(names)}"
    missing = f"cannot import name {names[0].partition(' ')[0]!r} from {module!r}"
    return f"raise {_BUILT_IN}ImportError({missing!r})"


def _supplied(module: str) -> bool:
    return module in supplied.MODULES


def _has(module: str, name: str) -> bool:
    """Whether a supplied module gives the name, and not the interpreter's own."""
    if module not in supplied.MODULES:
        return False
    return name in supplied.names(module) and name not in supplied.natives(module)
