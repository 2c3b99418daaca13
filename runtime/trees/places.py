"""From a path that a statement wrote to a place in a tree, by way of the tree's links."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from runtime.base.os_values import workspace_path
from runtime.trees.entries import Entry, Kind
from runtime.trees.spellings import spellings
from runtime.trees.tree import Tree

MAX_LINKS = 40
"""Links that one path may lead through, as in Linux."""

OUTSIDE = "The path leads out of the workspace"


def place_of(tree: Tree, path: str, *, follow: bool = True) -> str:
    """The place that ``path`` names, be anything there or not; a last link is followed if
    ``follow``.

    Raises:
        OSError: if the path leads out, through what is no directory, or in circles.
        ValueError: if no file can have it.
    """
    if "\0" in path:
        raise ValueError("embedded null character in path")
    left = _names(without_home(workspace_path(path)), path)
    done: list[str] = []
    links = 0
    while left:
        name = left.pop(0)
        if name == "..":
            if not done:
                raise PermissionError(errno.EACCES, OUTSIDE, path)
            done.pop()
            continue
        name, entry = _there(tree, done, name)
        if entry is not None and entry.kind is Kind.LINK and (left or follow):
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            left = _names(workspace_path(entry.content), path) + left
            # An absolute link within the workspace goes on from its root.
            if entry.content.startswith("/"):
                done = []
            continue
        if entry is not None and entry.is_file and left:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        done.append(name)
    return "/".join(done)


def entry_at(tree: Tree, path: str, *, follow: bool = True) -> tuple[str, Entry]:
    """The place that ``path`` names, and what is there.

    Raises:
        OSError: as ``place_of``; and if nothing is there, or it is the workspace itself.
    """
    place = place_of(tree, path, follow=follow)
    if not place:
        raise PermissionError(errno.EPERM, "That is the workspace itself", path)
    entry = tree.get(place)
    if entry is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return place, entry


def without_home(inside: str) -> str:
    """A path relative to the workspace that may begin with ``~``, which is the workspace too."""
    if inside == "~" or inside.startswith("~/"):
        return inside[2:] or "."
    return inside


def _there(tree: Tree, above: Sequence[str], name: str) -> tuple[str, Entry | None]:
    """What is called so in a directory, by the name that it has, or nothing by that name."""
    for spelling in spellings(name):
        entry = tree.get("/".join([*above, spelling]))
        if entry is not None:
            return spelling, entry
    return name, None


def _names(inside: str, asked: str) -> list[str]:
    if inside.startswith("/"):
        raise PermissionError(errno.EACCES, OUTSIDE, asked)
    return [name for name in inside.split("/") if name not in {"", "."}]
