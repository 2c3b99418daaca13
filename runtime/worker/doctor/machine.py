"""What a worker needs of its own machine: packages, the state directory, room, keys, interpreter
and sandbox.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution, metadata, requires, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from runtime.archive.signing import SIGNING_KEY, fingerprint, signer_of
from runtime.base.disk_room import Room, room_on
from runtime.base.errors import InputError
from runtime.base.home import Home
from runtime.base.installation import installing
from runtime.base.kept_bytes import KEPT_BYTES, kept_bytes
from runtime.base.owners import is_another_users
from runtime.base.plurals import counted
from runtime.base.roles import EVERY, Role, Roles, key_names
from runtime.sandbox.sizes import told_bytes
from runtime.server.authentic import (
    KEY,
    KEYS,
    EncryptionKeys,
    encryption_keys,
    key_of,
    kms_keys,
)
from runtime.worker.doctor.altered import altered
from runtime.worker.doctor.finding import Finding, failed, good, worrying

LITTLE_BYTES = 5 << 30
"""Free space of which a worker is warned: a batch may write that in a night."""

TOO_LITTLE_BYTES = 256 << 20
"""Free space with which no batch should begin."""

TOO_FEW_FILES = 1_000
"""Files that a disk can still hold, with which no batch should begin."""

_INSTALL = installing()


def packages() -> Finding:
    """Python and the packages that Holdfast requires, as its distribution says."""
    python = ".".join(map(str, sys.version_info[:3]))
    try:
        told, wanted = requires("holdfast") or [], metadata("holdfast")["Requires-Python"]
    except PackageNotFoundError:
        return failed("versions", "holdfast is not installed", _INSTALL)
    if not SpecifierSet(wanted).contains(python):
        return failed(
            "versions",
            f"Python {python}",
            f"use Python {', '.join(sorted(wanted.split(','), reverse=True))}",
        )
    wrong = [problem for text in told if (problem := _wrong(Requirement(text)))]
    if wrong:
        return failed("versions", "; ".join(wrong), _INSTALL)
    if changed := altered(distribution("holdfast")):
        return failed(
            "versions",
            f"{counted(len(changed), 'file')} of Holdfast not as installed, the first {changed[0]}",
            f"another package may have put its own there, which -e keeps apart: {_INSTALL}",
        )
    shown = ", ".join(f"{name} {version(name)}" for name in ("temporalio", "pydantic-monty"))
    return good("versions", f"holdfast {version('holdfast')}, Python {python}, {shown}")


def _wrong(required: Requirement) -> str:
    """What is wrong with a package; nothing if it is not meant for this machine, or an extra's."""
    if required.marker is not None and not required.marker.evaluate({"extra": ""}):
        return ""
    try:
        installed = version(required.name)
    except PackageNotFoundError:
        return f"{required.name} is not installed"
    if required.specifier.contains(installed, prereleases=True):
        return ""
    return f"{required.name} is {installed}, and has to be {required.specifier}"


def state_directory(home: Home) -> Finding:
    """The state directory and the files in it that hold secrets, by their modes and owners."""
    open_ = [str(path) for path in _private(home) if _others_may(path)]
    if open_:
        return failed(
            "files",
            f"open to other users of this machine: {', '.join(open_)}",
            f"chmod -R go= {home.path}",
        )
    return good("files", f"the state directory {home.path} is this user's alone")


def _private(home: Home) -> Iterator[Path]:
    yield from (path for path in (home.path, home.server, home.database) if path.exists())


def _others_may(path: Path) -> bool:
    about = path.stat()
    return is_another_users(about) or bool(stat.S_IMODE(about.st_mode) & 0o077)


def payload_key(home: Home) -> Finding:
    """The key that payloads are signed with; by its name, workers can be compared."""
    try:
        key, keys = key_of(home), encryption_keys()
    except InputError as error:
        return failed("key", str(error))
    where = KEY if os.environ.get(KEY) else str(home.key)
    seen = f"payloads are signed with key {key.name.hex()} of {where}"
    return good("key", f"{seen}, {_encryption(keys)}")


def _encryption(keys: EncryptionKeys | None) -> str:
    if keys is None:
        return "and not encrypted"
    names = [name for name, _ in keys.keys]
    older = f", and read with {', '.join(names[1:])} too" if names[1:] else ""
    return f"encrypted with {names[0]}{older}"


def key_service() -> Finding | None:
    """Whether KMS unwraps the keys that are told to be wrapped by it, if there are some."""
    try:
        wrapped = kms_keys()
        if not wrapped:
            return None
        encryption_keys()
    except InputError as error:
        return failed("kms", str(error), f"no worker can begin until then; see {KEYS}")
    told = ", ".join(f"{name} by {kms}" for name, kms in wrapped.items())
    return good("kms", f"unwrapped: {told}")


def signing_key() -> Finding | None:
    """The key that signs ends of runs, if there is one."""
    try:
        signer = signer_of()
    except InputError as error:
        return failed("signing", str(error), f"correct {SIGNING_KEY}, or unset it")
    if signer is None:
        return None
    return good("signing", f"ends of runs are signed by {fingerprint(signer(b'').public_key)}")


def room(folders: Mapping[str, Path]) -> Finding:
    """Free space where a worker writes."""
    seen, least, files = [], LITTLE_BYTES, TOO_FEW_FILES
    for what, folder in folders.items():
        there = room_on(_existing(folder)) or Room(0, 0)
        more = "" if there.files >= TOO_FEW_FILES else f" for {counted(there.files, 'file')}"
        seen.append(f"{what} {there.bytes / 2**30:.1f} GiB free{more}")
        least, files = min(least, there.bytes), min(files, there.files)
    if least < TOO_LITTLE_BYTES or files < TOO_FEW_FILES:
        return failed("disk", ", ".join(seen), "make room")
    if least < LITTLE_BYTES:
        return worrying("disk", ", ".join(seen), "make room before a large batch")
    return good("disk", ", ".join(seen))


def _existing(folder: Path) -> Path:
    # What is not made yet will be on the disk of the nearest folder that is.
    return next(path for path in (folder, *folder.parents) if path.exists())


def workspaces(home: Home) -> Finding:
    """What is kept of the files that jobs change, and its bound."""
    from runtime.workspace.checkouts.tidying import told

    try:
        most = kept_bytes()
    except InputError as error:
        return failed("kept", str(error), f"correct {KEPT_BYTES}, or unset it")
    size, counts = told(home.workspaces)
    seen = f"{told_bytes(size)} of workspaces ({counts}), {told_bytes(most)} stay ({KEPT_BYTES})"
    if size > most:
        return worrying("kept", seen, "what is over it goes when it has not been used for a while")
    return good("kept", seen)


def interpreter() -> Finding:
    """The interpreter of statements, by a statement that it runs."""
    from runtime.interpreter import pool

    try:
        with pool.session() as session:
            session.feed_run("1 + 1")
    except (pool.NoVerdict, pool.InterpreterStopped, OSError, RuntimeError) as error:
        return failed("interpreter", f"{type(error).__name__}: {error}", "reinstall pydantic-monty")
    finally:
        with suppress(RuntimeError):
            pool.close()
    return good("interpreter", "a statement ran")


def sandbox() -> Finding:
    """The sandbox of commands, by a command that runs in it."""
    from runtime.sandbox.choice import sandbox_of
    from runtime.sandbox.command import SandboxUnavailable

    try:
        sandbox_of("auto")
    except SandboxUnavailable as error:
        return worrying("sandbox", str(error), "jobs that run commands will be refused here")
    except OSError as error:
        return failed("sandbox", f"no command could be tried: {error}", "give this process more")
    return good("sandbox", "a command ran in bubblewrap")


def provider_keys(environment: Mapping[str, str], roles: Roles = EVERY) -> Finding:
    """Whether there is a provider's key, where models are called; which are needed, a jobs file's
    check tells.
    """
    names = key_names(environment)
    if Role.MODELS not in roles:
        if names:
            return worrying(
                "models",
                f"this worker calls none, and has keys: {', '.join(names)}",
                "unset them here; they are for workers with the role models",
            )
        return good("models", "this worker calls none, and has no provider's key")
    if names:
        return good("models", f"keys: {', '.join(names)}")
    return worrying(
        "models",
        "no provider's key is in the environment",
        "set what the jobs' models need, such as OPENAI_API_KEY; scripted models need none",
    )
