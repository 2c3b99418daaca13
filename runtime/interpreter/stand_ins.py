"""What a statement has that the interpreter has not, and the pieces that stand for it."""

from __future__ import annotations

import ast

from runtime.context import api

# fmt: off
METHODS = frozenset(
    {
        "add", "append", "appendleft", "as_posix", "capitalize", "casefold", "center", "clear",
        "copy", "count", "decode", "difference", "discard", "elements", "encode", "endswith",
        "exists", "expandtabs", "extend", "extendleft", "find", "findall", "finditer", "format",
        "format_map", "fullmatch", "get", "glob", "group", "groupdict", "groups", "index", "insert",
        "intersection", "is_absolute", "is_dir", "is_file", "is_integer",
        "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isdisjoint", "isidentifier",
        "islower", "isnumeric", "isoformat", "isprintable", "isspace", "issubset", "issuperset",
        "istitle", "isupper", "items", "iterdir", "join", "joinpath", "keys", "ljust", "lower",
        "lstrip", "match", "most_common", "partition", "pop", "popitem", "popleft", "read_bytes",
        "read_text", "remove", "removeprefix", "removesuffix", "replace", "reverse", "rfind",
        "rglob", "rindex", "rjust", "rotate", "rpartition", "rsplit", "rstrip", "search",
        "setdefault", "sort", "span", "split", "splitlines", "start", "startswith", "stat",
        "strftime", "strip", "sub", "subn", "subtract", "swapcase", "title", "total",
        "total_seconds", "union", "update", "upper", "values", "weekday", "with_name",
        "with_suffix", "zfill",
    }
)
# fmt: on
"""Methods of built-in types.

A call of one needs nothing; one that is passed on as a value is made a function.
"""

TYPES = frozenset(
    {"str", "bytes", "list", "dict", "set", "frozenset", "tuple", "int", "float", "Path"}
)
METHOD_CALLS = {
    "sub": ("_sub", "holdfast_sub", ", False"),
    "subn": ("_sub", "holdfast_sub", ", True"),
    "relative_to": ("_paths", "holdfast_relative_to", ""),
    "is_relative_to": ("_paths", "holdfast_is_relative_to", ""),
    "with_stem": ("_paths", "holdfast_with_stem", ""),
    "decode": ("_open", "holdfast_decode", ""),
    "translate": ("_translate", "holdfast_translate", ""),
    "maketrans": ("_translate", "holdfast_maketrans", ""),
    "sort": ("_sorted", "holdfast_sort", ""),
    "fromtimestamp": ("_dates", "holdfast_fromtimestamp", ""),
    "isocalendar": ("_dates", "holdfast_isocalendar", ""),
    "toordinal": ("_dates", "holdfast_toordinal", ""),
    "bit_length": ("_numbers", "holdfast_bit_length", ""),
    "bit_count": ("_numbers", "holdfast_bit_count", ""),
    "is_integer": ("_numbers", "holdfast_is_integer", ""),
    "format_map": ("_numbers", "holdfast_format_map", ""),
    "intersection_update": ("_sets", "holdfast_intersection_update", ""),
    "difference_update": ("_sets", "holdfast_difference_update", ""),
}
"""Method calls that a piece answers: the piece, its function, and what follows the object."""

KEYWORD_CALLS = {
    ("dumps", "default"): ("_dumps", "holdfast_dumps"),
    ("dumps", "cls"): ("_dumps", "holdfast_dumps"),
    ("read_text", "errors"): ("_open", "holdfast_read_text"),
    ("read_text", "encoding"): ("_open", "holdfast_read_text"),
    ("open", "errors"): ("_open", "holdfast_path_open"),
    ("open", "encoding"): ("_open", "holdfast_path_open"),
}
WRITING_CALLS = {
    ("write_text", "data"): ("_writes", "holdfast_write_text"),
    ("write_text", "encoding"): ("_writes", "holdfast_write_text"),
    ("write_text", "errors"): ("_writes", "holdfast_write_text"),
    ("write_text", "newline"): ("_writes", "holdfast_write_text"),
    ("open", "errors"): ("_opens", "holdfast_path_opens"),
    ("open", "encoding"): ("_opens", "holdfast_path_opens"),
}
"""What a run by the patch ``WRITES`` has in place of those of ``KEYWORD_CALLS``."""

OPENS = ("_opens", "holdfast_opens", frozenset({"errors", "encoding"}))
"""And in place of what ``FUNCTION_CALLS`` has of ``open``."""

NATURAL_CALLS = {
    ("read_text", "encoding"): ("_reads", "holdfast_reads_text"),
    ("read_text", "errors"): ("_reads", "holdfast_reads_text"),
    ("open", "errors"): ("_reads", "holdfast_path_reads"),
    ("open", "encoding"): ("_reads", "holdfast_path_reads"),
    ("open", "newline"): ("_reads", "holdfast_path_reads"),
    ("popitem", "last"): ("_ordered", "holdfast_popitem"),
}
"""What a run by the patch ``NATURAL`` has in place of those, or beside them."""

NATURAL_METHODS = {
    "sub": ("_template", "holdfast_replaced", ", False"),
    "subn": ("_template", "holdfast_replaced", ", True"),
    "move_to_end": ("_ordered", "holdfast_move_to_end", ""),
}
"""And in place of what ``METHOD_CALLS`` has, or beside it."""

FAITHFUL_METHODS = {
    "timedelta": ("_dates", "holdfast_timedelta", ".timedelta"),
    "strptime": ("_parsed", "holdfast_strptime", ""),
}
"""And what a run by the patch ``FAITHFUL`` has."""

REGEX_METHODS = {
    "sub": ("_regex", "holdfast_regex_sub", ", False"),
    "subn": ("_regex", "holdfast_regex_sub", ", True"),
}
"""And one by the patch ``ALIKE`` where ``re`` has another name."""

TRUTHS = frozenset({"__bool__", "__len__"})
"""Methods by which an object says whether it is true."""

OBJECTS = (ast.Attribute, ast.Call, ast.IfExp, ast.Name, ast.NamedExpr, ast.Subscript)
"""Expressions whose value may be an object of a class of the job's."""

ADDED = (
    *(ast.Attribute, ast.Call, ast.Dict, ast.DictComp, ast.GeneratorExp, ast.IfExp, ast.Name),
    *(ast.Set, ast.SetComp, ast.Subscript, ast.Tuple),
)
"""Expressions whose value may be something to loop over that is no list."""

NEVER_CALLED = frozenset(
    {
        *("__delattr__", "__format__", "__getattr__", "__getattribute__", "__new__"),
        *("__setattr__", "__iadd__", "__iand__", "__imul__", "__ior__", "__isub__"),
    }
)
"""Methods that the interpreter passes over, where Python would call them."""

NOT_CALLED = "write a method of another name, and call it"

NATURAL_OPENS = ("_reads", "holdfast_reads", frozenset({"errors", "encoding", "newline"}))

OF_CAUGHT = frozenset({"code", "colno", "errno", "filename", "lineno", "msg", "pos", "strerror"})
"""Attributes of exceptions that a piece answers, where a statement catches one by a name."""

# fmt: off
EXCEPTIONS = frozenset(
    {
        "ArithmeticError", "AssertionError", "AttributeError", "Exception", "FileExistsError",
        "FileNotFoundError", "ImportError", "IndexError", "IsADirectoryError", "KeyError",
        "KeyboardInterrupt", "LookupError", "MemoryError", "ModuleNotFoundError", "NameError",
        "NotADirectoryError", "NotImplementedError", "OSError", "OverflowError", "PermissionError",
        "RecursionError", "RuntimeError", "StopIteration", "SyntaxError", "SystemExit",
        "TimeoutError", "TypeError", "UnicodeDecodeError", "UnicodeEncodeError", "ValueError",
        "ZeroDivisionError",
    }
)
# fmt: on
"""Classes of exceptions that ``type(e)`` is compared with."""

OF_NODES = api.names(hands=True, spawn=True) - {api.FINISH.name}
"""Functions of the job that take other things than data."""

SIMPLE = (ast.Constant, ast.JoinedStr, ast.GeneratorExp, ast.Starred)
"""Arguments that are data as they stand, or are made a list anyway."""

PATHS = frozenset({"PurePath", "PurePosixPath", "PosixPath"})
"""Names of ``pathlib`` for which the interpreter has ``Path``."""

FUNCTION_CALLS = {
    "sorted": ("_sorted", "holdfast_sorted", frozenset()),
    "max": ("_sorted", "holdfast_max", frozenset()),
    "min": ("_sorted", "holdfast_min", frozenset()),
    "map": ("_mapped", "holdfast_map", frozenset()),
    "filter": ("_mapped", "holdfast_filter", frozenset()),
    "open": ("_open", "holdfast_open", frozenset({"errors", "encoding"})),
    "timedelta": ("_dates", "holdfast_timedelta", frozenset()),
    "print": ("_print", "holdfast_print", frozenset({"file"})),
}
"""Calls of builtins that a piece answers, given the builtin itself: the piece, its function, the
keywords that ask for it, none if it always does.
"""

ASKING_CALLS: dict[str, tuple[str, str, frozenset[str]]] = {
    "hasattr": ("_has", "holdfast_hasattr", frozenset()),
    "getattr": ("_has", "holdfast_getattr", frozenset()),
}
"""Those that a run by the patch ``ASKING`` has beside them."""

TRUTH_CALLS: dict[str, tuple[str, str, frozenset[str]]] = {
    "any": ("_truths", "holdfast_any", frozenset()),
    "all": ("_truths", "holdfast_all", frozenset()),
    "filter": ("_truths", "holdfast_true_filter", frozenset()),
}
"""And what it has where objects say themselves whether they are true."""

BUILTINS = {"callable": ("_callable", "holdfast_callable"), "vars": ("_vars", "holdfast_vars")}
ATTRIBUTES = {
    "parents": ("_paths", "holdfast_parents"),
    "__name__": ("_name", "holdfast_name"),
    "__dict__": ("_vars", "holdfast_vars"),
}
ALIASES = {"IOError": "OSError", "EnvironmentError": "OSError"}
"""Builtins that are another of the same object."""

OF_SEVERAL = {
    "union": ("_sets", "holdfast_union", ""),
    "intersection": ("_sets", "holdfast_intersection", ""),
    "difference": ("_sets", "holdfast_difference", ""),
    "update": ("_sets", "holdfast_update", ""),
}
"""Methods of sets that the interpreter has for one argument, and a piece for another number."""

LISTED = frozenset({"zip", "enumerate", "reversed", "finditer"})
"""Functions and methods of which the interpreter gives a list, which is no iterator."""

ENUMS = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"})
NO_BASES = frozenset({"object", "ABC", "Protocol", "Generic"})
