"""Token counts: the one place where tiktoken is imported, and where its encodings come from.

A job's encoding is pinned when the job starts, so every worker counts alike (docs/design.md section
7). Counting reaches no network: an encoding's file is taken from ``TIKTOKEN_CACHE_DIR`` or from the
copies that litellm ships, which are found without importing litellm. Workflow code may import this
module.

Text is encoded in windows of at most ``WINDOW`` characters. tiktoken's pattern matcher gives up on
whitespace runs of some 100,000 characters, and its merge is slower than linear on long runs;
windows bound both. A window ends where no token can span the cut (a letter or digit before a space
or newline), so the count of ordinary text is tiktoken's own; only a run of ``WINDOW / 2``
characters without such a place may count a token more or less.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Protocol

import tiktoken

from runtime.base.encodings import FILES
from runtime.base.errors import InputError

WINDOW = 16_384
"""The longest stretch, in characters, that is encoded at once."""

_ORIGIN = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
_BUNDLED = ("litellm_core_utils", "tokenizers")
_SAFE_CUT = re.compile(r".*[A-Za-z0-9](?=[ \n])", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_environment = Lock()


class TokenCounter(Protocol):
    """Counts tokens and cuts text to a number of them.

    Deterministic, without I/O once it exists.
    """

    @property
    def name(self) -> str:
        """The encoding's name."""
        ...

    def count(self, text: str) -> int:
        """How many tokens ``text`` has; special tokens count as ordinary text."""
        ...

    def clip(self, text: str, tokens: int) -> str:
        """The longest prefix of ``text``, cut between tokens, that has at most ``tokens`` of
        them.
        """
        ...


class TiktokenCounter:
    """A ``TokenCounter`` over one of tiktoken's encodings."""

    def __init__(self, name: str, encoding: tiktoken.Encoding) -> None:
        self._name = name
        self._encoding = encoding

    @property
    def name(self) -> str:
        """The encoding's name."""
        return self._name

    def count(self, text: str) -> int:
        """How many tokens ``text`` has. Lone surrogates count as U+FFFD."""
        return sum(
            len(self._encoding.encode_ordinary(part))
            for part in _windows(_SURROGATE.sub("\ufffd", text))
        )

    def clip(self, text: str, tokens: int) -> str:
        """The longest prefix of ``text``, cut between tokens and characters, with ``count`` at most
        ``tokens``.
        """
        clean = _SURROGATE.sub("\ufffd", text)
        length = self._prefix(clean, tokens)
        budget = tokens
        # A prefix may split into other tokens than it had in the whole, because the pattern looks
        # ahead.
        while length and self.count(text[:length]) > tokens:
            budget -= 1
            length = self._prefix(clean, budget)
        return text[:length]

    def _prefix(self, clean: str, tokens: int) -> int:
        """How many characters of ``clean`` its first ``tokens`` tokens cover."""
        length, left = 0, tokens
        for part in _windows(clean):
            ids = self._encoding.encode_ordinary(part)
            if len(ids) > left:
                kept = self._encoding.decode_bytes(ids[: max(left, 0)])
                # A token may end within a character, of which a part cannot be shown.
                return length + len(kept.decode("utf-8", errors="ignore"))
            length += len(part)
            left -= len(ids)
        return length


@lru_cache(maxsize=16)
def encoding(name: str) -> TokenCounter:
    """The counter of the tiktoken encoding ``name``; made once for each process.

    Raises:
        InputError: if there is no such encoding, or its file is neither shipped with litellm nor in
            TIKTOKEN_CACHE_DIR.
    """
    if name not in FILES:
        raise InputError(
            f"encoding {name!r} is not known; one of {', '.join(sorted(FILES))} is expected"
        )
    # The name that tiktoken gives the file in its cache.
    key = hashlib.sha1(_ORIGIN.format(FILES[name]).encode(), usedforsecurity=False).hexdigest()
    for folder in _folders():
        # Looked for here: where there is none tiktoken would ask the network.
        if (folder / key).is_file():
            with _cache_folder(folder):
                return TiktokenCounter(name, _made(name))
    raise InputError(
        f"encoding {name!r} is not on this machine: put its file, named {key}, into the directory"
        " that TIKTOKEN_CACHE_DIR names, or use cl100k_base"
    )


def _made(name: str) -> tiktoken.Encoding:
    """The encoding; if nobody has asked for it before, without the table of its tokens that its
    matcher was made from: a third of its memory, for those alone who make other encodings of it.
    """
    known = name in tiktoken.registry.ENCODINGS
    made = tiktoken.get_encoding(name)
    if not known:
        getattr(made, "_mergeable_ranks", {}).clear()
    return made


def _windows(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > WINDOW:
        safe = _SAFE_CUT.match(text, start + WINDOW // 2, start + WINDOW + 1)
        stop = safe.end() if safe else start + WINDOW
        yield text[start:stop]
        start = stop
    if start < len(text):
        yield text[start:]


def _folders() -> Iterator[Path]:
    configured = os.environ.get("TIKTOKEN_CACHE_DIR")
    if configured:
        yield Path(configured)
    litellm = find_spec("litellm")
    if litellm is not None and litellm.origin is not None:
        yield Path(litellm.origin).parent.joinpath(*_BUNDLED)


@contextmanager
def _cache_folder(folder: Path) -> Iterator[None]:
    """``TIKTOKEN_CACHE_DIR`` set to ``folder``: tiktoken has no other way to be told where an
    encoding's file is.
    """
    # The variable is the whole process's: another thread must not set it meanwhile.
    with _environment:
        before = os.environ.get("TIKTOKEN_CACHE_DIR")
        os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
        try:
            yield
        finally:
            if before is None:
                del os.environ["TIKTOKEN_CACHE_DIR"]
            else:
                os.environ["TIKTOKEN_CACHE_DIR"] = before
