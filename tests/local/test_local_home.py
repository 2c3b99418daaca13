"""Where the state directory is."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.archive.stores.directory import DirectoryStore
from runtime.base.errors import InputError
from runtime.base.home import state_home


def test_named_directory_is_made_and_is_the_owners_alone(tmp_path: Path) -> None:
    """HOLDFAST_HOME names the directory; it and its parents are made, and nobody else can read
    it.
    """
    home = state_home({"HOLDFAST_HOME": str(tmp_path / "a" / "b")})
    assert home.path == (tmp_path / "a" / "b").resolve()
    assert home.server.is_dir()
    assert home.path.stat().st_mode & 0o777 == 0o700


def test_in_a_directory_that_others_may_list_they_see_no_job(tmp_path: Path) -> None:
    """Nor the server's files: it may have been made by hand, and the umask be any."""
    (tmp_path / "wide").mkdir()
    (tmp_path / "wide").chmod(0o755)
    before = os.umask(0)
    try:
        home = state_home({"HOLDFAST_HOME": str(tmp_path / "wide")})
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in home.path.iterdir()}
    assert modes == dict.fromkeys((home.server, home.workers, home.workspaces), 0o700)


@pytest.mark.parametrize(
    "make", [lambda path: state_home({"HOLDFAST_HOME": str(path)}), DirectoryStore]
)
def test_nobody_else_may_put_a_directory_in_its_place(
    make: Callable[[Path], object], tmp_path: Path
) -> None:
    """Those above it that are made with it are not open to all either, whatever the umask."""
    before = os.umask(0)
    try:
        make(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "a/b", "a/b/c")]
    assert modes == [0o755, 0o755, 0o700]


def test_relative_name_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative HOLDFAST_HOME means the same directory after a change of directory."""
    monkeypatch.chdir(tmp_path)
    assert state_home({"HOLDFAST_HOME": "here"}).path == (tmp_path / "here").resolve()


def test_platform_directory_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without HOLDFAST_HOME, or with an empty one, the platform's state directory is used."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    home = state_home({"HOLDFAST_HOME": ""})
    assert home.path.is_relative_to(tmp_path.resolve())
    assert home.path.name == "holdfast"


def test_who_has_no_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a container's user may be, whom the system does not know."""
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**31)
    with pytest.raises(InputError, match="has no home directory: set HOLDFAST_HOME or HOME"):
        state_home({})


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    """A path that cannot be a directory is an input error that names it and the variable."""
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"file/x.*HOLDFAST_HOME"):
        state_home({"HOLDFAST_HOME": str(tmp_path / "file" / "x")})


@pytest.mark.parametrize("name", ["server", "server/users", "workers", "workspaces"])
def test_a_file_in_the_way_of_a_part_is_named(tmp_path: Path, name: str) -> None:
    """Before anything is told or started, and not when the first worker needs the directory."""
    file = tmp_path.resolve() / name
    file.parent.mkdir(exist_ok=True)
    file.touch()
    with pytest.raises(InputError, match=f"the state directory {file} cannot be made: File exists"):
        state_home({"HOLDFAST_HOME": str(tmp_path)})


@pytest.mark.parametrize("name", [".", "server", "server/users", "workers", "workspaces"])
def test_a_directory_that_all_may_write_to_is_refused(tmp_path: Path, name: str) -> None:
    """Another user could put a database there that all may read, or move the key away."""
    open_ = (tmp_path / "home" / name).resolve()
    open_.mkdir(parents=True)
    open_.chmod(0o1777)
    with pytest.raises(InputError, match=f"all users may write to the state directory {open_}:"):
        state_home({"HOLDFAST_HOME": str(tmp_path / "home")})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")
@pytest.mark.parametrize("name", [".", "server", "server/users", "workers", "workspaces"])
def test_a_directory_of_another_user_is_refused(tmp_path: Path, name: str) -> None:
    """Whatever its mode: its owner may change that."""
    theirs = (tmp_path / "home" / name).resolve()
    theirs.mkdir(parents=True)
    os.chown(theirs, 65_534, 65_534)
    with pytest.raises(InputError, match=f"{theirs} is another user's: name one of your own"):
        state_home({"HOLDFAST_HOME": str(tmp_path / "home")})
