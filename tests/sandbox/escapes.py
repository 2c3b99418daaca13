"""The ways out of a sandbox that commands try here, and what refuses each.

A try is Python, or a shell command. It prints ``ESCAPED`` where it gets somewhere, and the error
where it does not. ``docs/sandbox.md`` has the table, from here; ``python -m tests.sandbox.escapes``
tries all as the user that runs it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from runtime.sandbox.choice import sandbox_of
from runtime.sandbox.command import Command, Limits, Place

MARK = "the-workers-own-secret"
MIB = 1024 * 1024


@dataclass(frozen=True)
class Escape:
    """One try."""

    name: str
    """Names the test."""
    tried: str
    refused_by: str
    says: str
    """What it prints, as a pattern; ``stopped:`` what ended it."""
    python: str = ""
    shell: str = ""
    limits: Limits = field(default_factory=Limits)
    env: dict[str, str] = field(default_factory=dict)
    """Variables of the command, with STATE for the state directory."""

    def command(self, env: dict[str, str]) -> Command:
        """The try, given where things are on the host."""
        own = {name: value.replace("STATE", env["STATE"]) for name, value in self.env.items()}
        return Command(self.shell or _wrapped(self.python), env={**env, **own}, limits=self.limits)


def _wrapped(body: str) -> str:
    body = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return (
        "exec python3 - <<'END'\n"
        "import ctypes, errno, fcntl, os, pty, resource, signal, socket, struct, sys, threading\n"
        "from os import environ as E\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "ARM = os.uname().machine == 'aarch64'\n"
        "def called(result):\n"
        "    if result == -1:\n"
        "        number = ctypes.get_errno()\n"
        "        raise OSError(number, os.strerror(number))\n"
        "def system_call(x86, arm, *args):\n"
        "    called(libc.syscall(arm if ARM else x86, *args))\n"
        f"try:\n{body}\n"
        "except Exception as error:\n"
        "    name = errno.errorcode.get(getattr(error, 'errno', None), type(error).__name__)\n"
        "    print('refused:', name)\n"
        "else:\n"
        "    print('ESCAPED')\n"
        "END"
    )


NO_FILE, ONLY_READ, NOT_ALLOWED = "refused: ENOENT", "refused: EROFS", "refused: EPERM"
READ_ONLY = "refused: (EROFS|EACCES)"

FILES = (
    Escape(
        "write-outside",
        "write a file beside the workspace, by its path on the host",
        "mount namespace: only what is listed above is there",
        NO_FILE,
        "open(E['STATE'] + '/planted', 'w')",
    ),
    Escape(
        "dots-out",
        "leave the workspace through `..`",
        "mount namespace: above is the sandbox's own root",
        NO_FILE,
        "open('../../../../../..' + E['STATE'] + '/planted', 'w')",
    ),
    Escape(
        "write-system",
        "write to `/usr`",
        "read-only mount",
        READ_ONLY,
        "open('/usr/bin/planted', 'w')",
    ),
    Escape(
        "write-root",
        "write to `/`, `/etc`, `/dev` or `/run`, which are memory",
        "read-only mounts: only the workspace, `/tmp`, `/dev/shm` can be written",
        ONLY_READ,
        """
        for place in ("/", "/etc", "/dev", "/run", "/var", "/run/holdfast", "/home"):
            try:
                open(place + "/planted", "w")
            except OSError as error:
                if error.errno not in (errno.EROFS, errno.ENOENT):
                    raise
            else:
                print("ESCAPED", place)
        open("/planted", "w")
        """,
    ),
    Escape(
        "read-state",
        "read the state directory and the archive",
        "mount namespace",
        NO_FILE,
        "open(E['STATE'] + '/secret').read()",
    ),
    Escape(
        "read-home",
        "read the home directory of the worker's user",
        "mount namespace: of the home only the way to a Python that is installed in it",
        NO_FILE,
        """
        way = [part for part in E["PATH"].split(":") if part.startswith(E["REAL_HOME"] + "/")]
        first = {part[len(E["REAL_HOME"]) + 1:].split("/")[0] for part in way}
        print(*sorted(set(os.listdir(E["REAL_HOME"])) - first), file=sys.stderr)
        if not set(os.listdir(E["REAL_HOME"])) - first:
            raise FileNotFoundError(errno.ENOENT, "nothing there")
        """,
    ),
    Escape(
        "read-passwords",
        "read `/etc/shadow`, `/etc/ssl/private`, keys of the host's ssh",
        "mount namespace: of `/etc` only what is listed above",
        NO_FILE,
        """
        for path in ("/etc/ssh", "/etc/ssl/private", "/etc/gshadow", "/root/.ssh", "/var/lib"):
            if os.path.exists(path):
                print("ESCAPED", path)
        open("/etc/shadow")
        """,
    ),
    Escape(
        "symbolic-link",
        "read through a symbolic link to the host's path",
        "mount namespace: the link leads to nothing; it comes through as a link",
        NO_FILE,
        "os.symlink(E['STATE'] + '/secret', 'link'); open('link').read()",
    ),
    Escape(
        "hard-link",
        "link a file of the system or of the host into the workspace",
        "mount namespace: links do not cross mounts",
        "refused: (EXDEV|EPERM)",
        """
        try:
            os.link(E["STATE"] + "/secret", "hard")
        except FileNotFoundError:
            os.link("/usr/bin/env", "hard")
        """,
    ),
    Escape(
        "set-user-id",
        "make a program that runs as its owner, to be found on the host: `chmod 4755`",
        "system call filter; `no_new_privs` in the sandbox; versions hold no such mode",
        NOT_ALLOWED,
        """
        open("program", "w").close()
        for mode in (0o4755, 0o2755, 0o6755):
            for change in (
                lambda: os.chmod("program", mode),
                lambda: os.fchmod(os.open("program", os.O_RDONLY), mode),
                lambda: os.open("other", os.O_CREAT | os.O_WRONLY, mode),
                lambda: os.mknod("another", mode),
                lambda: system_call(452, 452, -100, b"program", mode, 0),
            ):
                try:
                    change()
                except OSError as error:
                    if error.errno not in (errno.EPERM, errno.ENOSYS):
                        raise
                else:
                    print("ESCAPED")
        os.chmod("program", 0o4755)
        """,
    ),
    Escape(
        "become-root",
        "become root, or get privileges from a set-user-id program of the system",
        "user namespace without root in it; `no_new_privs`; no capabilities, none to be had",
        "refused: (EPERM|EINVAL)",
        """
        status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines())
        if status["NoNewPrivs"] != "1" or int(status["CapBnd"], 16) or int(status["CapPrm"], 16):
            print("ESCAPED")
        os.setuid(0)
        """,
    ),
    Escape(
        "device",
        "make a device file, or open a disk, the memory or the kernel's log",
        "user namespace; a `/dev` with nothing but null, zero, full, random, tty, ptys",
        NOT_ALLOWED,
        """
        import stat
        for name in ("mem", "kmsg", "sda", "vda", "nvme0n1", "kvm", "fuse", "net/tun", "vsock"):
            if os.path.exists("/dev/" + name):
                print("ESCAPED", name)
        try:
            os.mknod("disk", stat.S_IFBLK | 0o600, os.makedev(254, 0))
        except PermissionError:
            os.mknod("zero", stat.S_IFCHR | 0o600, os.makedev(1, 5))
        """,
    ),
    Escape(
        "mount",
        "mount, unmount or remount something, change the root",
        "system call filter; no capabilities",
        NOT_ALLOWED,
        """
        tries = (
            lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
            lambda: libc.mount(None, b"/usr", None, 0x1020, None),
            lambda: libc.umount2(b"/proc", 2),
            lambda: libc.chroot(b"/tmp"),
            lambda: libc.syscall(428, -100, b"/", 1),
        )
        for attempt in tries[1:]:
            if attempt() != -1:
                print("ESCAPED")
        called(tries[0]())
        """,
    ),
    Escape(
        "user-namespace",
        "get capabilities in a user namespace of its own, or enter another's",
        "bubblewrap's `--disable-userns`; system call filter",
        "refused: (ENOSPC|EPERM)",
        """
        if libc.setns(os.open("/proc/1/ns/net", os.O_RDONLY), 0) != -1:
            print("ESCAPED")
        called(libc.unshare(0x10000000))
        """,
    ),
)

PROCESSES = (
    Escape(
        "workers-environment",
        "read the worker's environment, by its id or that of any process",
        "process namespace",
        NO_FILE,
        """
        for pid in [name for name in os.listdir("/proc") if name.isdigit()]:
            try:
                if E["MARK"].encode() in open(f"/proc/{pid}/environ", "rb").read().replace(
                    b"MARK=" + E["MARK"].encode(), b""
                ):
                    print("ESCAPED", pid)
            except PermissionError:
                pass
        open(f"/proc/{E['WORKER']}/environ")
        """,
    ),
    Escape(
        "parents-environment",
        "read `/proc/1/environ` and `/proc/PPID/environ`",
        "bubblewrap itself is given no environment",
        "refused: nothing in them",
        shell="""
        found=$(cat /proc/1/environ /proc/$PPID/environ | tr '\\0' '\\n' | grep -v ^MARK=)
        case "$found" in *"$MARK"*|*HOLDFAST*) echo ESCAPED;; *) echo 'refused: nothing in them';;
        esac
        """,
    ),
    Escape(
        "signal",
        "send signals to the worker, and to everyone",
        "process namespace",
        "refused: ESRCH",
        """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            os.kill(-1, signal.SIGTERM)
        except ProcessLookupError:
            pass
        os.kill(int(E["WORKER"]), signal.SIGKILL)
        """,
    ),
    Escape(
        "ptrace",
        "trace a process, or read its memory, the sandbox's first one included",
        "process namespace; system call filter; `/proc` read-only",
        NOT_ALLOWED,
        """
        for pid in (1, int(E["WORKER"])):
            if libc.ptrace(16, pid, 0, 0) != -1:
                print("ESCAPED")
            try:
                open(f"/proc/{pid}/mem", "r+b")
            except OSError:
                pass
            else:
                print("ESCAPED")
        called(libc.ptrace(16, 1, 0, 0))
        """,
    ),
    Escape(
        "proc-root",
        "reach the host through `/proc/1/root`, `/proc/self/cwd`, `/proc/1/fd`",
        "process and mount namespaces: they lead to the sandbox's own",
        NO_FILE,
        """
        for way in ("/proc/1/root", "/proc/self/root", "/proc/self/cwd/../.."):
            if os.path.exists(way + E["STATE"]):
                print("ESCAPED", way)
        for name in os.listdir("/proc/1/fd"):
            if os.readlink("/proc/1/fd/" + name).startswith("/") and "memfd" not in os.readlink(
                "/proc/1/fd/" + name
            ):
                print("ESCAPED", name)
        open("/proc/1/root" + E["STATE"] + "/secret")
        """,
    ),
    Escape(
        "kernel-settings",
        "change the kernel's settings in `/proc/sys`, `/sys` or a cgroup (a worker that is root)",
        "`/proc` mounted read-only as a whole; no `/sys`",
        READ_ONLY,
        """
        for path in ("/sys", "/sys/fs/cgroup", "/proc/sysrq-trigger"):
            try:
                os.listdir(path) if path.startswith("/sys") else open(path, "w")
            except OSError:
                pass
            else:
                print("ESCAPED", path)
        setting = "/proc/sys/kernel/core_pattern"
        open(setting, "r+").write(open(setting).read())
        """,
    ),
    Escape(
        "outlive",
        "outlive the command: `setsid`, `nohup`, two forks, deaf to signals",
        "process namespace: with its first process the kernel ends all",
        "done",
        shell="""
        trap '' TERM HUP INT
        setsid nohup sh -c 'trap "" TERM HUP; while :; do sleep 1; done' "$MARK" >/dev/null 2>&1 &
        (setsid sh -c 'while :; do sleep 1; done' "$MARK" >/dev/null 2>&1 & ) &
        echo done
        """,
    ),
    Escape(
        "fork-bomb",
        "start processes without end",
        "a limit of the kernel's; counted by the worker, which ends all at once",
        "(stopped: it had more than 100 processes|.*Resource temporarily unavailable)",
        shell="bomb() { bomb | bomb & }; bomb; sleep 3; echo over >&2",
        limits=Limits(processes=100, seconds=20),
    ),
    Escape(
        "raise-limits",
        "raise its own limits",
        "they are hard limits, and it has no capability",
        "refused: (ValueError|EPERM|PermissionError)",
        """
        for kind in (resource.RLIMIT_FSIZE, resource.RLIMIT_DATA):
            try:
                resource.setrlimit(kind, (resource.RLIM_INFINITY,) * 2)
            except ValueError:
                pass
            else:
                print("ESCAPED")
        resource.setrlimit(resource.RLIMIT_NPROC, (10**6,) * 2)
        """,
    ),
)

NETWORK = (
    Escape(
        "hosts-ports",
        "reach a port of the host's loopback, as that of the worker's Temporal server",
        "network namespace",
        "refused: ECONNREFUSED",
        "socket.create_connection(('127.0.0.1', int(E['PORT'])), 5)",
    ),
    Escape(
        "internet",
        "reach any other address, by TCP or UDP",
        "network namespace with nothing but its own loopback",
        "refused: ENETUNREACH",
        """
        try:
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53))
        except OSError:
            socket.create_connection(("192.0.2.1", 80), 5)
        """,
    ),
    Escape(
        "abstract-socket",
        "reach a socket in the host's abstract names",
        "network namespace",
        "refused: ECONNREFUSED",
        "socket.socket(socket.AF_UNIX).connect('\\0' + E['ABSTRACT'])",
    ),
    Escape(
        "socket-file",
        "reach a socket by its path on the host, as that of Docker or ssh-agent",
        "mount namespace",
        NO_FILE,
        """
        if os.path.exists("/var/run/docker.sock") or os.path.exists("/run/dbus"):
            print("ESCAPED")
        socket.socket(socket.AF_UNIX).connect(E["STATE"] + "/socket")
        """,
    ),
    Escape(
        "other-families",
        "leave by another family of sockets: a virtual machine's, raw packets, the kernel's ciphers",
        "system call filter: there is AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK",
        "refused: EAFNOSUPPORT",
        """
        for family in (38, 17, 31, 42):
            try:
                socket.socket(family, socket.SOCK_RAW)
            except OSError:
                pass
            else:
                print("ESCAPED", family)
        socket.socket(40, socket.SOCK_STREAM)
        """,
    ),
)

KERNEL = (
    Escape(
        "type-into-terminal",
        "type into a terminal: TIOCSTI",
        "a session without a terminal; system call filter",
        NOT_ALLOWED,
        """
        try:
            open("/dev/tty")
        except OSError:
            pass
        else:
            print("ESCAPED")
        fcntl.ioctl(pty.openpty()[1], 0x5412, b"x")
        """,
    ),
    Escape(
        "keys",
        "read or add keys of the kernel's keyrings",
        "system call filter",
        NOT_ALLOWED,
        """
        for numbers, args in (((248, 217), (b"user", b"x", b"x", 1, -3)), ((249, 218), (0, 0, 0, 0))):
            try:
                system_call(*numbers, *args)
            except PermissionError:
                pass
            else:
                print("ESCAPED")
        system_call(250, 219, 0, -3, 0)
        """,
    ),
    Escape(
        "doors-of-the-kernel",
        "use `bpf`, `userfaultfd`, `io_uring`, `perf_event_open`, the kernel's log, modules",
        "system call filter",
        NOT_ALLOWED,
        """
        calls = ((321, 280), (323, 282), (425, 425), (103, 116), (175, 105), (304, 265))
        for numbers in calls:
            try:
                system_call(*numbers, 0, 0, 0, 0, 0)
            except PermissionError:
                pass
            else:
                print("ESCAPED", numbers)
        system_call(298, 241, 0, 0, 0, 0, 0)
        """,
    ),
    Escape(
        "loader-variables",
        "have the sandbox's own program load or write something: LD_PRELOAD, LD_DEBUG_OUTPUT",
        "it is started without the command's variables, which are set inside",
        "(?s).*refused: only in the sandbox",
        shell="/bin/true; echo 'refused: only in the sandbox'",
        env={"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": "STATE/planted"},
    ),
)

USE = (
    Escape(
        "memory",
        "use more memory than it may, in one process",
        "a limit of the kernel's",
        "refused: MemoryError",
        "bytearray(400 << 20)",
        limits=Limits(memory_bytes=200 * MIB),
    ),
    Escape(
        "memory-of-many",
        "use more memory than it may, over many processes",
        "counted by the worker",
        "stopped: its processes used more than 200 MiB of memory",
        """
        for _ in range(6):
            if os.fork() == 0:
                held = bytearray(b"x") * (60 << 20)
                signal.pause()
        signal.pause()
        """,
        limits=Limits(memory_bytes=200 * MIB, seconds=30),
    ),
    Escape(
        "memory-files",
        "keep memory in files of `/tmp`, of `/dev/shm`, or without a name",
        "each is bounded; counted by the worker",
        "stopped: its processes used more than 200 MiB of memory",
        """
        for directory in ("/tmp", "/dev/shm"):
            with open(directory + "/kept", "wb") as file:
                for _ in range(80):
                    file.write(bytes(1 << 20))
        held = os.memfd_create("kept")
        for _ in range(80):
            os.write(held, bytes(1 << 20))
        signal.pause()
        """,
        limits=Limits(memory_bytes=200 * MIB, seconds=30),
    ),
    Escape(
        "memory-dropped",
        "keep memory that is shared, and that no process has in its tables at the moment",
        "counted by the worker: what is mapped without a name",
        "stopped: its processes used more than 64 MiB of memory",
        """
        import mmap
        shared = mmap.mmap(-1, 300 << 20)
        for start in range(0, 300 << 20, 4 << 20):
            shared[start:start + (4 << 20)] = bytes([1]) * (4 << 20)
            shared.madvise(mmap.MADV_DONTNEED, start, 4 << 20)
        signal.pause()
        """,
        limits=Limits(memory_bytes=64 * MIB, seconds=30),
    ),
    Escape(
        "memory-of-threads",
        "use more memory in a process whose first thread has ended",
        "counted by the worker: by the next thread",
        "stopped: its processes used more than 100 MiB of memory",
        """
        import mmap
        def work():
            shared = mmap.mmap(-1, 200 << 20)
            for start in range(0, 200 << 20, 1 << 20):
                shared[start:start + (1 << 20)] = bytes([1]) * (1 << 20)
            signal.pause()
        threading.Thread(target=work).start()
        system_call(60, 93, 0)
        """,
        limits=Limits(memory_bytes=100 * MIB, seconds=30),
    ),
    Escape(
        "disk",
        "fill the disk",
        "counted by the worker, more often the faster the disk fills",
        "stopped: it wrote more than 64 MiB",
        """
        for number in range(400):
            with open(str(number), "wb") as file:
                file.write(bytes(1 << 20))
        signal.pause()
        """,
        limits=Limits(disk_bytes=64 * MIB, seconds=30),
    ),
    Escape(
        "disk-unseen",
        "fill the disk with files that are deleted and kept open",
        "counted by the worker",
        "stopped: it wrote more than 64 MiB",
        """
        kept = []
        for number in range(20):
            kept.append(open("deleted", "wb"))
            os.unlink("deleted")
            for _ in range(20):
                kept[-1].write(bytes(1 << 20))
        signal.pause()
        """,
        limits=Limits(disk_bytes=64 * MIB, seconds=30),
    ),
    Escape(
        "disk-deep",
        "fill the disk below a path that is longer than the kernel takes",
        "counted by the worker, which opens directories one in the other",
        "stopped: it wrote more than 64 MiB",
        """
        for _ in range(40):
            os.mkdir("d" * 250)
            os.chdir("d" * 250)
        with open("file", "wb") as file:
            for _ in range(100):
                file.write(bytes(1 << 20))
        signal.pause()
        """,
        limits=Limits(disk_bytes=64 * MIB, seconds=30),
    ),
    Escape(
        "disk-hidden",
        "fill the disk in directories that nobody may list, or look into",
        "counted by the worker, which opens them to itself for that moment",
        "stopped: it wrote more than 64 MiB",
        """
        for mode in (0o300, 0o400):
            os.mkdir(str(mode))
            with open(f"{mode}/file", "wb") as file:
                os.chmod(str(mode), mode)
                for _ in range(40):
                    file.write(bytes(1 << 20))
        signal.pause()
        """,
        limits=Limits(disk_bytes=64 * MIB, seconds=30),
    ),
    Escape(
        "empty-files",
        "fill the disk with files that have nothing in them",
        "counted by the worker: 1 KiB each",
        "stopped: it wrote more than 2 MiB",
        """
        for number in range(3000):
            open(str(number), "w").close()
        signal.pause()
        """,
        limits=Limits(disk_bytes=2 * MIB, seconds=30),
    ),
    Escape(
        "long-file",
        "write a longer file than it may, or one with holes",
        "a limit of the kernel's",
        "refused: EFBIG",
        """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            open("holes", "w").truncate(1 << 40)
        except OSError:
            with open("long", "wb") as file:
                for _ in range(40):
                    file.write(bytes(1 << 20))
        """,
        limits=Limits(file_bytes=32 * MIB),
    ),
    Escape(
        "endless-output",
        "print without end",
        "counted by the worker; what is kept is bounded",
        "stopped: it printed more than 1 MiB",
        shell="yes ESCAPING; echo ESCAPED",
        limits=Limits(output_bytes=MIB),
    ),
    Escape(
        "endless-time",
        "run without end, deaf to signals",
        "ended by the worker",
        "stopped: it ran for more than 0.5 s",
        shell="trap '' TERM INT HUP; while :; do :; done",
        limits=Limits(seconds=0.5),
    ),
    Escape(
        "long-names",
        "leave names and paths that nobody can read or delete",
        "the kernel's limits; paths of more than 200 names or 3,072 bytes are dropped, and all can be"
        " deleted",
        "refused: ENAMETOOLONG",
        """
        for _ in range(300):
            os.mkdir("d" * 255)
            os.chdir("d" * 255)
        open("d" * 256, "w")
        """,
    ),
)

ESCAPES = (*FILES, *PROCESSES, *NETWORK, *KERNEL, *USE)


@dataclass(frozen=True)
class World:
    """What a command must not reach, on this host."""

    top: Path
    worker: subprocess.Popen[bytes]
    env: dict[str, str]
    touched: list[str]

    @property
    def state(self) -> Path:
        """The state directory."""
        return self.top / "state"

    def harm(self) -> list[str]:
        """What a command did to it."""
        found = list(self.touched)
        if self.worker.poll() is not None:
            found.append("the worker is gone")
        if sorted(path.name for path in self.state.iterdir()) != ["secret", "socket"]:
            found.append("something is in the state directory that was not")
        if (self.state / "secret").read_text() != MARK:
            found.append("the secret was changed")
        return found


@contextmanager
def world(top: Path) -> Iterator[World]:
    """A worker with a secret in its environment, a state directory, a server on a port, sockets."""
    state = top / "state"
    state.mkdir()
    (state / "secret").write_text(MARK)
    abstract = f"holdfast-{os.getpid()}-{top.name}"
    touched: list[str] = []
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        _listening(state / "socket") as by_path,
        _listening(f"\0{abstract}") as by_name,
        subprocess.Popen(["sleep", "3600"], env={"PROVIDER_KEY": MARK}) as worker,
    ):
        for server in (tcp, by_path, by_name):
            threading.Thread(target=_note, args=(server, touched), daemon=True).start()
        env = {
            "STATE": str(state),
            "REAL_HOME": str(Path.home()),
            "WORKER": str(worker.pid),
            "MARK": MARK,
            "PORT": str(tcp.getsockname()[1]),
            "ABSTRACT": abstract,
        }
        try:
            yield World(top, worker, env, touched)
        finally:
            worker.kill()
            for server in (tcp, by_path, by_name):
                server.shutdown(socket.SHUT_RDWR)


def _listening(address: str | Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(address))
    server.listen()
    return server


def _note(server: socket.socket, touched: list[str]) -> None:
    try:
        server.accept()[0].close()
    except OSError:
        return
    touched.append("a server was reached")


def tried(escape: Escape, around: World, directory: Path) -> str:
    """What came of a try: nothing, or how it is not as the table says."""
    (workspace := directory / "workspace").mkdir()
    finished = sandbox_of("bwrap").run(
        escape.command(around.env),
        Place(directory=workspace),
        directory / "stdout",
        directory / "stderr",
        on_beat=lambda _: None,
        stop=threading.Event(),
    )
    printed = (directory / "stdout").read_text()
    errors = (directory / "stderr").read_text()
    said = f"stopped: {finished.stopped}" if finished.stopped else (printed or errors).strip()
    left = running(MARK) if escape.name == "outlive" else []
    if "ESCAPED" in printed or not re.match(escape.says + r"(\n|$)", said):
        return f"{escape.name}: {said[-500:]} {errors[-2000:]}"
    return "; ".join([*around.harm(), *left])


def running(mark: str) -> list[str]:
    """Processes on the host whose last argument is ``mark``."""
    found = []
    # Not by a glob: it fails where a process ends between two of its looks (Python 3.11).
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if entry.name.isdigit() and words[-2:] == [mark.encode(), b""]:
                found.append(entry.name)
    return found


def table() -> str:
    """The table of ``docs/sandbox.md``."""
    rows = [f"| {escape.tried} | {escape.refused_by} | `{escape.name}` |" for escape in ESCAPES]
    return "\n".join(["| tried | refused by | test |", "|---|---|---|", *rows]) + "\n"


def main() -> None:
    """Try all, and print what is not as it should be."""
    with tempfile.TemporaryDirectory() as name, world(Path(name)) as around:
        wrong = []
        for escape in ESCAPES:
            directory = Path(name, escape.name)
            directory.mkdir()
            wrong.append(tried(escape, around, directory))
    print(json.dumps({"user": os.getuid(), "wrong": [each for each in wrong if each]}))  # noqa: T201
    sys.exit(any(wrong))


if __name__ == "__main__":
    main()
