"""File calls of a statement as values: what Monty asks, what goes to the activity, what resumes the
statement.

Monty has no file access. ``open``, ``os`` and ``pathlib`` suspend the statement with an operation's
name (``OsFunction`` in ``pydantic_monty.os_access``) and absolute paths. The interpreter's working
directory is ``VIRTUAL_ROOT``, so a relative path arrives beneath it and every other absolute path
is one that the model wrote itself, or that left the workspace through ``..``. The file activity
answers with what ``encode`` makes of a value, and ``decode`` makes of it the object that Monty is
resumed with. Calls that would write are refused without touching any file.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

VIRTUAL_ROOT = "/workspace"
"""The workspace's root as the model knows it; give it to Monty as the feed's ``cwd``."""

READ_OPERATIONS = frozenset(
    {
        "open",
        "Path.exists",
        "Path.is_file",
        "Path.is_dir",
        "Path.is_symlink",
        "Path.read_text",
        "Path.read_bytes",
        "Path.iterdir",
        "Path.scan",
        "Path.stat",
        "Path.resolve",
        "Path.absolute",
    }
)
"""Operations that the file activity answers."""

WRITE_OPERATIONS = frozenset(
    {
        "Path.write_text",
        "Path.write_bytes",
        "Path.append_text",
        "Path.append_bytes",
        "Path.mkdir",
        "Path.unlink",
        "Path.rmdir",
        "Path.rename",
    }
)
"""Operations that would change a file; each ends as a ``PermissionError``."""

READ_ONLY = "the workspace is read-only"

_ERRORS = frozenset(
    {
        "OSError",
        "FileNotFoundError",
        "IsADirectoryError",
        "NotADirectoryError",
        "PermissionError",
        "FileExistsError",
        "TimeoutError",
        "UnicodeDecodeError",
        "ValueError",
        "TypeError",
        "NotImplementedError",
    }
)


class StatResult(NamedTuple):
    """``os.stat_result`` as Monty takes it, which knows the tuple by its class name.

    Sizes in bytes, times in seconds.
    """

    st_mode: int
    st_ino: int
    st_dev: int
    st_nlink: int
    st_uid: int
    st_gid: int
    st_size: int
    st_atime: float
    st_mtime: float
    st_ctime: float


class ScanEntry(NamedTuple):
    """One entry of a ``Path.scan``: its path relative to the scanned directory (``""`` for that
    itself), and its kind.

    ``is_dir`` and ``is_file`` follow a link inside the workspace, ``is_symlink`` does not.
    """

    path: str
    is_dir: bool
    is_file: bool
    is_symlink: bool


def workspace_path(path: str) -> str:
    """``path`` relative to the workspace where it is beneath ``VIRTUAL_ROOT``, else as it is."""
    if path == VIRTUAL_ROOT:
        return "."
    return path[len(VIRTUAL_ROOT) + 1 :] or "." if path.startswith(VIRTUAL_ROOT + "/") else path


def virtual_path(path: str) -> str:
    """The absolute form of a path that ``workspace_path`` made: what the model is shown."""
    return str(PurePosixPath(VIRTUAL_ROOT, path))


def open_mode(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The mode of an ``open`` call whose path is not in ``args``."""
    return str(args[0] if args else kwargs.get("mode", "r"))


def would_write(operation: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether the call would change a file, told from its arguments after the path."""
    if operation == "open":
        return any(letter in open_mode(args, kwargs) for letter in "wax+")
    return operation in WRITE_OPERATIONS


def error_name(error: Exception) -> str:
    """The nearest class of ``error`` that Monty knows by name, ``OSError`` if there is none."""
    return next(
        (kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _ERRORS), "OSError"
    )


def encode(operation: str, path: str, value: Any) -> tuple[Any, str]:
    """``value`` as JSON for ``FileCallResult``, and how it is encoded (``"json"`` or ``"base64"``).

    ``path`` is the call's, relative to the workspace: the names of ``Path.iterdir`` become paths
    beneath it.
    """
    match operation:
        case "Path.stat":
            return list(value), "json"
        case "Path.scan":
            return [list(entry) for entry in value], "json"
        case "Path.iterdir":
            return {"directory": virtual_path(path), "names": list(value)}, "json"
        case _ if isinstance(value, bytes):
            return base64.b64encode(value).decode("ascii"), "base64"
        case _:
            return value, "json"


def decode(operation: str, value: Any, encoding: str = "json") -> Any:
    """The object that resumes the statement, from the value of a ``FileCallResult`` for
    ``operation``.

    For ``open`` it is the file's whole content, ``str`` or ``bytes`` by mode: resume with a file
    handle, and answer the reads of that handle from it.

    Raises:
        ValueError: if ``value`` does not have the shape that ``encode`` gives it.
    """
    try:
        return _decode(operation, value, encoding)
    except (TypeError, KeyError, binascii.Error) as error:
        raise ValueError(f"the result of {operation} has another shape: {error}") from error


def _decode(operation: str, value: Any, encoding: str) -> Any:
    if encoding == "base64":
        return base64.b64decode(value, validate=True)
    match operation:
        case "Path.stat":
            return StatResult(*value)
        case "Path.scan":
            return [ScanEntry(*entry) for entry in value]
        case "Path.iterdir":
            return [PurePosixPath(value["directory"], name) for name in value["names"]]
        case "Path.resolve" | "Path.absolute":
            return PurePosixPath(value)
        case _:
            return value
