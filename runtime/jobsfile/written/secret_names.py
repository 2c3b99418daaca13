"""The names of options, headers and parameters that would hold a secret."""

from __future__ import annotations

import re

# A token is often a piece of text: only where a name says what it opens is it a secret.
_SECRET_KEY = re.compile(
    r"(^|_)(api_?key|apikey|password|secret|credentials?|authorization|access_key"
    r"|access_key_id|private_key)($|_)"
    r"|(^|_)(api|auth|access|session|bearer|ad|hf|id|refresh|security)_token$|^token$"
    r"|^(x_api_key|cookie|proxy_authorization)$"
)


def is_secret_key(key: str) -> bool:
    """Whether an option of this name would hold a secret."""
    return _SECRET_KEY.search(key.lower().replace("-", "_")) is not None


def is_secret_name(name: str) -> bool:
    """Whether a parameter of this name in a URL would hold a secret."""
    return (
        is_secret_key(name)
        or re.search(r"(key|token|secret|signature|sig|auth|password)$", name.lower()) is not None
    )
