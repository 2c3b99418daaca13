"""Files of the workspace in a statement: read, listed, never written, nothing outside."""

from __future__ import annotations

import pytest
from plain_loop import Run


def test_a_file_is_read_in_every_usual_way(run: Run) -> None:
    """Whole, by line, sized, in a ``with`` block, binary, through ``pathlib``; text and bytes of
    one file at once.
    """
    loop = run(
        "from pathlib import Path\n"
        "print(repr(open('a.txt').read()))\n"
        "print([line.strip() for line in open('a.txt')])\n"
        "with open('a.txt') as f:\n    print(f.read(3), f.readline().strip(), f.readlines())\n"
        "text, raw = open('a.txt'), open('a.txt', 'rb')\n"
        "print(text.read() == raw.read().decode(), open('raw.bin', 'rb').read())\n"
        "print(Path('a.txt').read_text() == Path('/workspace/a.txt').read_text())"
    )
    assert (
        loop.executions[0].stdout
        == "'hello\\nworld\\n'\n['hello', 'world']\nhel lo ['world\\n']\nTrue"
        " b'\\x00\\xff\\n'\nTrue\n"
    )


def test_a_file_opened_earlier_is_read_in_a_later_statement(run: Run) -> None:
    """The handle stays a variable, and its first read is an effect of the statement that reads."""
    loop = run(
        "f = open('a.txt')", "print(f.read())\nfoo = view(f)\nprint(foo.path, view(path=f).path)"
    )
    assert loop.executions[1].stdout == "hello\nworld\n\na.txt a.txt\n"


def test_directories_are_listed(run: Run) -> None:
    """``os`` and ``pathlib`` list what is there, sorted, and tell files from directories."""
    loop = run(
        "import os\nfrom pathlib import Path\nprint(os.listdir('.'),"
        " os.listdir('src'))\nprint([str(p) for p in Path('.').rglob('*.py')], sorted(p.name for p"
        " in Path('src').iterdir()))\nprint(Path('src').is_dir(), Path('a.txt').exists(),"
        " Path('no').exists(), os.path.exists('a.txt'))"
    )
    assert (
        loop.executions[0].stdout
        == "['a.txt', 'raw.bin', 'src'] ['foo.py']\n['src/foo.py'] ['foo.py']\nTrue True False"
        " True\n"
    )


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        ("open('a.txt', 'w')", "PermissionError", "the workspace is read-only: 'a.txt'"),
        ("open('new.txt', 'a')", "PermissionError", "the workspace is read-only: 'new.txt'"),
        ("Path('a.txt').write_text('x')", "PermissionError", "the workspace is read-only: 'a.txt'"),
        ("Path('a.txt').unlink()", "PermissionError", "the workspace is read-only: 'a.txt'"),
        (
            "open('/etc/passwd')",
            "PermissionError",
            "'/etc/passwd' is outside the workspace, '/workspace', to which paths are relative",
        ),
        (
            "open('../a.txt')",
            "PermissionError",
            "'/a.txt' is outside the workspace, '/workspace', to which paths are relative",
        ),
        (
            "Path('/').iterdir()",
            "PermissionError",
            "'/' is outside the workspace, '/workspace', to which paths are relative",
        ),
        ("open('a.txt', 'q')", "ValueError", "invalid mode: 'q'"),
    ],
)
def test_nothing_is_written_and_nothing_outside_is_read(
    run: Run, call: str, kind: str, message: str
) -> None:
    """Each is refused before it becomes an activity."""
    loop = run(f"from pathlib import Path\n{call}")
    exception = loop.executions[0].exception
    assert exception is not None
    assert (exception.type, exception.message) == (kind, message)
    assert loop.executions[0].effects == ()


def test_a_missing_file_can_be_caught(run: Run) -> None:
    """``FileNotFoundError`` is a name that the checker and the interpreter both know."""
    loop = run(
        "try:\n    open('no.txt')\nexcept FileNotFoundError as error:\n    print('caught', error)"
    )
    assert loop.executions[0].stdout.startswith("caught ")
    assert [(effect.name, effect.error) for effect in loop.executions[0].effects] == [
        ("open", "FileNotFoundError")
    ]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("open('raw.bin').read()", "UnicodeDecodeError"),
        ("import json\njson.loads('{')", "JSONDecodeError"),
        ("import re\nre.compile('(')", "PatternError"),
        ("raise ValueError", "ValueError"),
        ("raise KeyError('a: b')", "KeyError"),
    ],
)
def test_an_exception_is_told_by_the_name_that_the_traceback_has(
    run: Run, code: str, kind: str
) -> None:
    """Also where Python's class of that name could not be made of a message alone."""
    exception = run(code).executions[0].exception
    assert exception is not None
    assert exception.type == kind
