"""How an export gives prompts: each whole, or each as what is new in it, so that a long job's
export is as large as its news.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, Protocol

from runtime.archive.difference import Literal, difference
from runtime.archive.inspect import diff_layouts
from runtime.archive.job import JobArchive
from runtime.archive.requests import Edit, RequestReader
from runtime.base.digests import digest_bytes
from runtime.base.errors import ObjectCorrupt
from runtime.projection.segments import Keep, Segment, delta_from, digests_of


class Form(Protocol):
    """The prompts of one run's lines, told in their order."""

    def __init__(self, archive: JobArchive) -> None: ...

    def layout(self, layout: tuple[Segment, ...]) -> dict[str, Any]:
        """The fields of a line that tell its layout."""
        ...

    def request(self, key: str) -> dict[str, Any]:
        """The exact request of an attempt."""
        ...


class Full:
    """Layouts as the digests of all their segments, a segment in full where the last line with
    a layout does not have it; whole requests.
    """

    def __init__(self, archive: JobArchive) -> None:
        self._reader = RequestReader(archive.store.get)
        self._before: tuple[Segment, ...] = ()

    def layout(self, layout: tuple[Segment, ...]) -> dict[str, Any]:
        """``layout``, ``new_segments``, and the share of the prompt that is the last one's
        prefix.
        """
        before, self._before = self._before, layout
        known = {segment.digest for segment in before}
        new = {s.digest: _fields(s) for s in layout if s.digest not in known}
        share = round(diff_layouts(before, layout).stable_share, 4)
        return {
            "layout": [segment.digest for segment in layout],
            "new_segments": new,
            "stable_share": share,
        }

    def request(self, key: str) -> dict[str, Any]:
        """The whole request."""
        return text_of(self._reader.wire(key))


class Delta:
    """What is new alone.

    ``layout_delta`` makes a layout from the last told: ``[start, stop]`` are segments of that one,
    a text is the digest of a segment, which ``new_segments`` has in full in the first line that
    names it. A request is ``base``, the key of the attempt told before it (or null), and ``parts``:
    ``[start, stop]`` are bytes of that one's request, the others are text or base64.
    """

    def __init__(self, archive: JobArchive) -> None:
        self._reader = RequestReader(archive.store.get)
        self._before: tuple[str, ...] = ()
        self._told: set[str] = set()
        self._key: str | None = None
        self._wire = b""

    def layout(self, layout: tuple[Segment, ...]) -> dict[str, Any]:
        """``layout_delta``, ``segments`` (their number) and ``new_segments``."""
        digests = digests_of(layout)
        parts = delta_from(self._before, None, layout, digests).parts
        told = [
            [p.start, p.stop] if isinstance(p, Keep) else p.segment.digest
            for p in parts
            if p.op != "reply"
        ]
        new = {
            s.digest: _fields(s)
            for p in parts
            if p.op == "add" and (s := p.segment).digest not in self._told
        }
        self._told |= new.keys()
        self._before = digests
        return {"layout_delta": told, "segments": len(layout), "new_segments": new}

    def request(self, key: str) -> dict[str, Any]:
        """The request, told by the one before."""
        edit = self._reader.wire_edit(key, self._key)
        if edit is None:
            wire = self._reader.wire(key)
            edit = _edit(self._wire, wire)
        else:
            wire = b"".join(
                part if isinstance(part, bytes) else self._wire[part[0] : part[1]]
                for part in _parts(edit)
            )
            # What a reader puts together it checks itself; this was put together here.
            if digest_bytes(wire) != self._reader.object(key).header["request"]["digest"]:
                raise ObjectCorrupt(f"{key}: the request put together is not the one that was sent")
        told = {"base": self._key, "parts": [_told(part) for part in _parts(edit)]}
        self._key, self._wire = key, wire
        return told


def _edit(old: bytes, new: bytes) -> Edit:
    ops, literals, at = difference(old, new), [], 0
    for op in ops:
        if isinstance(op, Literal):
            literals.append(new[at : at + op.length])
        at += op.length
    return Edit(ops, b"".join(literals))


def _parts(edit: Edit) -> Iterator[tuple[int, int] | bytes]:
    at = 0
    for op in edit.ops:
        if isinstance(op, Literal):
            yield edit.literals[at : at + op.length]
            at += op.length
        else:
            yield op.offset, op.offset + op.length


def _told(part: tuple[int, int] | bytes) -> list[int] | dict[str, str]:
    return text_of(part) if isinstance(part, bytes) else list(part)


def _fields(segment: Segment) -> dict[str, Any]:
    return segment.model_dump(mode="json", exclude_defaults=True)


def text_of(data: bytes) -> dict[str, str]:
    """Bytes in JSON: as text where they are UTF-8, else as base64."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
