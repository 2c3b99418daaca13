"""The wall against two oracles on random trees: ``os.path.realpath``, and the kernel's own
``RESOLVE_BENEATH``.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.workspace.files import Workspace
from tests.tiers.tiers import examples

NAMES = ["a", "b", "c"]
part = st.sampled_from([*NAMES, *NAMES, ".", "..", ""])
relative = st.lists(part, min_size=1, max_size=6).map("/".join).filter(bool)
inner = relative.filter(lambda path: not path.startswith("/"))
place = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
entries = st.lists(
    st.tuples(place, st.sampled_from(["file", "dir", "link", "absolute"]), inner), max_size=12
)

_OPENAT2 = 437
_RESOLVE_BENEATH = 0x08


def build(root: Path, spec: list[tuple[str, str, str]], *, absolute: bool) -> None:
    """Make the entries that can be made; each file's content is its own place."""
    for place, kind, target in spec:
        here = root / place
        try:
            if kind == "file":
                here.write_text(place)
            elif kind == "dir":
                here.mkdir()
            elif kind == "link":
                here.symlink_to(target)
            elif absolute:
                here.symlink_to(f"{root}/{target}")
        except OSError:
            continue


@settings(max_examples=examples(150))
@given(spec=entries, paths=st.lists(relative, min_size=1, max_size=8))
def test_nothing_is_read_whose_real_path_is_outside(
    spec: list[tuple[str, str, str]], paths: list[str]
) -> None:
    """What is read is a file inside, and the one that the path really names."""
    with tempfile.TemporaryDirectory() as base:
        for name in NAMES:
            Path(base, name).write_text("secret")
        root = Path(base, "root").resolve()
        root.mkdir()
        build(root, spec, absolute=True)
        workspace = Workspace(str(root))
        for path in paths:
            try:
                text = workspace.read_text(path)
            except OSError:
                continue
            real = os.path.realpath(f"{root}/{path}")
            assert os.path.commonpath([real, root]) == str(root)
            assert Path(real).read_text() == text != "secret"


@pytest.mark.skipif(sys.platform != "linux", reason="openat2 is Linux's")
@settings(max_examples=examples(200))
@given(spec=entries, paths=st.lists(inner, min_size=1, max_size=8))
def test_the_walk_ends_as_the_kernels_own_walk_beneath_a_directory(
    spec: list[tuple[str, str, str]], paths: list[str]
) -> None:
    """The same file, or the same error, as ``openat2`` with ``RESOLVE_BENEATH`` gives."""
    with tempfile.TemporaryDirectory() as base:
        root = Path(base, "root")
        root.mkdir()
        build(root, spec, absolute=False)
        workspace = Workspace(str(root))
        for path in paths:
            assert outcome(workspace, path) == kernel_outcome(root, path)


def outcome(workspace: Workspace, path: str) -> str | int:
    """The content that the wall gives, or its error number."""
    try:
        return workspace.read_text(path)
    except OSError as error:
        return error.errno or 0


def kernel_outcome(root: Path, path: str) -> str | int:
    """The content that ``openat2`` gives beneath ``root``, or the error number that the wall has
    for its error.
    """
    directory = os.open(root, os.O_PATH | os.O_DIRECTORY)
    how = struct.pack("QQQ", os.O_RDONLY | os.O_CLOEXEC, 0, _RESOLVE_BENEATH)
    libc = ctypes.CDLL(None, use_errno=True)
    file = libc.syscall(_OPENAT2, directory, os.fsencode(path), how, len(how))
    code = ctypes.get_errno()
    os.close(directory)
    if file < 0:
        assert code != errno.ENOSYS, "this kernel has no openat2"
        return errno.EACCES if code == errno.EXDEV else code
    try:
        return os.read(file, 1000).decode()
    except IsADirectoryError:
        return errno.EISDIR
    finally:
        os.close(file)
