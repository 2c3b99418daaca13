"""The key with which payloads are signed: a file of the state directory, else ``HOLDFAST_KEY``.

It is made with the state directory's first use and never changes: payloads that are in histories by
then would be foreign ones. A worker or a command on another machine is given the same key, as the
one line that the file holds.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import secrets
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from runtime.base.errors import InputError
from runtime.base.home import Home, state_home
from runtime.base.owners import is_another_users
from runtime.base.places import read_regular

KEY = "HOLDFAST_KEY"
"""The environment variable that holds the key where the state directory does not."""

_BYTES = 32
_MOST_BYTES = 4096


@dataclass(frozen=True, repr=False)
class PayloadKey:
    """A key of 32 bytes.

    Its ``name``, two bytes of a digest, tells keys apart and tells nothing of them.
    """

    secret: bytes

    @cached_property
    def name(self) -> bytes:
        """What payloads say of the key that they are signed with."""
        return hashlib.sha256(b"holdfast payload key\0" + self.secret).digest()[:2]

    def mac(self) -> hmac.HMAC:
        """An HMAC-SHA256 with this key, of nothing yet."""
        return self._mac.copy()

    @cached_property
    def _mac(self) -> hmac.HMAC:
        # Setting a key up takes longer than signing a turn's news.
        return hmac.new(self.secret, digestmod=hashlib.sha256)

    @property
    def text(self) -> str:
        """The key as a line of text."""
        return base64.urlsafe_b64encode(self.secret).decode("ascii")


def key_of(home: Home | None = None, environment: Mapping[str, str] | None = None) -> PayloadKey:
    """The key of ``HOLDFAST_KEY``, else of ``home``, else of this user's state directory, where it
    is made if there is none.

    Raises:
        InputError: if it is no key, cannot be read or made, or if others may have read the file or
            made it.
    """
    setting = (os.environ if environment is None else environment).get(KEY)
    if setting:
        return _parsed(setting, KEY)
    path = (home or state_home()).key
    try:
        if not path.exists():
            _make(path)
        _check_private(path)
        return _parsed(read_regular(path, _MOST_BYTES).decode("ascii", "replace"), str(path))
    except OSError as error:
        raise InputError(f"the key {path} cannot be read or made: {error.strerror}") from error


def _parsed(text: str, where: str) -> PayloadKey:
    try:
        secret = base64.b64decode(text.strip().encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if len(secret) != _BYTES:
        raise InputError(
            f"{where} is no key: expected {_BYTES} bytes in base64, as the file 'key' of a state"
            " directory has"
        )
    return PayloadKey(secret)


def _make(path: Path) -> None:
    """Make the file at once and whole; where two processes do so, the first one's stays."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".key-")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(PayloadKey(secrets.token_bytes(_BYTES)).text + "\n")
            file.flush()
            # On the disk before it has its name: after a power failure an empty file would stay as
            # the key.
            os.fsync(descriptor)
        os.link(name, path)
    except FileExistsError:
        pass
    finally:
        Path(name).unlink()


def _check_private(path: Path) -> None:
    about = path.stat()
    if is_another_users(about):
        raise InputError(
            f"the key {path} is another user's: name a state directory of your own with"
            " HOLDFAST_HOME"
        )
    if stat.S_IMODE(about.st_mode) & 0o077:
        raise InputError(
            f"the key {path} is open to other users: chmod 600 it if nobody else has read it; else"
            " remove it once no job runs any more, and a new one is made"
        )
