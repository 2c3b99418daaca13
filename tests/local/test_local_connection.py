"""Which server a command connects to, and what it says when it cannot."""

import asyncio
import atexit
import socket
import time
from pathlib import Path

import pytest
from temporalio.service import RPCError, RPCStatusCode

from runtime.base.errors import InputError, ServerError
from runtime.base.home import Home
from runtime.server import connection
from runtime.server.authentic import key_of, signed_converter
from runtime.server.connection import Target, _told_as_server_error, connect, load_profile
from runtime.server.embedded import ServerState, server_status
from runtime.server.leaving import HAND_OVER_SECONDS, leave_in_order
from tests.local.helpers import kill_at_once

PROFILES = """
[profile.default]
address = "from-default:7233"
namespace = "of-default"

[profile.cloud]
address = "acme.tmprl.cloud:7233"
namespace = "acme.prod"
api_key = "secret"
"""


@pytest.fixture
def profiles(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporal.toml").write_text(PROFILES)
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(tmp_path / "temporal.toml"))


async def refusal(target: Target) -> str:
    with pytest.raises(ServerError) as caught:
        async with connect(target):
            pass
    return str(caught.value)


@pytest.mark.parametrize(
    ("status", "said", "told"),
    [
        (RPCStatusCode.UNAVAILABLE, "tcp connect error", "does not answer: tcp connect error"),
        (RPCStatusCode.UNKNOWN, "transport error", "does not answer: transport error"),
        (RPCStatusCode.PERMISSION_DENIED, "no", "answered PERMISSION_DENIED: no"),
    ],
)
def test_a_server_that_has_not_answered_is_not_said_to_have(
    status: RPCStatusCode, said: str, told: str
) -> None:
    """Users look for what is wrong elsewhere."""
    with pytest.raises(ServerError) as caught, _told_as_server_error("there:7233"):
        raise RPCError(said, status, b"")
    assert str(caught.value) == f"the Temporal server at there:7233 {told}"


@pytest.mark.usefixtures("profiles")
class TestPrecedence:
    def test_option_over_environment_over_file(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """An option beats the environment's variable, which beats the profile in the file."""
        assert load_profile(Target()).address == "from-default:7233"
        monkeypatch.setenv("TEMPORAL_ADDRESS", "from-environment:7233")
        assert load_profile(Target()).address == "from-environment:7233"
        assert load_profile(Target("from-option:7233")).address == "from-option:7233"
        assert load_profile(Target("from-option:7233")).namespace == "of-default"
        assert load_profile(Target(namespace="mine")).namespace == "mine"

    def test_a_variable_that_is_no_text(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As the directory's, where that has such a name: Temporal's reader panicked over it."""
        monkeypatch.setenv("PWD", "/a\udcff")
        assert load_profile(Target()).address == "from-default:7233"
        monkeypatch.setenv("TEMPORAL_ADDRESS", "\udcff:7233")
        with pytest.raises(InputError, match=r"TEMPORAL_ADDRESS: expected Unicode text"):
            load_profile(Target())

    def test_profile_brings_key_and_tls(self) -> None:
        """A named profile brings its API key, and with it TLS."""
        config = load_profile(Target(profile="cloud")).to_client_connect_config()
        assert (config["target_host"], config["namespace"]) == (
            "acme.tmprl.cloud:7233",
            "acme.prod",
        )
        assert (config["api_key"], config["tls"]) == ("secret", True)

    def test_unknown_profile(self) -> None:
        """A profile that is not in the file is an input error that names it."""
        with pytest.raises(InputError, match="'nope' not found"):
            load_profile(Target(profile="nope"))


@pytest.mark.usefixtures("home")
def test_nothing_configured_means_the_embedded_server() -> None:
    """Without address, environment and file there is no address: the embedded server is meant."""
    assert load_profile(Target()).address is None


@pytest.mark.usefixtures("home")
def test_namespace_and_key_need_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace or a key without a server to use them on is an input error, not ignored."""
    with pytest.raises(InputError, match="--namespace is given and no address"):
        load_profile(Target(namespace="mine"))
    monkeypatch.setenv("TEMPORAL_API_KEY", "secret")
    with pytest.raises(InputError, match="an API key is given and no address"):
        load_profile(Target())


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    "address",
    ["7233", "http://there:7233", "there:", ":7233", "there:0", "there:65536", "there:x", "::1:7233",
     "the re:7233", "there:7233/", "there:7233 ", "me@there:7233", "there:\u0663"],
)  # fmt: skip
def test_what_is_no_address_is_bad_input(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Wherever it is from: it was looked for as one, and told as a server that is away."""
    with pytest.raises(InputError, match=r"expected the Temporal server's address as HOST:PORT"):
        load_profile(Target(address))
    monkeypatch.setenv("TEMPORAL_ADDRESS", address)
    with pytest.raises(InputError, match=r"got '"):
        load_profile(Target())


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    "address",
    ["there", "there:1", "a_b.c-d:65535", "127.0.0.1:7233", "[::1]:7233", "[fe80::1%eth0]:1",
     "caf\xe9.example:7233", "1.example:1"],
)  # fmt: skip
def test_an_address_has_a_host_and_mostly_a_port(address: str) -> None:
    """A name, a number of one kind or the other."""
    assert load_profile(Target(address)).address == address


@pytest.mark.usefixtures("home")
async def test_missing_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate file that is not there is an input error that names it."""
    monkeypatch.setenv("TEMPORAL_TLS_CLIENT_CERT_PATH", "/nowhere/cert.pem")
    with pytest.raises(InputError, match=r"/nowhere/cert\.pem"):
        async with connect(Target("localhost:1")):
            pass


@pytest.mark.usefixtures("home")
async def test_nobody_listens() -> None:
    """A refused connection is a server error with the address, the reason and what to do."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
        assert (
            await refusal(Target(address))
            == f"no connection to the Temporal server at {address}: Connection refused; check the"
            " address (--address, TEMPORAL_ADDRESS or the Temporal profile), or leave it out to"
            " use the embedded server"
        )


@pytest.mark.usefixtures("home")
async def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that accepts and never answers is given up after the time limit."""
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        assert "it did not answer within 1 s" in await refusal(
            Target(f"127.0.0.1:{mute.getsockname()[1]}")
        )


@pytest.mark.usefixtures("home")
async def test_another_protocol() -> None:
    """A server that speaks something else is a server error too."""

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        assert f"no connection to the Temporal server at {address}: " in await refusal(
            Target(address)
        )


@pytest.mark.server
async def test_embedded_and_by_address(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing configured the embedded server is used and stopped after; by its address it is
    any server.
    """
    async with connect() as embedded:
        assert (embedded.embedded, embedded.namespace) == (home, "holdfast")
        assert embedded.client.data_converter.payload_converter_class is (
            signed_converter(key_of(home)).payload_converter_class
        )
        assert embedded.ui_url is None
        async with connect(Target(embedded.address, "holdfast")) as named:
            assert (named.embedded, named.ui_url) == (None, None)
            assert len((await server_status(home)).users) == 1
        monkeypatch.setenv("TEMPORAL_ADDRESS", embedded.address)
        async with connect() as configured:
            assert (configured.address, configured.namespace) == (embedded.address, "default")
        assert (
            await refusal(Target(namespace="nope"))
            == f"the Temporal server at {embedded.address} has no namespace 'nope': make it with"
            " 'holdfast init', or name another with --namespace or TEMPORAL_NAMESPACE"
        )
    assert (await server_status(home)).state is ServerState.STOPPED


@pytest.mark.server
async def test_an_embedded_server_that_dies_each_time(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log says why; the address is none that the user gave."""
    monkeypatch.setattr(connection, "begin_connecting", lambda: kill_at_once(home))
    monkeypatch.setattr(connection, "CONNECT_TRIES", 2)
    assert (
        await refusal(Target())
        == "the embedded Temporal server was started 2 times and never answered a client; its log"
        f" is {home.log}"
    )


@pytest.mark.server
async def test_a_process_that_connects_leaves_in_order(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many connections it makes, it lets temporalio's threads go once, at its exit."""
    at_exit: list[object] = []
    leave_in_order.cache_clear()
    monkeypatch.setattr(atexit, "register", lambda *call: at_exit.append(call))
    try:
        async with connect() as embedded, connect(Target(embedded.address, "holdfast")):
            pass
    finally:
        leave_in_order.cache_clear()
    assert at_exit == [(time.sleep, HAND_OVER_SECONDS)]
