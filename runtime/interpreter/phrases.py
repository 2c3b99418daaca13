"""What the interpreter says of Python that it does not have, told to the model: what to write
instead.
"""

from __future__ import annotations

import re

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
        r"dataclass\(\) does not yet support the (\w+) option",
        r"dataclass(\1=...) is not supported: leave it out, and sort with key=",
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
        (
            r"No module named"
            r" '(pandas|numpy|requests|yaml|toml|bs4|lxml|scipy|matplotlib|httpx|aiohttp)'"
        ),
        r"No module named '\1': only the modules that the contract lists are there",
    ),
    (
        r"No module named '(ast|tokenize|inspect|dis)'",
        r"No module named '\1': view(path, lod=1) shows a file's symbols, re finds the rest",
    ),
    (
        (
            r"No module named"
            r" '(subprocess|threading|multiprocessing|socket|concurrent|tempfile|shutil|logging"
            r"|argparse|pickle|sqlite3)(\.\w+)*'.*"
        ),
        (
            r"No module named '\1': a statement has no processes, threads, network or files to"
            r" write; call the job's tools"
        ),
    ),
)
_COMPILED = tuple((re.compile(pattern), text) for pattern, text in _TABLE)


def told(message: str) -> str:
    """``message`` as the model should read it; unknown ones as they are."""
    for pattern, text in _COMPILED:
        if pattern.fullmatch(message):
            return pattern.sub(text, message)
    return message
