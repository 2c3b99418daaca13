"""The token of a codec endpoint: who holds it is shown what is encrypted.

Temporal's CLI sends it as a header (``--codec-auth``). Its web UI cannot, but sends cookies of the
endpoint's where its settings say so: ``/login`` has a form that sets one.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import stat
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import parse_qs

from runtime.base.errors import InputError

TOKEN = "HOLDFAST_CODEC_TOKEN"
"""The environment variable with the token."""

COOKIE = "holdfast-codec"
LOGIN = "/login"
FORM = (
    b'<!doctype html><title>Holdfast</title><form method="post">'
    b'<label>Token <input name="token" type="password" autofocus></label> <button>Enter</button>'
    b"</form>\n"
)
_FORM = re.compile(r"[A-Za-z0-9._~+/=-]{16,256}")


@dataclass(frozen=True, repr=False)
class Token:
    """A token of 16 characters or more, such as may stand in a header."""

    text: str

    def is_sent(self, authorization: str, cookies: str) -> bool:
        """Whether a request with these headers has it."""
        scheme, _, sent = authorization.partition(" ")
        if scheme.lower() == "bearer" and self._is(sent.strip()):
            return True
        try:
            cookie = SimpleCookie(cookies).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and self._is(cookie.value)

    def is_entered(self, form: bytes) -> bool:
        """Whether the form of ``/login`` was sent with it."""
        sent = parse_qs(form.decode("utf-8", "replace")).get("token", [""])
        return self._is(sent[0].strip())

    @property
    def cookie(self) -> str:
        """What a browser is to send from now on: to this endpoint alone, and for pages of the same
        site alone, as all of this machine are.
        """
        return f'{COOKIE}="{self.text}"; HttpOnly; SameSite=Strict; Path=/'

    def _is(self, sent: str) -> bool:
        # In the same time whatever is sent.
        return hmac.compare_digest(sent.encode("utf-8", "replace"), self.text.encode())


def token_of(file: Path | None) -> Token | None:
    """The token in a file, else in ``HOLDFAST_CODEC_TOKEN``; None if there is none.

    Raises:
        InputError: if the file cannot be read, or others may read it; if it holds no token.
    """
    if file is None:
        setting = os.environ.get(TOKEN)
        return _parsed(setting, TOKEN) if setting else None
    try:
        # The group may read it: a secret that Kubernetes mounts is for the pod's group.
        if stat.S_IMODE(file.stat().st_mode) & 0o007:
            raise InputError(f"the token {file} is open to all users: chmod o= {file}")
        text = file.read_text("utf-8", "replace")
    except OSError as error:
        raise InputError(f"the token {file} cannot be read: {error.strerror}") from error
    return _parsed(text, str(file))


def new_token() -> Token:
    """One that nobody had before."""
    return Token(secrets.token_urlsafe(24))


def _parsed(text: str, where: str) -> Token:
    if not _FORM.fullmatch(text.strip()):
        raise InputError(
            f"{where}: expected a token of 16 to 256 letters, digits and '._~+/=-', such as"
            " 'openssl rand -hex 24' gives"
        )
    return Token(text.strip())
