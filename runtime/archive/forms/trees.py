"""The forms of what workspaces consist of: packs of files' bytes, and trees."""

from __future__ import annotations

from typing import Annotated, Literal

from runtime.archive.forms.base import Count, Digest, Form
from runtime.base.values import LeftOut


class Pack(Form):
    """The bytes of some files, one after the other.

    Parts: ``data``.
    """

    kind: Literal["pack"] = "pack"


class TreeForm(Form):
    """A version of a workspace, by what it changes in another one.

    ``version`` is the digest of the whole tree. ``base`` is the version that the workspace began
    with, ``depth`` how many changes lie between, ``parent`` the one before (both are empty for a
    base itself). ``sources`` are the objects that hold bytes of its files: an entry names one by
    its number, from 1; 0 is this object. ``uses`` are the digests of all objects that one needs to
    read it.

    Parts: ``changes``, an entry a line: ``[path]`` for one that is gone, else ``[path, kind, mode,
    size, content, source, offset, depth]``, the last being the change that brought it. ``all``, now
    and then, the same against the base. ``data``, the bytes that this version brought.
    """

    kind: Literal["tree"] = "tree"
    version: Digest
    base: Annotated[str, LeftOut()] = ""
    parent: Annotated[str, LeftOut()] = ""
    depth: Count = 0
    sources: Annotated[tuple[str, ...], LeftOut()] = ()
    uses: Annotated[dict[str, Digest], LeftOut()] = {}
