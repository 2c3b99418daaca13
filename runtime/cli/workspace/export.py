"""``holdfast workspace export``: a version as a directory, a repository, or a trace."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.base.errors import HoldfastError, InputError
from runtime.base.plurals import counted
from runtime.base.visible import escaped
from runtime.cli.chosen import Run
from runtime.cli.files import NO_ROOM, made_whole, replaced
from runtime.cli.options import Store
from runtime.cli.output import note, say
from runtime.cli.workspace.chosen import At, JobAtVersion, chosen_version

if TYPE_CHECKING:
    from runtime.archive.forms import Step
    from runtime.trees.tree import Tree
    from runtime.workspace.git.repository import Commit


def command(
    job: JobAtVersion,
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR", help="Where to; empty, or not there yet.", show_default=False
        ),
    ] = None,
    git: Annotated[
        bool,
        typer.Option(
            "--git",
            help="DIR becomes a git repository: a commit for each statement that changed files.",
        ),
    ] = False,
    kept: Annotated[
        bool,
        typer.Option("--kept", help="Only the files that 'keep' of the job's workspace names."),
    ] = False,
    repositories: Annotated[
        bool,
        typer.Option(
            "--repositories",
            help="What is in a .git, too. Git runs what is set there, whoever wrote it.",
        ),
    ] = False,
    agent_trace: Annotated[
        Path | None,
        typer.Option(
            "--agent-trace",
            metavar="FILE",
            help="Write which lines the job wrote there: a record of Agent Trace 0.1.",
            show_default=False,
        ),
    ] = None,
    run: Run = None,
    store: Store = None,
) -> None:
    """Write the files of a job's workspace, as they were after a turn, to a directory.

    Their times are made up: the first of January 2020, and a second more for each version after the
    first. A .git is left out, and named. With --git each commit has its statement as message and
    its step as a trailer, and comes out the same each time, so 'git log -p' and 'git blame' tell
    what the job did.
    """
    plain = "--kept" if kept else "--repositories" if repositories else ""
    _check(directory, agent_trace, git=git, plain=plain)
    at = chosen_version(job, run, store)
    tree = _kept(at) if kept else at.of.trees.tree(at.version)
    if directory is not None and not repositories:
        tree = _without_repositories(tree, git=git)
    if git:
        tree = _without_refused_links(tree)
    # Opened first: where it cannot be written nothing else is.
    with nullcontext() if agent_trace is None else replaced(agent_trace) as trace:
        revision = "" if directory is None else _write(at, tree, directory, git=git)
        if trace is not None:
            text = json.dumps(_trace(at, revision), indent=2, ensure_ascii=False)
            trace.write(f"{text}\n".encode())
    _tell(f"{at.of.name}@{at.turn}", tree, directory, agent_trace)


def _tell(name: str, tree: Tree, directory: Path | None, agent_trace: Path | None) -> None:
    if directory is not None:
        say(f"{name}: {counted(tree.count, 'file')}, {tree.size:,} bytes in {directory}")
    if agent_trace is not None:
        say(f"{name}: traced in {agent_trace}")


def _check(directory: Path | None, agent_trace: Path | None, *, git: bool, plain: str) -> None:
    """See that there is something to write, and nothing in its place. ``plain`` is the option
    that wants a plain DIR, if one does.

    Raises:
        InputError: if there is not.
    """
    if directory is None and (git or agent_trace is None):
        raise InputError("name the DIR to write to, or a FILE with --agent-trace")
    if plain and (git or directory is None):
        raise InputError(f"{plain} is of a plain DIR")
    if directory is not None:
        check_empty(directory)
    # A link counts as well, also one that leads nowhere.
    if agent_trace is not None and os.path.lexists(agent_trace):
        raise InputError(f"{agent_trace} is there already: name another file")


def check_empty(directory: Path) -> None:
    """See that nothing would be lost there.

    Raises:
        InputError: if it is no directory, or something is in it.
    """
    try:
        with os.scandir(directory) as entries:
            if next(entries, None) is not None:
                raise InputError(
                    f"{directory} is not empty: name a directory that is not there yet"
                )
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"{directory}: {error.strerror}") from error


def _kept(at: At) -> Tree:
    """What of a version the job hands over."""
    from runtime.trees.tree import Tree
    from runtime.workspace.left import keep_of, kept_in

    tree, patterns = at.of.trees.tree(at.version), keep_of(at.of.archive.definition())
    if not patterns:
        raise InputError(f"{at.of.name} keeps nothing: its 'workspace' has no 'keep'")
    return Tree().changed({path: tree.get(path) for path in kept_in(tree, patterns)})


def _without_repositories(tree: Tree, *, git: bool) -> Tree:
    """A tree without its ``.git``s, each of which is told."""
    from runtime.trees.entries import shown
    from runtime.workspace.git.repository import repositories_in, without_repositories

    why = (
        "no repository can hold another's own files"
        if git
        else "git runs what is set there; --repositories writes it"
    )
    for path in repositories_in(path for path, _ in tree.under()):
        note(f"{escaped(shown(path))} is left out: {why}")
    return without_repositories(tree)


def _without_refused_links(tree: Tree) -> Tree:
    """A tree without links that no repository can hold, each of which is told."""
    from runtime.trees.entries import shown
    from runtime.workspace.git.objects import LINK_REFUSED
    from runtime.workspace.git.repository import refused_links

    refused = refused_links(tree)
    for path in refused:
        note(f"{escaped(shown(path))} is left out: {LINK_REFUSED}")
    return tree.changed(dict.fromkeys(refused))


def _write(at: At, tree: Tree, directory: Path, *, git: bool) -> str:
    """Write a version's files, or the repository up to it; its revision, if it has one.

    Raises:
        InputError: if nothing can be written there.
        HoldfastError: if there is no room.
    """
    from pygit2 import GitError

    place = directory
    try:
        with made_whole(directory) as place:
            return _write_repository(at, place) if git else _lay_out(at, tree, place)
    except OSError as error:
        kind = HoldfastError if error.errno in NO_ROOM else InputError
        where = escaped(str(error.filename or directory))
        raise kind(f"{where} cannot be written: {error.strerror}") from error
    # It says itself what it could not do, and has no number of the system's.
    except GitError as error:
        what = str(error).replace(str(place), str(directory))
        # It has no words for a write that came to less than was to be written.
        what = what if what != "no error" else "a write was cut short, as by a full disk"
        raise HoldfastError(f"{directory} cannot be written: {what}") from error


def _lay_out(at: At, tree: Tree, directory: Path) -> str:
    """Write a version's files. It has no revision."""
    from runtime.trees.tree import Tree
    from runtime.workspace.checkouts.laying import lay, write_file

    trees = at.of.trees
    directory.mkdir(parents=True, exist_ok=True)
    lay(
        directory,
        Tree().difference(tree),
        tree,
        lambda place, entry: write_file(place, entry, trees.content(entry)),
    )
    return ""


def _write_repository(at: At, directory: Path) -> str:
    from runtime.workspace.git.repository import write_repository

    return write_repository(directory, at.of.trees, _commits(at))


def _commits(at: At) -> Iterator[Commit]:
    """A commit for what the job began with, and one for each statement that changed something."""
    from runtime.cli.turns import form_of, statement_of
    from runtime.workspace.git.repository import Commit, statement_message

    history = at.of.history
    batch, _, name = history.name.partition("/")
    # A name that is nobody's mailbox: ``.invalid``, which is added below, is kept free (RFC 2606).
    email = "@".join(re.sub(r"[^\w.-]+", "-", part, flags=re.ASCII) for part in (name, batch))
    turns = [one for one in history.turns if one.turn <= at.turn]
    first = turns[0].step.started_at if turns else ""
    began = f"What the job began with\n\nHoldfast-Job: {history.name} {at.of.run}\n"
    yield Commit(history.base, "holdfast", f"{email}.invalid", first, began)
    form = form_of(at.of.archive)
    for one in turns:
        if one.before != one.after:
            source = statement_of(form, one.step)[0] or ""
            message = statement_message(source, one.step.ref.key, one.step.ref.digest)
            model, moment = _model(at, one.step), one.step.finished_at
            yield Commit(one.after, model, f"{email}.invalid", moment, message)


def _trace(at: At, revision: str) -> dict[str, Any]:
    from runtime.cli.version import version
    from runtime.workspace.git.agent_trace import trace_record

    turns = [one for one in at.of.history.turns if one.turn <= at.turn]
    return trace_record(
        at.of.trees,
        at.of.history,
        at.turn,
        run=at.of.run,
        models={one.turn: _model(at, one.step) for one in turns},
        at=turns[-1].step.finished_at if turns else "1970-01-01T00:00:00Z",
        tool=version(),
        revision=revision,
    )


def _model(at: At, step: Step) -> str:
    """The model that was asked; of a scripted one not where its file is on some machine."""
    from runtime.archive.forms import Attempt
    from runtime.base.spec.models import SCRIPTED

    attempt = Attempt.read(at.of.archive.objects.get(step.attempt.key, "attempt"))
    name = str(attempt.model.get("name", ""))
    return f"{SCRIPTED}{Path(name).name}" if name.startswith(SCRIPTED) else name
