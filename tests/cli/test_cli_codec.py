"""``holdfast codec``: Temporal's own CLI prints prompts and replies; other sites' pages are
refused.
"""

from __future__ import annotations

import http.client
import json
import re
import signal
import threading
import tracemalloc
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from temporalio.api.common.v1 import Payload

from runtime.archive.forms import NewEnd
from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore
from runtime.cli._codec_server import decoded, make_server
from runtime.cli._codec_token import Token
from runtime.server.authentic.compression import compressed
from tests.cli.command_line import DEADLINE, CommandLine, script
from tests.cli.temporal_cli import history

pytestmark = pytest.mark.server
_JSON = b64encode(b"json/plain").decode()
TOKEN = "a-token-of-this-test"
BEARER = f"Bearer {TOKEN}"


@contextmanager
def codec(cli: CommandLine, *arguments: str) -> Iterator[str]:
    """The endpoint's address while it serves those with ``TOKEN``."""
    process = cli.start("codec", *arguments, HOLDFAST_CODEC_TOKEN=TOKEN)
    assert process.stdout is not None
    yield process.stdout.readline().removeprefix("codec endpoint: ").strip()
    process.send_signal(signal.SIGINT)
    assert cli.finished(process).code == 0


def ask(
    address: str, method: str, path: str, body: str = "", **headers: str
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=DEADLINE)
    connection.request(
        method, path, body, {name.replace("_", "-"): value for name, value in headers.items()}
    )
    response = connection.getresponse()
    response.body = response.read()  # type: ignore[attr-defined]
    connection.close()
    return response


def shown(
    cli: CommandLine, workflow: str, address: str | None, *options: str
) -> list[dict[str, Any]]:
    """The activities' inputs and results in a workflow's history; of those that are no JSON, what
    they say of themselves.
    """
    endpoint = ["--codec-endpoint", address] if address else []
    done = history(cli, workflow, *endpoint, *options)
    assert done.returncode == 0, done.stderr
    values: list[dict[str, Any]] = []
    places = (
        ("activityTaskScheduledEventAttributes", "input"),
        ("activityTaskCompletedEventAttributes", "result"),
    )
    for event in json.loads(done.stdout)["events"]:
        for name, place in places:
            payloads = event.get(name, {}).get(place, {}).get("payloads", [])
            values += [
                json.loads(b64decode(payload["data"]))
                if payload["metadata"]["encoding"] == _JSON
                else dict(payload["metadata"])
                for payload in payloads
                if "data" in payload
            ]
    return values


def test_temporals_cli_shows_prompts_and_replies(cli: CommandLine) -> None:
    """'temporal --codec-endpoint' prints the whole prompt of each turn, the statement and the end
    instead of references.
    """
    cli.write("ws/a.py", "def licence():\n    return 'MIT'\n")
    cli.write("three.yaml", script("a = view('a.py')", "b = 1\nprint(b)", "finish({'found': 1})"))
    file = cli.jobs("id: one, model: scripted/three.yaml", batch="codec")
    assert cli("run", file).code == 0
    workflow = "holdfast/codec/one"
    with codec(cli) as address:
        sent = ("--codec-auth", BEARER)
        plain, read = shown(cli, workflow, None), shown(cli, workflow, address, *sent)
        # The CLI may put the namespace before the path.
        assert shown(cli, workflow, f"{address}/{{namespace}}", *sent) == read
    assert len(plain) == len(read)
    assert not any("prompt" in value for value in plain)
    # The first call, with all that a model is told first, is too long to be left as it is.
    (long,) = [value for value in plain if value.keys() == {"encoding", "holdfast-signature"}]
    assert read[plain.index(long)]["turn"] == 1
    prompts = [value for value in read if "prompt" in value]
    assert [value["turn"] for value in prompts] == [1, 2, 3]
    segments = cli.archive("codec", "one").turn_layout(cli.archive("codec", "one").runs()[0], 3)
    assert [part.get("text", []) for part in prompts[2]["prompt"]] == [
        s.text.splitlines() for s in segments
    ]
    assert "    return 'MIT'" in "\n".join(
        line for part in prompts[2]["prompt"] for line in part.get("text", [])
    )
    new = [part["segment"] for part in prompts[2]["prompt"] if part["segment"].endswith("new")]
    assert any("reply · statement:2" in about for about in new)
    replies = [value for value in read if "statement" in value]
    assert [value["statement"] for value in replies] == [
        ["a = view('a.py')"],
        ["b = 1", "print(b)"],
        ["finish({'found': 1})"],
    ]
    assert replies[0]["step"]["digest"].startswith("sha256:")
    assert [value["result"] for value in read if "end" in value] == [{"found": 1}]


def test_payloads_without_references_come_back_as_they_are(cli: CommandLine) -> None:
    """Other encodings, broken ones and references to what is not archived; encode changes nothing
    at all.
    """
    payloads = [
        {"metadata": {"encoding": b64encode(b"binary/plain").decode()}, "data": "AAE="},
        {
            "metadata": {"encoding": b64encode(b"json/plain").decode()},
            "data": b64encode(b'{"a": 1}').decode(),
        },
        {
            "metadata": {"encoding": b64encode(b"json/plain").decode()},
            "data": b64encode(b'{"step": 1}').decode(),
        },
        {"metadata": {"encoding": b64encode(b"json/plain").decode()}, "data": "not base64"},
        {"metadata": {"encoding": b64encode(b"binary/null").decode()}},
        {"metadata": {"encoding": b64encode(b"holdfast/zstd").decode()}, "data": "AAE="},
        {
            "metadata": {"encoding": b64encode(b"json/plain").decode()},
            "data": b64encode(b"[" * 100_000).decode(),
        },
    ]
    body = json.dumps({"payloads": payloads})
    with codec(cli) as address:
        for path in ("/decode", "/encode", "/holdfast/decode"):
            answer = ask(
                address, "POST", path, body, content_type="application/json", authorization=BEARER
            )
            assert (answer.status, json.loads(answer.body)) == (200, {"payloads": payloads})  # type: ignore[attr-defined]
        # Python 3.14 reads it, and cannot write it.
        deep = '{"data":' * 50_000 + "1" + "}" * 50_000
        for wrong in ("{}", "[" * 100_000, f'{{"payloads": [{deep}]}}'):
            assert ask(address, "POST", "/decode", wrong, authorization=BEARER).status == 400
        assert ask(address, "POST", "/other", body).status == 404
        assert ask(address, "GET", "/").status == 200


def test_the_end_of_a_job_that_is_called_ends() -> None:
    """It is shown as that of any other."""
    store = MemoryStore()
    archive = JobArchive(store, "b", "ends")
    end = archive.write_end(NewEnd(run="r", turn=1, parent=None, status="failed", reason="why"))
    data = b64encode(end.model_dump_json().encode()).decode()
    told = decoded(store, {"metadata": {"encoding": _JSON}, "data": data})
    assert json.loads(b64decode(told["data"]))["reason"] == "why"


def test_what_is_shown_has_a_bound(cli: CommandLine) -> None:
    """A request of a few kilobytes may ask for gigabytes."""
    long = compressed(Payload(metadata={"encoding": b"json/plain"}, data=b" " * (8 << 20)))
    one = {
        "metadata": {name: b64encode(text).decode() for name, text in long.metadata.items()},
        "data": b64encode(long.data).decode(),
    }
    with codec(cli) as address:
        answers = [
            ask(
                address,
                "POST",
                "/decode",
                json.dumps({"payloads": [one] * count}),
                authorization=BEARER,
            )
            for count in (2, 26)
        ]
        assert [answer.status for answer in answers] == [200, 413]
        assert len(answers[0].body) > 20_000_000  # type: ignore[attr-defined]
        assert b"bytes are shown" in answers[1].body  # type: ignore[attr-defined]


def test_only_pages_of_this_machine_and_named_ones_are_served(cli: CommandLine) -> None:
    """The web UI's page may ask; another site's may not, nor may one that has this address by a
    name of its own.
    """
    with codec(cli, "--origin", "https://cloud.temporal.io") as address:
        ui = "http://localhost:8233"
        asked = ask(
            address, "OPTIONS", "/decode", origin=ui, access_control_request_headers="x-namespace"
        )
        assert (asked.status, asked.headers["access-control-allow-origin"]) == (204, ui)
        assert re.search("x-namespace", asked.headers["access-control-allow-headers"])

        def decode(**headers: str) -> http.client.HTTPResponse:
            empty = '{"payloads": []}'
            return ask(address, "POST", "/decode", empty, authorization=BEARER, **headers)

        assert decode(origin="https://cloud.temporal.io").status == 200
        evil = decode(origin="https://evil.example")
        assert (evil.status, evil.headers["access-control-allow-origin"]) == (403, None)
        assert decode(host="evil.example:80").status == 403


def test_a_port_that_is_taken_is_an_error(cli: CommandLine, tmp_path: Path) -> None:
    """The message names the address."""
    with codec(cli) as address:
        port = str(urlsplit(address).port)
        done = cli.finished(cli.start("codec", "--port", port))
        assert (done.code, f"127.0.0.1:{port} cannot be served" in done.err) == (2, True)


def test_what_is_encrypted_is_shown_to_those_with_the_token(
    own_cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Temporal's CLI prints no word of an encrypted job without the token, with another, or without
    the endpoint; with it, prompts and replies as ever. What is said meanwhile holds no word either.
    """
    # A server of its own: others' tests could not read what it has of the job.
    monkeypatch.setenv("HOLDFAST_ENCRYPTION_KEYS", f"one {b64encode(b'k' * 32).decode()}")
    assert own_cli("up").code == 0
    own_cli.write("two.yaml", script("word_of_nobody = 1", "finish('end-of-nobody')"))
    assert (
        own_cli("run", own_cli.jobs("id: one, model: scripted/two.yaml", batch="hidden")).code == 0
    )
    workflow = "holdfast/hidden/one"
    process = own_cli.start("codec", HOLDFAST_CODEC_TOKEN=TOKEN)
    assert process.stdout is not None
    address = process.stdout.readline().removeprefix("codec endpoint: ").strip()
    at = ("--codec-endpoint", address)
    for options in (
        (),
        at,
        (*at, "--codec-auth", "Bearer another-token-than-it"),
        (*at, "--codec-auth", TOKEN),
    ):
        said = history(own_cli, workflow, *options)
        assert bool(said.returncode) == bool(options)
        assert "of_nobody" not in _plain(said.stdout + said.stderr)
    values = shown(own_cli, workflow, address, "--codec-auth", f"Bearer {TOKEN}")
    assert [value["statement"] for value in values if "statement" in value] == [
        ["word_of_nobody = 1"],
        ["finish('end-of-nobody')"],
    ]
    assert [value["result"] for value in values if "end" in value] == ["end-of-nobody"]
    process.send_signal(signal.SIGINT)
    done = own_cli.finished(process)
    assert (done.code, "of-nobody" in done.err, "of_nobody" in done.err) == (0, False, False)


def _plain(text: str) -> str:
    """What is printed, with all that is readable in the base64 of it."""
    found = re.findall(r'"([A-Za-z0-9+/=]{8,})"', text)
    return text + "".join(b64decode(one).decode("latin-1") for one in found if not len(one) % 4)


def test_who_sends_the_token(cli: CommandLine, tmp_path: Path) -> None:
    """A header or the cookie of the form opens it, nothing else; a browser may ask without what it
    may send.
    """
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    file.chmod(0o600)
    body, ui = '{"payloads": []}', "http://localhost:8233"

    with codec(cli, "--token-file", str(file)) as address:

        def status(**headers: str) -> int:
            return int(ask(address, "POST", "/decode", body, x_namespace="n", **headers).status)

        refused = ask(address, "POST", "/decode", body, origin=ui)
        assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert refused.headers["access-control-allow-origin"] == ui
        assert ask(address, "OPTIONS", "/decode", origin=ui).status == 204
        assert ask(address, "POST", "/encode", body).status == 401
        assert status(authorization=f"Bearer {TOKEN}") == 200
        assert status(authorization=f"bearer {TOKEN}") == 200
        for wrong in (TOKEN, "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer \xe9"):
            assert status(authorization=wrong) == 401
        assert ask(address, "GET", "/login").status == 200
        assert ask(address, "POST", "/login", "token=another").status == 401
        entered = ask(address, "POST", "/login", f"token={TOKEN}")
        cookie = entered.headers["set-cookie"]
        assert (entered.status, "HttpOnly; SameSite=Strict" in cookie) == (200, True)
        assert status(cookie=cookie.partition(";")[0], origin=ui) == 200
        assert status(cookie="holdfast-codec=other") == 401
        evil = "https://evil.example"
        assert status(cookie=cookie.partition(";")[0], origin=evil) == 403


def test_who_has_no_token_takes_no_memory() -> None:
    """The answer comes when all was sent, and nothing of it is kept; a form is short."""
    server = make_server(MemoryStore(), "127.0.0.1", 0, frozenset(), Token(TOKEN))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    piece, count = b"x" * (64 << 10), 512
    tracemalloc.start()
    try:
        for path, body, status in (
            ("/decode", piece, 401),
            ("/decode", (piece for _ in range(count)), 401),
            ("/login", piece, 413),
        ):
            connection = http.client.HTTPConnection(
                "127.0.0.1", server.server_address[1], timeout=DEADLINE
            )
            length = len(piece) * (1 if isinstance(body, bytes) else count)
            connection.request("POST", path, body, {"Content-Length": str(length)})
            assert connection.getresponse().status == status
            connection.close()
            assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("keys", ["", f"one {b64encode(b'k' * 32).decode()}"])
def test_a_token_is_made_where_there_is_none(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, keys: str
) -> None:
    """With keys and without, a new one is told on the terminal, and needed: other users of the
    machine reach the port, and may not read the archive.
    """
    monkeypatch.setenv("HOLDFAST_ENCRYPTION_KEYS", keys)
    process = cli.start("codec")
    assert process.stdout is not None
    assert process.stderr is not None
    address = process.stdout.readline().removeprefix("codec endpoint: ").strip()
    told = re.search(r"--codec-auth '(Bearer \S{16,})'", process.stderr.readline())
    assert told is not None
    assert ask(address, "POST", "/decode", '{"payloads": []}').status == 401
    opened = ask(address, "POST", "/decode", '{"payloads": []}', authorization=told[1])
    assert opened.status == 200
    process.send_signal(signal.SIGTERM)
    assert cli.finished(process).code == 0


@pytest.mark.parametrize("wrong", ["short", "with a blank in its middle", None, "open"])
def test_what_is_no_token(cli: CommandLine, tmp_path: Path, wrong: str | None) -> None:
    """A file that is missing, open to all, or holds none is one error; nothing is served."""
    file = tmp_path / "token"
    if wrong is not None:
        file.write_text(TOKEN if wrong == "open" else wrong)
        file.chmod(0o644 if wrong == "open" else 0o600)
    done = cli("codec", "--token-file", file)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)


def test_an_empty_address_is_not_all_of_them(cli: CommandLine) -> None:
    """As of a variable that is not set: it was served to other machines."""
    done = cli("codec", "--host", "")
    assert (done.code, done.out) == (2, "")
    assert done.err == "error: --host '' names none: leave --host out, or name one\n"
