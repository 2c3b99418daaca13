"""The walk over all variables inside the sandbox, in the sandbox's own Python: every value once, as
one text.

It is one text because each value that crosses to the host costs microseconds, and because a
crossing value is copied as a
tree: one that holds itself twice, thirty times over, would never arrive. A node of the walk is a
container, a long text or number, an instance, or whatever else has an identity; each is one line,
and refers to others by ``@`` and their number.

The first part has a line ``NAME<tab>ITEM`` for each variable, then comes an empty line, then the
nodes:

========================================= ==========================================================
``=TEXT``                                 plain data, as its literal
``sTYPE<tab>TEXT``                        a set of plain values: the sorted list of their literals
``#DIGEST<tab>TYPE<tab>SIZE``             a line too long to be sent: SHA-256 of it
``bTYPE<tab>SIZE<tab>DIGEST``             a text or bytes too long to be sent: SHA-256 of it
``mTYPE<tab>ITEM...``                     a sequence
``rTYPE<tab>FIRST<tab>COUNT``             a sequence of that many nodes, one after the other
``dTYPE<tab>KEY<tab>ITEM...``             a dict
``qTYPE<tab>FIRST<tab>COUNT<tab>KEY...``  a dict of that many nodes, one after the other
``iTYPE<tab>NAME<tab>ITEM...``            an instance of a class that a statement defined, by its
                                          attributes
``cNAME<tab>NAME<tab>ITEM...``            such a class
``fTEXT``                                 a function, as the interpreter shows it
``hID``                                   a handle
``oTYPE<tab>TEXT``                        anything else whose text is all of it
``?TYPE``                                 what the interpreter does not show: an iterator, a
                                          generator
``~TYPE<tab>SIZE``                        left out, because the bounds were reached
========================================= ==========================================================

An item is the literal of a short plain value, or ``@`` and a node's number. Literals have neither
tabs nor line ends.
"""

from __future__ import annotations

LONG = 1_024
"""Characters from which a text is a node, so that a text with many holders is told once."""

UNITS = 8_000
"""How much a walk may do.

A unit is some 20 microseconds: a container of other containers, an instance, 32 plain values.
"""

CHARS = 4_000_000
"""Characters after which lines are told by their digests."""

LARGE = 256
"""Items from which a container waits until all that is smaller was walked, so that it alone is left
out.
"""

SENT = 65_536
"""Characters of a single text that is sent."""

_SHOWN = (
    "Pattern",
    "Match",
    "datetime",
    "date",
    "time",
    "timedelta",
    "timezone",
    "PosixPath",
    "PurePosixPath",
    "range",
    "slice",
    "complex",
    "module",
    "builtin_function_or_method",
    "_SpecialForm",
    "GenericAlias",
)
"""Types whose values the interpreter shows whole."""

WALK = f"""
import hashlib as holdfast_hashlib
from itertools import chain as holdfast_chain
def holdfast_walk(variables, classes, loose, units, type=type, repr=repr, str=str, bytes=bytes, list=list, tuple=tuple,
                  dict=dict, set=set, frozenset=frozenset, int=int, bool=bool, len=len, map=map, sum=sum, sorted=sorted,
                  hex=hex, id=id, isinstance=isinstance, getattr=getattr, zip=zip, range=range, error=Exception,
                  exceptions=BaseException, big=1 << 64, missing=[], handles=("ViewHandle", "GroupHandle", "NoteHandle"),
                  leaf=frozenset((int, float, bool, complex, type(None), str, bytes, type(...))), shown={_SHOWN!r},
                  sha256=holdfast_hashlib.sha256, chain=holdfast_chain.from_iterable):
    lines, todo, later, seen, runs = [], [], [], {{}}, {{}}
    chars = {CHARS}
    def item(v):
        t = type(v)
        if t in leaf and not ((t is str or t is bytes) and len(v) > {LONG}) and not (t is int and not -big < v < big):
            return repr(v)
        key = id(v)
        if key not in seen:
            seen[key] = len(todo)
            todo.append(v)
        return "@" + str(seen[key])
    def plain(items):
        kinds = set(map(type, items))
        if not kinds <= leaf:
            return False
        if str in kinds or bytes in kinds:
            sizes = [len(x) for x in items if type(x) is str or type(x) is bytes]
            if sum(sizes) > {CHARS} or [1 for x in sizes if x > {LONG}]:
                return False
        return int not in kinds or not [1 for x in items if type(x) is int and not -big < x < big]
    def short(line, name, size):
        if len(line) <= chars:
            return line
        return "#" + sha256(line.encode()).hexdigest() + "\\t" + name + "\\t" + str(size)
    roots = [name + "\\t" + item(v) for name, v in variables]
    at = 0
    while at < len(todo) or later:
        if at == len(todo):
            number, large = later.pop(0), True
        elif at in runs:
            run = ["=" + repr(v) for v in todo[at:at + runs[at]]]
            if sum(map(len, run)) > chars:
                run = [short(line, "", 0) for line in run]
            chars -= sum(map(len, run))
            lines.extend(run)
            at += len(run)
            continue
        else:
            number, large = at, False
            lines.append("")
            at += 1
        v = todo[number]
        t = type(v)
        name = t.__name__
        size, cost, line = 0, 1, ""
        try:
            if t is str or t is bytes:
                size = len(v)
                cost = 1 + size // 2048
                if cost <= units and size <= {SENT}:
                    line = short("=" + repr(v), name, size)
                elif cost <= units:
                    line = "b" + name + "\\t" + str(size) + "\\t" + sha256(v.encode() if t is str else v).hexdigest()
            elif t is int:
                line = short("=" + hex(v), name, 0)
            elif name in handles:
                line = "h" + v.obj_id
            elif isinstance(v, (list, tuple, dict, set, frozenset)) or name == "deque":
                size = len(v)
                cost = 1 + size // 32
                if cost <= units and size > {LARGE} and not large:
                    later.append(number)
                    continue
                if cost <= units:
                    keys = list(v)
                    held = [v[key] for key in keys] if isinstance(v, dict) else keys
                    if (t is list or t is tuple) and plain(held) or t is dict and plain(keys) and plain(held):
                        line = short("=" + repr(v), name, size)
                    elif (t is set or t is frozenset) and plain(keys):
                        line = short("s" + name + "\\t" + repr(sorted(map(repr, keys))), name, size)
                    elif t is list and set(map(type, held)) == {{tuple}}:
                        inner = sum(map(len, held)) // 32
                        if cost + inner <= units and plain(list(chain(held))):
                            cost += inner
                            line = short("=" + repr(v), name, size)
                    elif size > 7 and (set(map(type, held)) == {{dict}} or set(map(type, held)) == {{list}}):
                        inner = sum(map(len, held)) // 32 + size // 8
                        if cost + inner <= units and (not isinstance(v, dict) or plain(keys)):
                            flat = list(chain(held))
                            if type(held[0]) is dict:
                                flat += [x for one in held for x in one.values()]
                            ids = list(map(id, held))
                            if plain(flat) and len(set(ids)) == size and not [1 for key in ids if key in seen]:
                                cost += inner
                                first = len(todo)
                                todo.extend(held)
                                seen.update(dict(zip(ids, range(first, first + size))))
                                runs[first] = size
                                line = name + "\\t" + str(first) + "\\t" + str(size)
                                line = "q" + line + "\\t" + "\\t".join(map(repr, keys)) if isinstance(v, dict) else "r" + line
                    if not line and cost + size <= units:
                        cost += size
                        if isinstance(v, dict):
                            line = "d" + name + "".join(["\\t" + item(key) + "\\t" + item(v[key]) for key in keys])
                        else:
                            line = "m" + name + "".join(["\\t" + item(x) for x in keys])
            elif isinstance(v, exceptions):
                line = "m" + name + "".join(["\\t" + item(x) for x in v.args])
            elif name == "partial":
                line = "m" + name + "\\t" + item(v.func) + "\\t" + item(v.args) + "\\t" + item(v.keywords)
            elif name == "function":
                line = "f" + repr(v)
            elif name in classes or name == "type" and v.__name__ in classes:
                kind = v.__name__ if name == "type" else name
                names = sorted(set(classes[kind] + loose))
                cost = 1 + len(names) // 8
                if cost <= units:
                    line = ("c" if name == "type" else "i") + kind
                    for attribute in names:
                        value = getattr(v, attribute, missing)
                        if value is not missing:
                            of = missing if name == "type" else getattr(t, attribute, missing)
                            if value is not of and not (type(value).__name__ == "function" == type(of).__name__):
                                line += "\\t" + attribute + "\\t" + item(value)
            elif name in shown or name == "type":
                line = "o" + name + "\\t" + repr(v)
            else:
                line = "?" + name
        except error:
            line = "?" + name
        if cost > units or not line:
            line = "~" + name + "\\t" + str(size)
        else:
            units -= cost
            chars -= len(line)
        lines[number] = line
    return "\\n".join(roots) + "\\n\\n" + "\\n".join(lines)
"""
"""Fed once, with the rest of the prelude.

It keeps the builtins that it needs: a statement may bind their names.
"""

CALL = (
    "holdfast_walk([(k, v) for k, v in holdfast_locals().items() if k[:9] != 'holdfast_'], "
    f"holdfast_classes, holdfast_loose, {UNITS})"
)
"""An expression whose value is the walk's text.

Its inputs say which attributes instances may have.
"""
