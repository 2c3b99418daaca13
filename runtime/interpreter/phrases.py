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
