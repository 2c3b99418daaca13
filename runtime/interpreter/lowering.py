"""A statement as the interpreter can run it: what Monty has not is put in terms of what it has and
of supplied pieces.

The statement's own text is what is recorded, checked and shown; the lowered one is only fed. Edits
are made in the text, in place, so columns change where a line was edited and line numbers do not,
but for what needs lines of its own: ``lines`` then tells of each line of the lowered text which
line of the statement it came from.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from runtime.base.effect_classes import OUTCOME_UNKNOWN
from runtime.base.syntax import tree_of
from runtime.interpreter import expressions, shape, stand_ins, supplied
from runtime.interpreter.dialect import Dialect
from runtime.interpreter.lowered.classes import Classes
from runtime.interpreter.lowered.imports import Imports
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


class _Lowering(Imports, Classes):
    """All that is lowered: imports and classes, with what stands in them, and the rest here."""

    def __init__(self, source: str, dialect: Dialect, surroundings: Surroundings) -> None:
        super().__init__(source, dialect, surroundings)
        self.keyword_calls = [stand_ins.KEYWORD_CALLS]
        self.keyword_calls += [stand_ins.WRITING_CALLS] * self.writes
        self.keyword_calls += [stand_ins.NATURAL_CALLS] * self.natural
        self._eaten: set[int] = set()
        self._bare: set[int] = set()
        self.values: dict[str, None] = {}
        self._called_names: set[int] = set()
        self._compared: set[int] = set()

    def define(self) -> None:
        """The job's functions that are values: the interpreter knows them in calls alone."""
        text = "".join(
            f"def {CALLING}{name}(*a, **k): return {name}(*a, **k)\n" for name in self.values
        )
        if text:
            self.text.edit_before(0, text)

    def result(self) -> Lowered:
        text, lines = self.text.result()
        return Lowered(text, supplied.closure(self.pieces), lines)

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
                closing = self._subscript(target)
                self.edit(self.text.end(target) - 1, self.text.end(target), closing)
            at = self.text.end(target)

    def _in_parentheses(self, node: ast.Delete) -> bool:
        at = self.text.start(node)
        for target in node.targets:
            if "(" in self.source[at : self.text.start(target)]:
                return True
            at = self.text.end(target)
        return False

    def _subscript(self, target: ast.Subscript) -> str:
        """Make an argument of an item's key; what closes it, and the call."""
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
            return ")"
        # A tuple has no parentheses there, and in a call its items would be arguments.
        whole = isinstance(key, ast.Tuple) and self.dialect >= Dialect.ON_ONE_LINE
        self.edit(self.text.end(target.value), self.text.start(key), ", (" if whole else ", ")
        self.visit(key)
        return "))" if whole else ")"

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

    def visit_Compare(self, node: ast.Compare) -> None:
        """``type(e) is ValueError``: of a caught exception, whose class is another object there."""
        if self.within.caught and self.faithful:
            sides = (node.left, *node.comparators)
            if any(shape.names_of(side) & stand_ins.EXCEPTIONS for side in sides):
                self._compared.update(id(side) for side in sides if shape.is_of_one(side, "type"))
        self.generic_visit(node)

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
            if self.dialect >= Dialect.ASKING:
                wanted = stand_ins.ASKING_CALLS.get(function.id, wanted)
                if self.within.truths:
                    wanted = stand_ins.TRUTH_CALLS.get(function.id, wanted)
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
