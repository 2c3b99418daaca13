"""What a command in bubblewrap sees of the host: the system's programs, never anyone's files.

Of ``/etc`` only what programs need to work at all, by name: a worker that is root owns, and so its
commands could read, everything there.
"""

from __future__ import annotations

import os
import platform
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

USER, UID = "user", 1000
"""Who a command thinks it is, on every host; outside the sandbox it is the worker's user."""

_TOP = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = (
    *("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone"),
    *("ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem", "pki/tls/certs", "pki/ca-trust/extracted"),
    *("ca-certificates", "ca-certificates.conf", "crypto-policies"),
    *("mime.types", "magic", "protocols", "services", "terminfo", "fonts", "perl"),
    *("os-release", "debian_version", "alpine-release", "lsb-release"),
)
_ETC_BEGIN = ("java-", "python3")
_ETC_NETWORK = ("resolv.conf", "hosts", "gai.conf", "host.conf")
_ETC_SETUP = ("pip.conf", "npmrc", "uv")
"""Where packages come from, with passwords maybe: only for what the user wrote, never the model."""
_COPIED_BYTES = 128 * 1024
_SEARCHED = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")

PASSWD = (
    f"root:x:0:0:root:/root:/bin/sh\n{USER}:x:{UID}:{UID}:{USER}:/tmp:/bin/sh\n"
    "nobody:x:65534:65534:nobody:/:/bin/false\n"
)
GROUP = f"root:x:0:\n{USER}:x:{UID}:\nnogroup:x:65534:\n"
NSSWITCH = "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n"


def described() -> str:
    """The system's name and version, and the Python that a command finds first."""
    release = Path("/etc/os-release")
    told = release.read_text("utf-8", "replace") if release.exists() else sys.platform
    return f"{platform.machine()} {sys.version_info[:3]} {python_prefix()}\n{told}"


def system_mounts(
    *, network: bool, setup: bool, opened: Callable[[str], int], etc: str = "/etc"
) -> Iterator[str]:
    """bubblewrap's options for ``/usr`` and its like, ``/etc`` (the host's ``etc``) and the Python
    outside ``/usr``; ``opened`` gives the descriptor of a file that it is to copy.
    """
    yield from ("--ro-bind", "/usr", "/usr")
    for name in _TOP:
        path = f"/{name}"
        if os.path.islink(path):  # noqa: PTH114 for each command
            yield from ("--symlink", os.readlink(path), path)  # noqa: PTH115 as above
        elif os.path.isdir(path):  # noqa: PTH112 as above
            yield from ("--ro-bind", path, path)
    # NixOS and Guix keep what /usr and /bin point to there.
    for store in ("/nix/store", "/gnu/store", "/run/current-system/sw"):
        if os.path.isdir(store):  # noqa: PTH112 as above
            yield from ("--ro-bind", store, store)
    yield from ("--perms", "0755", "--dir", "/etc")
    there = _names(etc, _changed_at(etc))
    asked = (*_ETC, *(_ETC_NETWORK if network else ()), *(_ETC_SETUP if setup else ()))
    for name in (*asked, *(name for name in there if name.startswith(_ETC_BEGIN))):
        if (link := there.get(name.partition("/")[0])) is not None:
            plain = not link and "/" not in name
            yield from _bound(f"{etc}/{name}", f"/etc/{name}", opened, plain=plain)
    if (prefix := python_prefix()) is not None:
        yield from ("--ro-bind", str(prefix), str(prefix))


def search_path(setup: str | None) -> str:
    """``PATH``: what set-up installed in ``setup``, the Python that runs Holdfast, the system."""
    prefix = python_prefix()
    own = () if prefix is None else (str(prefix / "bin"),)
    return ":".join((*(() if setup is None else (f"{setup}/bin",)), *own, *_SEARCHED))


def python_prefix() -> Path | None:
    """Where the Python that runs Holdfast is installed, if not in ``/usr`` and not so high up that
    others' files lie beneath; its virtual environment is none of a command's.
    """
    kept = [Path.cwd()]
    # A container's user may have no home.
    with suppress(RuntimeError):
        kept.append(Path.home())
    return _outside(sys.base_prefix, *kept)


@lru_cache(maxsize=16)
def _outside(base_prefix: str, *kept_from: Path) -> Path | None:
    prefix = Path(base_prefix).resolve()
    seen = any(prefix.is_relative_to(top) for top in ("/usr", "/nix/store", "/gnu/store"))
    beneath = any(kept.is_relative_to(prefix) for kept in kept_from)
    if seen or beneath or not (prefix / "bin" / "python3").exists():
        return None
    return prefix


def _changed_at(directory: str) -> int:
    """When a directory's names changed last; 0 where there is none."""
    try:
        return os.stat(directory).st_mtime_ns  # noqa: PTH116 for each command
    except OSError:
        return 0


@lru_cache(maxsize=4)
def _names(directory: str, _changed_at: int) -> dict[str, bool]:
    """What is in a directory, sorted, and whether it is a symbolic link; nothing where there is
    none.
    """
    try:
        with os.scandir(directory) as entries:
            return {one.name: one.is_symlink() for one in sorted(entries, key=lambda e: e.name)}
    except OSError:
        return {}


def _bound(source: str, path: str, opened: Callable[[str], int], *, plain: bool) -> Iterator[str]:
    """The file itself if ``source`` is a symbolic link out of ``/etc``, as that of systemd's
    resolver is; what is ``plain`` is none. One that is small is copied: a mount takes far longer.
    """
    source = source if plain else os.path.realpath(source)
    try:
        status = os.stat(source)  # noqa: PTH116 for each command
    except OSError:
        # Nothing is there, or beyond what we may enter: bubblewrap could not bind it either.
        return
    if stat.S_ISREG(status.st_mode) and status.st_size <= _COPIED_BYTES:
        try:
            copied = opened(source)
        except FileNotFoundError:
            return
        except PermissionError:
            # It is there, and can be read by nobody in the sandbox either.
            pass
        else:
            yield from ("--perms", "0444", "--file", str(copied), path)
            return
    yield from ("--ro-bind", source, path)
