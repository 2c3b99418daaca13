"""Which system calls a command may not make, as a program for the kernel (seccomp, classic BPF).

Namespaces take most of the host away; this takes what no namespace covers: keys, sockets of
families that leave the network namespace (a virtual machine's AF_VSOCK), typing into a terminal,
programs that run as their owner, the memory of other processes (so debuggers do not work), and
doors of the kernel that no command needs. Everything else is allowed.
Numbers are those of the kernel's tables, which never change.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

Instruction = tuple[int, int, int, int]

_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
"""Offsets in what the kernel lets the program read."""
_SET_ID = 0o6000
_MAKES_FILE = 0o100 | 0o20000000
"""O_CREAT, O_TMPFILE."""
_TYPING = (0x5412, 0x541C)
"""TIOCSTI, TIOCLINUX."""
_FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK."""


def _numbers(table: str) -> tuple[int, ...]:
    """The numbers of lines of ``name number,``."""
    return tuple(int(entry.split()[1]) for entry in table.split(",") if entry.strip())


@dataclass(frozen=True)
class _Calls:
    """An architecture's numbers."""

    architecture: int
    refused: tuple[int, ...]
    modes: dict[str, tuple[int, int]]
    """Calls that set a mode, and which argument it is."""
    opening: dict[str, tuple[int, int]]
    """Calls that may make a file: which argument has the flags; the mode is the next one."""
    openat2: int
    ioctl: int
    sockets: tuple[int, ...]
    others_from: int | None = None
    """Numbers from here on, a power of two, are another table's."""


_EVERYWHERE = """
    io_uring_setup 425, io_uring_enter 426, io_uring_register 427, open_tree 428, move_mount 429,
    fsopen 430, fsconfig 431, fsmount 432, fspick 433, pidfd_getfd 438, mount_setattr 442,
    quotactl_fd 443, open_tree_attr 467
"""
_X86_64 = _Calls(
    architecture=0xC000003E,
    refused=_numbers(
        """
        ptrace 101, syslog 103, pivot_root 155, chroot 161, acct 163, mount 165, umount2 166,
        swapon 167, swapoff 168, reboot 169, iopl 172, ioperm 173, init_module 175,
        delete_module 176, quotactl 179, lookup_dcookie 212, kexec_load 246, add_key 248,
        request_key 249, keyctl 250, perf_event_open 298, name_to_handle_at 303,
        open_by_handle_at 304, setns 308, process_vm_readv 310, process_vm_writev 311,
        finit_module 313, kexec_file_load 320, bpf 321, userfaultfd 323,
        """
        + _EVERYWHERE
    ),
    modes={
        "mkdir": (83, 1),
        "creat": (85, 1),
        "chmod": (90, 1),
        "fchmod": (91, 1),
        "mknod": (133, 1),
        "mkdirat": (258, 2),
        "mknodat": (259, 2),
        "fchmodat": (268, 2),
        "fchmodat2": (452, 2),
    },
    opening={"open": (2, 1), "openat": (257, 2)},
    openat2=437,
    ioctl=16,
    sockets=(41, 53),
    others_from=0x40000000,
)
_AARCH64 = _Calls(
    architecture=0xC00000B7,
    refused=_numbers(
        """
        lookup_dcookie 18, umount2 39, mount 40, pivot_root 41, chroot 51, quotactl 60, acct 89,
        kexec_load 104, init_module 105, delete_module 106, syslog 116, ptrace 117, reboot 142,
        add_key 217, request_key 218, keyctl 219, swapon 224, swapoff 225, perf_event_open 241,
        name_to_handle_at 264, open_by_handle_at 265, setns 268, process_vm_readv 270,
        process_vm_writev 271, finit_module 273, bpf 280, userfaultfd 282, kexec_file_load 294,
        """
        + _EVERYWHERE
    ),
    modes={
        "mknodat": (33, 2),
        "mkdirat": (34, 2),
        "fchmod": (52, 1),
        "fchmodat": (53, 2),
        "fchmodat2": (452, 2),
    },
    opening={"openat": (56, 2)},
    openat2=437,
    ioctl=29,
    sockets=(198, 199),
)
_KNOWN = {"x86_64": _X86_64, "aarch64": _AARCH64}


@cache
def program(machine: str = platform.machine()) -> bytes | None:
    """The program for a machine's kernel; None for an architecture whose numbers are not here."""
    calls = _KNOWN.get(machine)
    if calls is None:
        return None
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in _instructions(calls))


def _instructions(calls: _Calls) -> Iterator[Instruction]:
    """Jumps are told as how many instructions are passed over: if it holds, if not."""
    # Programs of another architecture have other numbers, and are not known here.
    yield (_LOAD, 0, 0, _ARCHITECTURE)
    yield (_EQUAL, 1, 0, calls.architecture)
    yield _refuse(errno.ENOSYS)
    yield (_LOAD, 0, 0, _NUMBER)
    if calls.others_from is not None:
        yield (_ANY_BIT, 0, 1, calls.others_from)
        yield _refuse(errno.ENOSYS)
    for number in calls.refused:
        yield (_EQUAL, 0, 1, number)
        yield _refuse(errno.EPERM)
    # Its flags are in memory, out of reach: who hears that there is no such call uses openat.
    yield (_EQUAL, 0, 1, calls.openat2)
    yield _refuse(errno.ENOSYS)
    for number, mode in calls.modes.values():
        yield from _where(number, [_argument(mode), *_refuse_bits(_SET_ID)])
    for number, flags in calls.opening.values():
        checks = [_argument(flags), (_ANY_BIT, 1, 0, _MAKES_FILE), _allow(), _argument(flags + 1)]
        yield from _where(number, [*checks, *_refuse_bits(_SET_ID)])
    typing = [check for request in _TYPING for check in _refuse_value(request)]
    yield from _where(calls.ioctl, [_argument(1), *typing])
    families = [check for family in _FAMILIES for check in ((_EQUAL, 0, 1, family), _allow())]
    for number in calls.sockets:
        yield from _where(number, [_argument(0), *families, _refuse(errno.EAFNOSUPPORT)])
    yield _allow()


def _where(number: int, checks: list[Instruction]) -> Iterator[Instruction]:
    """``checks`` for the call ``number``, which is allowed if none of them ends it."""
    yield (_EQUAL, 0, len(checks) + 1, number)
    yield from checks
    yield _allow()


def _refuse_bits(bits: int) -> list[Instruction]:
    return [(_ANY_BIT, 0, 1, bits), _refuse(errno.EPERM)]


def _refuse_value(value: int) -> list[Instruction]:
    return [(_EQUAL, 0, 1, value), _refuse(errno.EPERM)]


def _argument(index: int) -> Instruction:
    """The lower half of an argument; both architectures store it first."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _refuse(error: int) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | error)


def _allow() -> Instruction:
    return (_RETURN, 0, 0, _ALLOW)
