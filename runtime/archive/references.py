"""What an archived object names by digest.

Whatever one names is covered by its digest, and so on to the heads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from runtime.archive import keys
from runtime.archive.container import ArchivedObject, header_of, is_sealed

SHARED = "_holdfast/"
"""Under this stand what belongs to no job: bytes as they are, named by their SHA-256."""

_ONE = ("parent", "attempt", "previous", "failed", "answered", "definition", "against")
_MANY = ("effects", "checkpoints", "beside", "claims", "earlier", "uses")


class Reference(NamedTuple):
    """``key`` must be there and have ``digest``.

    ``link``: the chain of turns itself, of which readers know more.
    """

    key: str
    digest: str
    link: bool


def references(archived: ArchivedObject) -> Iterator[Reference]:
    """What an object names, in an order of its own.

    Raises what a malformed header makes: ``KeyError`` and the like.
    """
    header = archived.header
    kind = header["kind"]
    if kind == "claim":
        yield _reference(archived.key.removesuffix(keys.CLAIM), header["order"], link=True)
    if kind == "attempt" and header.get("start"):
        place = keys.parse_turn_key(archived.key)
        if place is not None:
            yield _reference(f"{place.job}/runs/{place.run}", header["start"], link=True)
    if kind not in _NAMING:
        return
    for name in _ONE:
        one = header.get(name)
        if one is not None:
            yield _reference(one["key"], one["digest"], link=name not in _FREE)
    for name in _MANY:
        for key, digest in header.get(name, {}).items():
            yield _reference(key, digest, link=name in _LINKS)
    for condensation in header.get("condensations", ()):
        if summary := condensation.get("summary"):
            yield _reference(summary["key"], summary["digest"], link=True)


def _reference(key: object, digest: object, *, link: bool) -> Reference:
    """What is named so, by whoever wrote the header.

    Raises:
        TypeError: if that is nothing.
    """
    if not (isinstance(key, str) and isinstance(digest, str)):
        raise TypeError(f"{key!r} with the digest {digest!r} names no object")
    return Reference(key, digest, link)


# A definition and a replay's order hold what users wrote, whose fields may have the same names.
_NAMING = frozenset(
    {"run", "attempt", "step", "failure", "exchange", "effect", "checkpoint", "end"}
)
_FREE = frozenset({"answered", "definition", "against"})
_LINKS = frozenset({"effects", "checkpoints", "claims"})


def shared_references(data: bytes) -> Iterator[Reference]:
    """What an object under ``SHARED`` names: a summary's text, the step of the call that wrote it;
    a version of a workspace, the objects that one needs to read it.
    """
    try:
        if is_sealed(data):
            for key, digest in header_of(data).get("uses", {}).items():
                yield Reference(str(key), str(digest), link=False)
            return
        step = json.loads(data).get("step")
        if isinstance(step, dict):
            yield Reference(str(step["key"]), str(step["digest"]), link=False)
    # Bytes as they are, as of a file that a view showed, name nothing whatever they look like.
    except (ValueError, AttributeError, KeyError, RecursionError):
        return
