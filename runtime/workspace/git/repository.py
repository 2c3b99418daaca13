"""A real repository of what became of a workspace: a commit for what the job began with, and one
for each statement that changed files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pygit2

from runtime.archive.trees import Trees
from runtime.trees.entries import Entry
from runtime.trees.tree import Tree
from runtime.workspace.checkouts.laying import lay, write_file
from runtime.workspace.git.objects import GitObjects, is_own, is_refused, own_settings

STEP_TRAILER = "Holdfast-Step"
_HEAD = "main"


@dataclass(frozen=True)
class Commit:
    """A version, who made it, when (ISO 8601), and the message."""

    version: str
    author: str
    email: str
    at: str
    message: str


def statement_message(source: str, key: str, digest: str) -> str:
    """The message of a statement's commit: its first line, the whole of it if it has more, and its
    step as a trailer.
    """
    lines = [line.rstrip() for line in _printable(source).splitlines()]
    subject = next((line.strip() for line in lines if line.strip()), "(no statement)")
    whole = "\n".join(lines).strip("\n")
    body = f"\n\n{whole}" if whole.strip() != subject else ""
    return f"{subject}{body}\n\n{STEP_TRAILER}: {key} {digest}\n"


def write_repository(folder: Path, trees: Trees, commits: Iterable[Commit]) -> str:
    """Make a repository at ``folder``, with the last version's files beside it; the id of the last
    commit.

    A commit whose files git sees as those of the one before is left out: git has no empty
    directories, and of modes only whether a file can be run. The same commits come out each time.

    Raises:
        OSError: if the host refuses.
    """
    own_settings()
    folder.mkdir(parents=True, exist_ok=True)
    repository = pygit2.init_repository(str(folder), initial_head=_HEAD)
    # In the repository's own settings: its next user's git must not change line ends.
    repository.config["core.autocrlf"] = False
    objects = GitObjects(repository, trees.content)
    parents: list[pygit2.Oid] = []
    before, last = None, Tree()
    for commit in commits:
        last = trees.tree(commit.version)
        # A repository within is left out: git refuses paths with a .git in them.
        tree = objects.tree(last, whole=False)
        if tree == before:
            continue
        before = tree
        signature = pygit2.Signature(
            _name(commit.author) or "holdfast", _name(commit.email), _seconds(commit.at), 0
        )
        made = repository.create_commit(
            f"refs/heads/{_HEAD}", signature, signature, commit.message, tree, parents
        )
        parents = [made]
    held = without_repositories(last)
    _lay_out(folder, trees, held.changed(dict.fromkeys(refused_links(held))))
    if before is not None:
        repository.index.read_tree(before)
        repository.index.write()
    return str(parents[0]) if parents else ""


def _lay_out(folder: Path, trees: Trees, tree: Tree) -> None:
    def put(place: str, entry: Entry) -> None:
        write_file(place, entry, trees.content(entry))

    lay(folder, Tree().difference(tree), tree, put)


def without_repositories(tree: Tree) -> Tree:
    """A tree without its ``.git``s."""
    return tree.changed(dict.fromkeys(repositories_in(path for path, _ in tree.under())))


def refused_links(tree: Tree) -> list[str]:
    """The links of a tree without ``.git``s that git refuses for their names."""
    return [path for path, entry in tree.under() if is_refused(path, entry)]


def repositories_in(paths: Iterable[str]) -> list[str]:
    """The ``.git``s that some paths lead to or into, each once: no repository can hold them."""
    return list(dict.fromkeys(filter(None, map(repository_of, paths))))


def repository_of(path: str) -> str | None:
    """The first ``.git`` that a path leads to or into."""
    names = path.split("/")
    own = (place for place, name in enumerate(names, 1) if is_own(name))
    place = next(own, None)
    return None if place is None else "/".join(names[:place])


def _seconds(at: str) -> int:
    return int(datetime.fromisoformat(at).timestamp()) if at else 0


def _name(text: str) -> str:
    """A name as git takes it."""
    return re.sub(r"[<>\n]+", " ", _printable(text)).strip(" .,:;\"'")


def _printable(text: str) -> str:
    """A text that git can hold: no NUL, no lone surrogate."""
    return os.fsdecode(text.encode("utf-8", "backslashreplace")).replace("\0", "\\0")
