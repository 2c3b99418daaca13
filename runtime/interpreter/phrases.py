"""What the interpreter says of Python that it does not have, told to the model: what to write
instead.
"""

from __future__ import annotations

import re

from runtime.interpreter.dialect import Dialect

_TABLE: tuple[tuple[str, str], ...] = (
    (
        r"The monty syntax parser does not yet support class inheritance and metaclasses",
        (
            "a class cannot inherit from another (nor from an exception): write the shared parts as"
            " functions, hold an instance of the other class, and raise ValueError or another"
            " built-in exception"
        ),
    ),
    (
        r"The monty syntax parser does not yet support yield expressions",
        (
            "this generator cannot be run to its end (an endless loop, or a value that is sent to"
            " it): append to a list and return it"
        ),
    ),
    (
        r"The monty syntax parser does not yet support method decorators .*",
        "@property and other decorators of methods are not supported: write a method and call it",
    ),
    (
        r"The monty syntax parser does not yet support the 'del' statement",
        "del takes names and items (del x, del d[k]); of an object's attribute assign None to it",
    ),
    (
        r"The monty syntax parser does not yet support type aliases",
        "type aliases are not supported: leave the annotation out",
    ),
    (
        r"The monty syntax parser does not yet support exception groups.*",
        "except* is not supported: write except",
    ),
    (
        r"Wildcard imports .* are not supported",
        "import * is not supported: name what you import",
    ),
    (
        r"dataclass\(\) does not yet support the order option",
        "dataclass(order=...) is not supported: leave it out, and sort with key=",
    ),
    (
        r"dataclass\(\) does not yet support the (\w+) option",
        r"dataclass(\1=...) is not supported: leave it out",
    ),
    (
        r"'errors' argument is not yet supported",
        "errors= must be written in the call itself: open(path, errors='replace')",
    ),
    (
        r"'(\w+)' argument is not yet supported",
        r"the argument '\1' is not supported: leave it out",
    ),
    (
        r"update modes \('\+'\) are not yet supported",
        "mode '+' is not supported: read the file, then write it whole",
    ),
    (
        r"field\(\) does not yet support the (\w+) argument",
        (
            r"field(\1=...) is not supported: leave it out, give the field a default and set it in"
            r" __post_init__"
        ),
    ),
    (
        r"OS function '(?:Path\.)?(\w+)' cannot suspend in this synchronous context",
        (
            r"\1 reads files, which a function that is handed to reduce, groupby and the like"
            r" cannot do: write a loop"
        ),
    ),
    (
        r"'([<>]=?)' not supported between instances of 'PosixPath' and 'PosixPath'",
        r"paths are not compared by \1: sorted(), min() and max() take them, and p.parts compare",
    ),
    (
        r"cannot import name '(?:async)?contextmanager' from 'contextlib'",
        (
            "cannot import name 'contextmanager' from 'contextlib': write a class with __enter__"
            " and __exit__, or try and finally"
        ),
    ),
    (
        r"cannot import name 'methodcaller' from 'operator'",
        ("cannot import name 'methodcaller' from 'operator': write lambda o: o.method(...)"),
    ),
    (
        r"callable replacement is not yet supported in re\.sub\(\)",
        "a function as replacement must be given in a call of re.sub(pattern, function, text)",
    ),
    (
        # Behind those above, which it would match too: the first that matches is told.
        r"The monty syntax parser (?:does not yet support|cannot yet handle) (.*)",
        r"\1: not supported, write it another way",
    ),
    (
        (
            r"(?:Internal error in monty: )?exceptions can only be called with zero or one string"
            r" argument"
        ),
        "an exception takes one text: raise ValueError('what is wrong')",
    ),
    (
        r"'(\w+)' object has no attribute '(\w+)' and no __dict__ for setting new attributes",
        r"attributes cannot be set on '\1' objects ('\2'): keep the value in a variable or a dict",
    ),
    (
        r"type object 'int' has no attribute 'from_bytes'",
        "int.from_bytes is not supported: write int(data.hex(), 16), or data[::-1] for 'little'",
    ),
    (
        r"'int' object has no attribute 'to_bytes'",
        "n.to_bytes is not supported: write bytes.fromhex(f'{n:0{2 * length}x}')",
    ),
    (
        r"cannot convert 'list' object to bytes",
        "bytes of a list are not supported: bytes.fromhex(...) and text.encode() make bytes",
    ),
    (
        r"type object '(?:datetime\.)?datetime' has no attribute 'utc(now|fromtimestamp)'",
        r"datetime.utc\1 is not supported: write datetime.\1(..., timezone.utc)",
    ),
    (
        r"module 're' has no attribute '(?:X|VERBOSE)'",
        "re.VERBOSE is not supported: begin the pattern with (?x)",
    ),
    (
        r"'dict' object has no attribute 'move_to_end'",
        "move_to_end is not supported: write d[key] = d.pop(key), which puts a key last",
    ),
    (
        r"dict\.popitem\(\) takes no keyword arguments",
        "popitem takes the last item: d.pop(next(iter(d))) takes the first",
    ),
    (
        r"'_io\.TextIOWrapper' object has no attribute 'write'",
        "sys.stdout.write is not supported: write print(text, end='')",
    ),
    (
        r"'module' object has no attribute 'stdin'",
        "nobody answers a statement: there is no standard input",
    ),
    (
        r"'os\.(getenv|environ)' is not supported in this environment",
        r"os.\1: a statement sees no environment variables; what needs one is a tool's work",
    ),
    (
        r"'typing\._SpecialForm' object is not callable",
        "names of typing are for annotations alone: they are not called",
    ),
    (
        r"'(\w+)' object has no attribute '(__\w+__)'",
        r"'\1' object has no attribute '\2': such attributes are not supported, do without",
    ),
    (
        r"No module named '(ast|tokenize|inspect|dis|symtable)'",
        r"No module named '\1': view(path, lod=1) shows a file's symbols, re finds the rest",
    ),
    (
        r"No module named '(logging|warnings)'",
        r"No module named '\1': write print(text)",
    ),
    (
        r"No module named '(argparse|optparse|getpass)'",
        r"No module named '\1': a statement has no command line, assign what it works with",
    ),
    (
        r"No module named '(configparser|xml|yaml|toml|bs4|lxml|email)'",
        r"No module named '\1': read the text with str.partition, re, csv or json",
    ),
    (r"No module named 'zoneinfo'", "No module named 'zoneinfo': timezone(timedelta(hours=1))"),
    (r"No module named 'fractions'", "No module named 'fractions': use decimal, or pairs of int"),
    (r"No module named 'types'", "No module named 'types': use a dict, or a class of your own"),
    (
        r"No module named '(pickle|shelve|sqlite3)'",
        r"No module named '\1': variables stay from turn to turn, json makes texts",
    ),
    (
        (
            r"No module named"
            r" '(subprocess|threading|multiprocessing|socket|concurrent|tempfile|shutil|signal"
            r"|requests|httpx|aiohttp|urllib|http|ssl|select|selectors)(\.\w+)*'.*"
        ),
        (
            r"No module named '\1': a statement has no processes, threads, network or files to"
            r" write; call the job's tools"
        ),
    ),
    (
        r"No module named '([\w.]+)'",
        r"No module named '\1': only the modules that the contract lists are there",
    ),
    (
        r"cannot import name '(\w+)' from '([\w.]+)'(?: \(unknown location\))?",
        (
            r"cannot import name '\1' from '\2': only the usual parts of a module are there, write"
            r" it another way"
        ),
    ),
    (
        r"module '(\w+)' has no attribute '(\w+)'",
        (
            r"module '\1' has no attribute '\2': only the usual parts of a module are there, write"
            r" it another way"
        ),
    ),
)
_NATURAL: tuple[tuple[str, str], ...] = (
    (
        r"external function '(\w+)' cannot suspend in this synchronous context",
        (
            r"\1 is a call of the job's, which a function that is handed to reduce, starmap,"
            r" groupby and the like cannot make: write a loop"
        ),
    ),
    (
        r"Pattern\.(\w+)\(\) takes exactly one argument \(\d given\)",
        (
            r"Pattern.\1 takes the text alone: search text[pos:], and add pos to what start() and"
            r" end() say"
        ),
    ),
    (
        r"'module' object has no attribute '(format_exc|print_exc|format_stack|print_stack)'",
        (
            r"traceback.\1 is not supported: write except Exception as e, and print"
            r" f'{type(e).__name__}: {e}'"
        ),
    ),
    (
        r"maximum recursion depth exceeded",
        (
            "maximum recursion depth exceeded: at most 200 calls within each other, write a loop"
            " over a list of what is still to do"
        ),
    ),
    (
        r"'(\w+)' object has no attribute '__cause__'.*",
        r"'\1' object has no attribute '__cause__': keep the first exception in a variable",
    ),
    (
        r"'PosixPath' object has no attribute 'match'",
        "Path.match is not supported: write fnmatch.fnmatch(path.name, '*.py')",
    ),
)
"""Before those of ``_TABLE``, in runs by the patch ``NATURAL`` alone."""

_FAITHFUL: tuple[tuple[str, str], ...] = (
    (
        r"no such group",
        (
            "no such group: group() and m[...] take the name of a group, start(), end() and span()"
            " its number alone"
        ),
    ),
    (
        # Of a class of the statement's own: those of builtins are not ordered in Python either.
        (
            r"'([<>]=?)' not supported between instances of"
            r" '(?!(?:NoneType|PosixPath)')([A-Z]\w*)' and '\2'"
        ),
        (
            r"'\1' not supported between instances of '\2' and '\2': only sorted(), min() and max()"
            r" call methods such as __lt__, so compare a field, or push (key, number, object) on a"
            r" heap"
        ),
    ),
)
"""Before those of ``_NATURAL``, in runs by the patch ``FAITHFUL`` alone."""

_COMPILED = tuple((re.compile(pattern), text) for pattern, text in _TABLE)
_NATURALLY = (*((re.compile(pattern), text) for pattern, text in _NATURAL), *_COMPILED)
_ALL = (*((re.compile(pattern), text) for pattern, text in _FAITHFUL), *_NATURALLY)


def told(message: str, dialect: Dialect = Dialect.LATEST) -> str:
    """``message`` as the model should read it; unknown ones as they are."""
    table = _COMPILED
    if dialect >= Dialect.NATURAL:
        table = _ALL if dialect >= Dialect.FAITHFUL else _NATURALLY
    for pattern, text in table:
        if pattern.fullmatch(message):
            return pattern.sub(text, message)
    return message


_NAMES = {
    "super": (
        "a class cannot inherit from another: write the shared parts as functions, or hold an"
        " instance of the other class"
    ),
    "input": "nobody answers a statement, decide yourself",
    "breakpoint": "nobody answers a statement, print what you want to see",
    "bytearray": "collect in a list, or join bytes",
    "memoryview": "slice the bytes themselves",
    "globals": "variables stay from turn to turn, keep a dict for names that you compute",
    "exec": "write the statement itself",
    "compile": "write the statement itself",
    "__import__": "write import",
    "dir": "the types of variables are in the prompt",
    "issubclass": "compare the class itself",
    "ascii": "write repr(text)",
    "delattr": "assign None",
    "aiter": "write a loop over a list",
    "anext": "write a loop over a list",
    "UnicodeError": "write (UnicodeDecodeError, UnicodeEncodeError)",
}
"""Builtins that statements do not have, and what to write instead."""

# fmt: off
_NEVER_RAISED = frozenset(
    {
        "BaseExceptionGroup", "BlockingIOError", "BrokenPipeError", "BufferError", "BytesWarning",
        "ChildProcessError", "ConnectionAbortedError", "ConnectionError", "ConnectionRefusedError",
        "ConnectionResetError", "DeprecationWarning", "EOFError", "EncodingWarning",
        "ExceptionGroup", "FloatingPointError", "FutureWarning", "GeneratorExit", "ImportWarning",
        "IndentationError", "InterruptedError", "PendingDeprecationWarning", "ProcessLookupError",
        "PythonFinalizationError", "ReferenceError", "ResourceWarning", "RuntimeWarning",
        "StopAsyncIteration", "SyntaxWarning", "SystemError", "TabError", "UnicodeTranslateError",
        "UnicodeWarning", "UserWarning", "Warning",
    }
)
# fmt: on


def instead_of(name: str) -> str:
    """What to write in place of a builtin that statements do not have; empty for other names."""
    if name in _NEVER_RAISED:
        return "nothing here raises it, leave it out"
    return _NAMES.get(name, "")
