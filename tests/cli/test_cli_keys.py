"""``holdfast keys`` and keys that a key service unwraps: a real one over HTTP, one that is away,
one that refuses, one that answers nonsense.
"""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.base.errors import InputError
from runtime.cli.main import main
from runtime.server.authentic import encryption_keys
from runtime.server.authentic.encryption import KEYS
from runtime.worker.doctor import machine
from runtime.worker.doctor.finding import Verdict
from tests.servers.kms_server import KmsServer, kms_server

ALIAS = "alias/holdfast"


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[KmsServer]:
    """A key service, and credentials for it."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "NO_PROXY": "127.0.0.1",
        "HOLDFAST_HOME": str(tmp_path / "home"),
    }.items():
        monkeypatch.setenv(name, value)
    with kms_server() as server:
        yield server


def line(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The line that the command prints."""
    capsys.readouterr()
    assert main(["keys", *arguments]) == 0
    return capsys.readouterr().out.strip()


def test_a_key_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a key service a line has 32 random bytes, and is read back."""
    made = line(capsys, "may-2026")
    keys = encryption_keys({KEYS: made})
    assert keys is not None
    assert keys.keys == (("may-2026", base64.b64decode(made.split()[1])),)
    assert line(capsys, "may-2026") != made


def test_a_wrapped_key(kms: KmsServer, capsys: pytest.CaptureFixture[str]) -> None:
    """The line holds no key, each process asks once, and the key has its place among others."""
    where = kms.has(ALIAS)
    made = line(capsys, "june", "--kms", where)
    assert made.startswith(f"june kms:{where} ")
    assert kms.asked == [("GenerateDataKeyWithoutPlaintext", "june"), ("Decrypt", "june")]
    plain = line(capsys, "may")
    keys = encryption_keys({KEYS: f"{made}\n{plain}"})
    assert keys is not None
    assert [(name, len(key)) for name, key in keys.keys] == [("june", 32), ("may", 32)]
    assert base64.b64encode(keys.keys[0][1]).decode() not in made
    assert encryption_keys({KEYS: made}).keys == keys.keys[:1]  # type: ignore[union-attr]
    assert len(kms.asked) == 2


def test_a_wrapped_key_belongs_to_its_id(
    kms: KmsServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under another id, or of another key of the service, it is refused."""
    where, other = kms.has(ALIAS), kms.has("alias/other")
    made = line(capsys, "july", "--kms", where)
    for wrong in (made.replace("july", "august", 1), made.replace(where, other)):
        with pytest.raises(InputError, match=r"InvalidCiphertext.*the line is another key's"):
            encryption_keys({KEYS: wrong})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("refuses", "garbage", "told"),
    [
        ("AccessDeniedException", None, "refuses the key 'fall': AccessDeniedException: as the"),
        ("DisabledException", None, "refuses the key 'fall': DisabledException"),
        ("", b"<html>no</html>", "answered with what is no key of 32 bytes for 'fall'"),
        ("", b'{"Plaintext": "AAEC"}', "answered with what is no key of 32 bytes for 'fall'"),
        ("", b'{"Plaintext": "?"}', "answered with what is no key of 32 bytes for 'fall'"),
        ("", b"[]", "answered nonsense for the key 'fall'"),
        ("", b'{"Plaintext": 5}', "answered nonsense for the key 'fall'"),
    ],
)
def test_a_service_that_gives_no_key(
    kms: KmsServer,
    refuses: str,
    garbage: bytes | None,
    told: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """A command says so in one line and starts no server; the service is asked anew each time."""
    wrapped = base64.b64encode(b"w" * 60).decode()
    monkeypatch.setenv(KEYS, f"fall kms:{kms.has(ALIAS)} {wrapped}")
    kms.refuses, kms.garbage = refuses, garbage
    capsys.readouterr()
    assert main(["cancel", "a/b", "--store", str(tmp_path / "archive")]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert told in said.err
    assert not (tmp_path / "home" / "server" / "server.json").exists()
    found = machine.key_service()
    assert found is not None
    assert (found.verdict, found.name) == (Verdict.FAILED, "kms")
    assert told in found.seen


@pytest.mark.slow
def test_a_service_that_is_away(kms: KmsServer, capsys: pytest.CaptureFixture[str]) -> None:
    """No connection is one line too, where a key is made as where it is used."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        where = f"{ALIAS}?region=eu-west-1&endpoint_url=http://127.0.0.1:{held.getsockname()[1]}"
        capsys.readouterr()
        assert main(["keys", "away", "--kms", where]) == 2
        said = capsys.readouterr()
        assert said.err.startswith(f"error: KMS key {ALIAS} ")
        assert "cannot be asked for the key 'away'" in said.err
        with pytest.raises(InputError, match="cannot be asked for the key 'away'"):
            encryption_keys({KEYS: f"away kms:{where} AAAA"})


def test_doctor_tells_who_unwraps(
    kms: KmsServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line says which key service has which key; without one there is none."""
    made = line(capsys, "dec", "--kms", kms.has(ALIAS))
    monkeypatch.setenv(KEYS, made)
    found = machine.key_service()
    assert found is not None
    assert (found.verdict, found.seen) == (
        Verdict.OK,
        f"unwrapped: dec by KMS key {ALIAS} ({kms.url}, eu-west-1)",
    )
    monkeypatch.setenv(KEYS, line(capsys, "own"))
    assert machine.key_service() is None


@pytest.mark.parametrize(
    "wrong",
    [
        "a kms:k?region=r",
        "a kms: AAAA",
        "a kms:k?colour=red AAAA",
        "a kms:k?region= AAAA",
        "a kms:k not-base-64!",
        "a aws:k AAAA",
    ],
)
def test_lines_that_name_no_wrapped_key(wrong: str) -> None:
    """Nothing is asked of anybody for a line that is wrong."""
    with pytest.raises(InputError, match="a"):
        encryption_keys({KEYS: wrong})


@pytest.mark.parametrize("arguments", [["a b"], ["a", "--kms", "k?colour=red"], ["a", "--kms", ""]])
def test_what_is_no_key_to_make(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """An id or a key service that is none is one line, and exit code 2."""
    capsys.readouterr()
    assert main(["keys", *arguments]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
