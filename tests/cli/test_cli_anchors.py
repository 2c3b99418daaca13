"""``holdfast verify`` with what vouches for a chain from outside: Temporal's history, a
signature.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runtime.archive.container import header, seal, unseal
from runtime.archive.keys import end_key
from tests.cli.command_line import CommandLine, script

pytestmark = pytest.mark.server


def finished_job(cli: CommandLine, batch: str) -> str:
    """A job of two turns that has ended; the key of its end."""
    cli.write("two.yaml", script("x = 1", "finish(x)"))
    file = cli.jobs("id: one, model: scripted/two.yaml", batch=batch)
    assert cli("run", file).code == 0
    archive = cli.archive(batch, "one")
    return end_key(archive.prefix, archive.runs()[-1])


def forge(cli: CommandLine, key: str, **fields: object) -> None:
    """Write an object anew with other fields and a digest that fits."""
    path = cli.home / "archive" / key
    archived = unseal(key, path.read_bytes())
    made = {**archived.header, **fields}
    made.pop("parts", None)
    path.chmod(0o644)
    path.write_bytes(seal(key, header(made, archived.parts()), archived.parts())[0])


def test_temporals_history_anchors_a_chain(cli: CommandLine) -> None:
    """With the server in reach a clean chain is anchored; a forged end or reply, which no link
    shows, is found.
    """
    key = finished_job(cli, "anchored")
    clean = cli("verify", "anchored/one", "--json").json()["jobs"][0]
    (run,) = clean["runs"]
    assert (clean["damage"], run["anchored"]) == ([], True)
    assert {note["fault"] for note in clean["notes"]} == {"handed-over"}, (
        "a scripted model has no wire"
    )
    assert [anchor["kind"] for anchor in run["anchors"]] == ["temporal-history"]
    forge(cli, key, reason="another one")
    found = cli("verify", "anchored/one", "--json")
    (damage,) = found.json()["jobs"][0]["damage"]
    assert (found.code, damage["key"], damage["fault"]) == (4, key, "altered")


def test_without_a_server_a_forged_head_is_only_self_attested(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On another machine, with the store alone, verify says plainly what it cannot show."""
    forge(cli, finished_job(cli, "elsewhere"), reason="another one")
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "other"))
    found = cli("verify", "elsewhere/one", "--store", cli.home / "archive")
    assert (found.code, found.out.splitlines()[0]) == (0, "elsewhere/one: clean")
    assert found.out.splitlines()[-1].endswith(": only self-attested")
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:9")
    refused = cli("verify", "elsewhere/one", "--store", cli.home / "archive")
    assert refused.code == 0
    assert refused.err.startswith(
        "without Temporal's history: no connection to the Temporal server at 127.0.0.1:9"
    )


def test_a_signature_by_a_trusted_key_anchors_a_chain(
    cli: CommandLine,
    signing_keys: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker signs each run's end with its key; who trusts the public half needs no server;
    others are told so.
    """
    secret, trusted = signing_keys
    monkeypatch.setenv("HOLDFAST_SIGNING_KEY", str(secret))
    key = finished_job(cli, "signed")
    monkeypatch.delenv("HOLDFAST_SIGNING_KEY")
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "other"))
    store = ("--store", cli.home / "archive")
    (run,) = cli("verify", "signed/one", *store, "--public-key", trusted, "--json").json()["jobs"][
        0
    ]["runs"]
    assert ([anchor["kind"] for anchor in run["anchors"]], run["anchored"]) == (["signature"], True)
    stranger = cli("verify", "signed/one", *store)
    assert stranger.code == 0
    assert "only self-attested; signed by sha256:" in stranger.out
    forge(cli, key, reason="another one")
    forged = cli("verify", "signed/one", *store)
    assert (forged.code, "its signature is not one of what it says" in forged.out) == (4, True)
    assert secret.read_text().splitlines()[1] not in json.dumps(
        cli("export", "signed/one", *store).out
    )


@pytest.mark.parametrize(
    "key",
    ["nonsense", "/nowhere/key.pem", "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----"],
)
def test_a_signing_key_that_is_none_is_an_error_before_anything_starts(
    cli: CommandLine, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker does not start; the message does not repeat what was given."""
    cli.write("two.yaml", script("finish(1)"))
    file = cli.jobs("id: one, model: scripted/two.yaml", batch="badkey")
    monkeypatch.setenv("HOLDFAST_SIGNING_KEY", key)
    done = cli("run", file)
    assert done.code == 2
    assert "HOLDFAST_SIGNING_KEY" in done.err
    assert key not in done.err
    assert cli("ls", "badkey").code == 2, "there is no such batch"
