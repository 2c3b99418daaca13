"""File calls of statements: from Monty's question through the activity to what the statement
sees.
"""

from __future__ import annotations

import resource
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from pydantic_monty import (
    FunctionSnapshot,
    Monty,
    MontyComplete,
    MontyFileHandle,
    MontyRuntimeError,
)

from activities.contracts import FileCall, FileCallResult
from activities.workspace import WorkspaceActivities
from runtime.base import os_values


def ask(root: Path, operation: str, path: str, *args: Any, **kwargs: Any) -> FileCallResult:
    """One file call, as it comes back from the activity through JSON."""
    call = FileCall(workspace=str(root), operation=operation, path=path, args=args, kwargs=kwargs)
    sent = FileCall.model_validate_json(call.model_dump_json())
    return FileCallResult.model_validate_json(
        WorkspaceActivities().file_call(sent).model_dump_json()
    )


def run(root: Path, code: str) -> Any:
    """The value of ``code`` in Monty, each of whose file calls is answered by the activity."""
    contents: dict[str, Any] = {}
    with Monty() as pool, pool.checkout() as session:
        state = session.feed_start(code, cwd=os_values.VIRTUAL_ROOT)
        while not isinstance(state, MontyComplete):
            assert isinstance(state, FunctionSnapshot)
            state = state.resume(answer(root, state, contents))
        return state.output


def answer(root: Path, asked: FunctionSnapshot, contents: dict[str, Any]) -> Any:
    """What resumes the statement; an opened file's reads are answered from its content."""
    path = os_values.workspace_path(str(asked.args[0]))
    if asked.function_name == "Path.read_text" and path in contents:
        return {"return_value": contents.pop(path)}
    rest = [str(arg) if isinstance(arg, PurePosixPath) else arg for arg in asked.args[1:]]
    result = ask(root, asked.function_name, path, *rest, **asked.kwargs)
    if result.error_type is not None:
        return {"exc_type": result.error_type, "message": result.error_message}
    value = os_values.decode(asked.function_name, result.value, result.encoding)
    if asked.function_name == "open":
        contents[path] = value
        return {"return_value": MontyFileHandle(str(asked.args[0]), asked.args[1])}
    return {"return_value": value}


IMPORTS = "import os\nfrom pathlib import Path\n"


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("open('src/a.py').read()", "print(1)\n"),
        ("[line for line in open('in')]", ["print(1)\n"]),
        ("Path('src/a.py').read_bytes()", b"print(1)\n"),
        ("Path('latin.txt').read_bytes()", b"caf\xe9\n"),
        ("os.listdir('src')", ["a.py"]),
        ("[str(p) for p in Path('src').iterdir()]", ["src/a.py"]),
        (
            "[p.read_text() for p in Path('.').iterdir() if '%' in p.name]",
            ["backslash name\n", "latin-1 name\n"],
        ),
        ("[p.read_text() for p in Path('.').iterdir() if '\\n' in p.name]", ["odd name\n"]),
        ("[str(p) for p in Path('.').rglob('*.py')]", ["src/a.py"]),
        ("[(at, names) for at, _, names in os.walk('src')]", [("src", ["a.py"])]),
        ("os.path.getsize('sparse')", 2 * 1024**3),
        ("Path('src').stat().st_mode & 0o170000", 0o040000),
        (
            "os.path.exists('broken'), os.path.isfile('in'), os.path.isdir('src')",
            (False, True, True),
        ),
        (
            "str(Path('in').resolve()), str(Path('in').absolute())",
            ("/workspace/src/a.py", "/workspace/in"),
        ),
        ("os.chdir('src')\nopen('a.py').read()", "print(1)\n"),
    ],
)
def test_reading_calls_give_what_python_gives(hostile: Path, code: str, value: Any) -> None:
    """``open``, ``os`` and ``pathlib`` in a statement, over the real activity."""
    assert run(hostile, IMPORTS + code) == value


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (
            "open('/etc/passwd').read()",
            "PermissionError: [Errno 13] The path leads out of the workspace: '/etc/passwd'",
        ),
        (
            "open('../secret.txt')",
            "PermissionError: [Errno 13] The path leads out of the workspace: '/secret.txt'",
        ),
        ("open('out')", "PermissionError: [Errno 13] The path leads out of the workspace: 'out'"),
        (
            "Path('out_dir/key').read_text()",
            "PermissionError: [Errno 13] The path leads out of the workspace: 'out_dir/key'",
        ),
        ("open('missing')", "FileNotFoundError: [Errno 2] No such file or directory: 'missing'"),
        ("open('pipe')", "PermissionError: [Errno 13] Not a regular file but a named pipe: 'pipe'"),
        ("os.listdir('in')", "NotADirectoryError: [Errno 20] Not a directory: 'in'"),
        ("open('src/a.py', 'w')", "PermissionError: the workspace is read-only: 'src/a.py'"),
        ("open('new', 'a')", "PermissionError: the workspace is read-only: 'new'"),
        ("Path('new').write_text('x')", "PermissionError: the workspace is read-only: 'new'"),
        ("os.makedirs('new/dir')", "PermissionError: the workspace is read-only: 'new/dir'"),
        ("os.remove('src/a.py')", "PermissionError: the workspace is read-only: 'src/a.py'"),
        ("Path('src').rename('dst')", "PermissionError: the workspace is read-only: 'src'"),
    ],
)
def test_refused_calls_raise_ordinary_exceptions(hostile: Path, code: str, error: str) -> None:
    """The statement can catch them by their Python types, and nothing on disk changes."""
    before = sorted(hostile.rglob("*"))
    with pytest.raises(MontyRuntimeError) as raised:
        run(hostile, IMPORTS + code)
    assert str(raised.value) == error
    assert sorted(hostile.rglob("*")) == before


def test_a_decode_error_reaches_the_statement_by_its_type(hostile: Path) -> None:
    """``UnicodeDecodeError`` can be caught as such."""
    code = (
        "try:\n  open('latin.txt').read()\nexcept UnicodeDecodeError as error:\n  text ="
        " str(error)\ntext"
    )
    assert (
        run(hostile, code) == "'utf-8' codec can't decode byte 0xe9 in position 3: "
        "invalid continuation byte in 'latin.txt'; open it in mode 'rb', or use view(...)"
    )


def test_an_unknown_operation_is_an_error_of_the_statement(hostile: Path) -> None:
    """Not a failed activity, which would be tried again for ever."""
    assert ask(hostile, "Path.chmod", "src").error_type == "NotImplementedError"


def test_no_message_names_the_host(hostile: Path) -> None:
    """Whatever the call and the path, the workspace's place on the host stays unknown."""
    paths = [
        "missing",
        "src",
        "pipe",
        "out",
        "loop",
        "sparse",
        "a\0b",
        "\ud800",
        "src/a.py/x",
        "x" * 300,
        "latin.txt",
    ]
    for operation in sorted(os_values.READ_OPERATIONS | os_values.WRITE_OPERATIONS):
        for path in paths:
            call = FileCall(workspace=str(hostile), operation=operation, path=path)
            shown = WorkspaceActivities().file_call(call)
            assert str(hostile.parent) not in f"{shown.value} {shown.error_message}"


def test_only_the_hosts_own_trouble_fails_the_activity(hostile: Path) -> None:
    """Without file descriptors the call says nothing of the file, so Temporal is to try it
    again.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            WorkspaceActivities().file_call(
                FileCall(workspace=str(hostile), operation="open", path="in")
            )
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_value_of_another_shape_is_reported() -> None:
    """A result that ``encode`` cannot have made is an error, not a wrong object."""
    with pytest.raises(ValueError, match=r"the result of Path\.stat has another shape"):
        os_values.decode("Path.stat", [1, 2])
    with pytest.raises(ValueError, match=r"the result of open has another shape"):
        os_values.decode("open", "***", "base64")
