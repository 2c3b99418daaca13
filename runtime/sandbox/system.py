"""What a command in bubblewrap sees of the host: the system's programs, never anyone's files.

Of ``/etc`` only what programs need to work at all, by name: a worker that is root owns, and so its
commands could read, everything there.
"""

from __future__ import annotations

import fnmatch
import os
import platform
import sys
from collections.abc import Iterator
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
_ETC_GLOBS = ("java-*", "python3*")
_ETC_NETWORK = ("resolv.conf", "hosts", "gai.conf", "host.conf")
_ETC_SETUP = ("pip.conf", "npmrc", "uv")
"""Where packages come from, with passwords maybe: only for what the user wrote, never the model."""
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


def system_mounts(*, network: bool, setup: bool) -> Iterator[str]:
    """bubblewrap's options for ``/usr`` and its like, ``/etc`` and the Python outside ``/usr``."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in _TOP:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    # NixOS and Guix keep what /usr and /bin point to there.
    for store in ("/nix/store", "/gnu/store", "/run/current-system/sw"):
        if Path(store).is_dir():
            yield from ("--ro-bind", store, store)
    yield from ("--perms", "0755", "--dir", "/etc")
    etc = Path("/etc")
    names = (*_ETC, *(_ETC_NETWORK if network else ()), *(_ETC_SETUP if setup else ()))
    for name in names:
        yield from _bound(f"{etc}/{name}")
    there = sorted(os.listdir(etc)) if etc.is_dir() else []  # noqa: PTH208 for each command
    for pattern in _ETC_GLOBS:
        for name in fnmatch.filter(there, pattern):
            yield from _bound(f"{etc}/{name}")
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
    prefix = Path(sys.base_prefix).resolve()
    seen = any(prefix.is_relative_to(top) for top in ("/usr", "/nix/store", "/gnu/store"))
    beneath = any(kept.is_relative_to(prefix) for kept in (Path.home(), Path.cwd()))
    if seen or beneath or not (prefix / "bin" / "python3").exists():
        return None
    return prefix


def _bound(path: str) -> Iterator[str]:
    """The file itself if ``path`` is a symbolic link out of ``/etc``, as that of systemd's resolver
    is.
    """
    if os.path.exists(path):  # noqa: PTH110 for each command
        yield from ("--ro-bind", os.path.realpath(path), path)
