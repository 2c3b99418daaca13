"""The key that payloads are signed with: made once, read by its owner alone."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from runtime.base.errors import InputError
from runtime.base.home import Home
from runtime.server.authentic import KEY, PayloadKey, key_of


def refused(home: Home, environment: dict[str, str] | None = None) -> str:
    """What is said of a key that cannot be used."""
    with pytest.raises(InputError) as caught:
        key_of(home, environment or {})
    return str(caught.value)


def test_it_is_made_once(tmp_path: Path) -> None:
    """With mode 0600 whatever the umask; whoever asks later gets the same, and another directory
    has another.
    """
    before = os.umask(0)
    try:
        first = key_of(Home(tmp_path), {})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert key_of(Home(tmp_path), {}) == first
    assert [path.name for path in tmp_path.iterdir()] == ["key"]
    (tmp_path / "other").mkdir()
    assert key_of(Home(tmp_path / "other"), {}) != first


def test_all_who_make_it_at_once_get_the_same(tmp_path: Path) -> None:
    """Sixteen threads, one key, no leftovers."""
    found: list[bytes] = []
    start = threading.Barrier(16)

    def ask() -> None:
        start.wait()
        found.append(key_of(Home(tmp_path), {}).secret)

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(found), len(set(found))) == (16, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_the_environment_goes_first(tmp_path: Path) -> None:
    """On another machine the line of the file is given; no file is made there."""
    given = PayloadKey(bytes(range(32)))
    assert key_of(Home(tmp_path), {KEY: given.text + "\n"}) == given
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text", ["short", "A" * 43, "A" * 44 + "=", "é", "-----BEGIN PRIVATE KEY-----"]
)
def test_what_is_no_key_is_an_error(tmp_path: Path, text: str) -> None:
    """In the environment or in the file, which it names."""
    assert refused(Home(tmp_path), {KEY: text}).startswith(
        "HOLDFAST_KEY is no key: expected 32 bytes in base64"
    )
    (tmp_path / "key").touch(mode=0o600)
    (tmp_path / "key").write_text(text)
    assert refused(Home(tmp_path)).startswith(f"{tmp_path / 'key'} is no key: ")


def test_a_key_that_is_no_file_is_refused(tmp_path: Path) -> None:
    """To open a pipe would wait for who writes to it."""
    os.mkfifo(tmp_path / "key", 0o600)
    assert refused(Home(tmp_path)).endswith("cannot be read or made: is no regular file")


def test_a_key_that_others_may_know_is_refused(tmp_path: Path) -> None:
    """Open to others, or made by another user in a directory that is open to them."""
    key_of(Home(tmp_path), {})
    (tmp_path / "key").chmod(0o640)
    assert refused(Home(tmp_path)).startswith(
        f"the key {tmp_path / 'key'} is open to other users: chmod 600 it if"
    )
    (tmp_path / "key").chmod(0o600)
    if os.geteuid() == 0:
        os.chown(tmp_path / "key", 65534, 65534)
        assert refused(Home(tmp_path)).startswith(f"the key {tmp_path / 'key'} is another user's: ")


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """One line."""
    assert (
        refused(Home(tmp_path / "gone"))
        == f"the key {tmp_path / 'gone' / 'key'} cannot be read or made: No such file or directory"
    )
