"""The key of the marks' HMACs: ``HOLDFAST_REDACTION_KEY``, else one that is made once in the state
directory.

Workers on different machines mark a value alike only with the same key: give them the variable.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path

from runtime.base.errors import InputError
from runtime.base.home import state_home
from runtime.base.places import read_regular

VARIABLE = "HOLDFAST_REDACTION_KEY"
FILE = "redaction.key"
_SHORTEST = 16
_MOST_BYTES = 4096


def redaction_key(environment: Mapping[str, str] | None = None) -> bytes:
    """The key.

    Raises:
        InputError: if the variable is too short to be a key, or the file cannot be read or made.
    """
    environment = os.environ if environment is None else environment
    # One that is empty is not set, as with every other variable.
    if setting := environment.get(VARIABLE):
        if len(setting) < _SHORTEST:
            raise InputError(
                f"{VARIABLE} has {len(setting)} characters: give at least {_SHORTEST} random ones"
            )
        return setting.encode("utf-8", "surrogateescape")
    path = state_home(environment).path / FILE
    try:
        if not path.exists():
            _make(path)
        return read_regular(path, _MOST_BYTES)
    except OSError as error:
        raise InputError(
            f"the redaction key {path} cannot be made or read: {error.strerror}; set {VARIABLE}"
        ) from error


def _make(path: Path) -> None:
    """Make a key; of two processes at once, the first one's counts."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{FILE}-")
    with os.fdopen(handle, "wb") as file:
        file.write(secrets.token_hex(32).encode())
        file.flush()
        # On the disk before it has its name: after a power failure an empty file would stay as the
        # key.
        os.fsync(file.fileno())
    try:
        # A link fails where the name is taken; a move would take the first one's place.
        Path(path).hardlink_to(name)
    except FileExistsError:
        pass
    finally:
        Path(name).unlink()
