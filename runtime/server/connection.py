"""The connection to Temporal: a server that the user names, else the embedded one.

A server is named by ``--address``, by ``TEMPORAL_ADDRESS`` or by a profile of Temporal's own
configuration file (``TEMPORAL_CONFIG_FILE``, ``TEMPORAL_PROFILE``); TLS, API keys, the namespace
and gRPC metadata come from there too.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.envconfig import ClientConfigProfile
from temporalio.service import RPCError, RPCStatusCode

from runtime.base.characters import is_unicode
from runtime.base.errors import InputError, ServerError
from runtime.base.home import Home, state_home
from runtime.base.quoted import shown
from runtime.server.authentic import (
    EncryptionKeys,
    NotSigned,
    encryption_keys,
    key_of,
    signed_converter,
)
from runtime.server.away import is_away
from runtime.server.embedded import (
    NAMESPACE,
    ServerState,
    ensure_server,
    server_in_use,
    server_status,
)
from runtime.server.leaving import begin_connecting
from runtime.server.process import ServerInfo
from runtime.server.target import Target

CONNECT_SECONDS = 10.0
"""How long connecting to a server may take."""

CONNECT_TRIES = 6
"""How often an embedded server is connected to that does not answer although it did."""

CLOUD = ".tmprl.cloud"

_ADDRESS = re.compile(
    r"(?!\d+(?::|$))(?:\[[0-9A-Fa-f:.]+(?:%\w+)?\]|[^\s:/?#@\[\]\\]+)(?::(?P<port>[0-9]{1,5}))?"
)
"""A host, and mostly a port: a number alone is one without a host."""


@dataclass(frozen=True)
class Connection:
    """A client, and what it is connected to.

    ``embedded`` is the home of the embedded server, None for any other; ``ui_url`` is the web UI's
    address where known.
    """

    client: Client
    address: str
    namespace: str
    embedded: Home | None
    ui_url: str | None

    @property
    def shown(self) -> str:
        """``embedded server 127.0.0.1:7233, web UI http://127.0.0.1:8233``."""
        kind = "server" if self.embedded is None else "embedded server"
        return f"{kind} {self.address}" + (f", web UI {self.ui_url}" if self.ui_url else "")


def _readable_environment() -> dict[str, str]:
    """The variables that are text: Temporal's reader panics over any other, whosever it is.

    Raises:
        InputError: if it is one of Temporal's.
    """
    readable = {}
    for name, value in os.environ.items():
        if is_unicode(name) and is_unicode(value):
            readable[name] = value
        elif name.startswith("TEMPORAL_"):
            raise InputError(f"{name}: expected Unicode text, got {value!r}")
    return readable


def load_profile(target: Target) -> ClientConfigProfile:
    """Temporal's configuration with ``target`` over it; its ``address`` is None if the embedded
    server is meant.

    Raises:
        InputError: if the configuration cannot be read, or names a namespace, a key or TLS and no
            address, or what is none; or if ``target`` has an empty name, as that of a variable
            which is not set.
    """
    for name, value in dataclasses.asdict(target).items():
        if value == "":
            raise InputError(f"--{name} '' names none: leave --{name} out, or name one")
    try:
        profile = ClientConfigProfile.load(
            profile=target.profile, override_env_vars=_readable_environment()
        )
    except (RuntimeError, ValueError, OSError) as error:
        raise InputError(f"Temporal's configuration cannot be read: {error}") from error
    profile = dataclasses.replace(
        profile,
        address=target.address or profile.address,
        namespace=target.namespace or profile.namespace,
    )
    if profile.address:
        _check_address(profile.address)
    else:
        asked = {
            "--namespace": target.namespace,
            "--profile": target.profile,
            "an API key": profile.api_key,
            "TLS": profile.tls,
        }
        # Half a configuration would lead jobs to the embedded server, which was not meant.
        for name, value in asked.items():
            if value:
                raise InputError(
                    f"{name} is given and no address: name a server with --address or"
                    " TEMPORAL_ADDRESS"
                )
    return profile


def _check_address(address: str) -> None:
    """See that it is one, before any is looked for.

    Raises:
        InputError: if it is not.
    """
    whole = _ADDRESS.fullmatch(address)
    if whole is None or not 0 < int(whole["port"] or 1) < 65536:
        raise InputError(
            "expected the Temporal server's address as HOST:PORT (--address, TEMPORAL_ADDRESS or"
            f" the Temporal profile), got {shown(address)}"
        )


@asynccontextmanager
async def connect(
    target: Target | None = None, *, home: Home | None = None
) -> AsyncIterator[Connection]:
    """A connection to the server of ``target``, else to the embedded one of ``home``, which is kept
    until the end.

    Raises:
        InputError: if Temporal's configuration is wrong, or the key is, or another than what is
            read was signed with.
        ServerError: if the server cannot be started or reached.
    """
    profile = load_profile(target or Target())
    # Before a server is started. It may wait for a key service, which is asked once a process.
    encryption = await asyncio.to_thread(encryption_keys)
    if profile.address:
        connection = await _connect_to(profile, home, encryption)
        with _told_as_server_error(connection.address):
            yield connection
        return
    home = home or state_home()
    async with server_in_use(home) as server:
        connection = await _connect_to_embedded(server, home, encryption)
        with _told_as_server_error(connection.address):
            yield connection


async def _connect_to_embedded(
    server: ServerInfo, home: Home, encryption: EncryptionKeys | None
) -> Connection:
    """A client of the embedded server, which whoever needs it starts again if it was killed since
    it last answered.

    Raises:
        ServerError: if it was gone again each time.
    """
    for left in reversed(range(CONNECT_TRIES)):
        profile = ClientConfigProfile(address=server.address, namespace=NAMESPACE)
        try:
            connection = await _connect_to(profile, home, encryption)
        except ServerError as error:
            if not left:
                raise ServerError(
                    f"the embedded Temporal server was started {CONNECT_TRIES} times and never"
                    f" answered a client; its log is {home.log}"
                ) from error
            server = await ensure_server(home)
        else:
            return dataclasses.replace(connection, embedded=home, ui_url=server.ui_url)
    raise AssertionError("it was tried once at least")


@contextmanager
def _told_as_server_error(address: str) -> Iterator[None]:
    """What the server answers to a request that it does not fulfil, and what it holds that is not
    authentic, for users.
    """
    try:
        yield
    except NotSigned as error:
        raise InputError(error.message) from error
    except RPCError as error:
        how = "does not answer" if is_away(error) else f"answered {error.status.name}"
        raise ServerError(f"the Temporal server at {address} {how}: {_reason(error)}") from error


@asynccontextmanager
async def connect_to_prepare(target: Target) -> AsyncIterator[Connection]:
    """A connection to a server that need not have the namespace yet; the embedded one prepares
    itself.

    Raises:
        InputError: if no server is named, or Temporal's configuration or the key is wrong.
        ServerError: if it cannot be reached, or refuses what is asked of it.
    """
    profile = load_profile(target)
    if not profile.address:
        raise InputError(
            "no server is named: give --address, TEMPORAL_ADDRESS or --profile (the embedded server"
            " prepares itself)"
        )
    encryption = await asyncio.to_thread(encryption_keys)
    connection = await _connect_to(profile, None, encryption, check=False)
    with _told_as_server_error(connection.address):
        yield connection


async def _connect_to(
    profile: ClientConfigProfile,
    home: Home | None,
    encryption: EncryptionKeys | None,
    *,
    check: bool = True,
) -> Connection:
    address, namespace = str(profile.address), profile.namespace or "default"
    try:
        config = profile.to_client_connect_config()
    except OSError as error:
        raise InputError(
            f"a TLS file of Temporal's configuration cannot be read: {error}"
        ) from error
    config["namespace"] = namespace
    converter = signed_converter(await asyncio.to_thread(key_of, home), encryption)
    begin_connecting()
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            client = await Client.connect(**config, data_converter=converter)
            if check:
                await _check_namespace(client, address)
    except TimeoutError as error:
        raise _unreachable(address, f"it did not answer within {CONNECT_SECONDS:.0f} s") from error
    except (RuntimeError, ValueError, RPCError) as error:
        raise _unreachable(address, _reason(error)) from error
    return Connection(client, address, namespace, None, _cloud_ui(address, namespace))


async def _check_namespace(client: Client, address: str) -> None:
    try:
        await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=client.namespace)
        )
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            raise ServerError(
                f"the Temporal server at {address} has no namespace {client.namespace!r}: make it"
                " with 'holdfast init', or name another with --namespace or TEMPORAL_NAMESPACE"
            ) from error
        # A key may be good for running workflows and not for reading the namespace's settings.
        if error.status != RPCStatusCode.PERMISSION_DENIED:
            raise


def _unreachable(address: str, reason: str) -> ServerError:
    return ServerError(
        f"no connection to the Temporal server at {address}: {reason}; check the address"
        " (--address, TEMPORAL_ADDRESS or the Temporal profile), or leave it out to use the"
        " embedded server"
    )


def _reason(error: Exception) -> str:
    kind = error.status.name if isinstance(error, RPCError) else type(error).__name__
    text = " ".join(str(error).split()) or kind
    # The SDK's core prints its nested error values; the innermost one says what happened.
    inner = re.findall(r'(?:message|error): "([^"]+)"', text)
    return inner[-1] if inner else text


def _cloud_ui(address: str, namespace: str) -> str | None:
    host = address.partition(":")[0]
    return f"https://cloud.temporal.io/namespaces/{namespace}" if host.endswith(CLOUD) else None


@asynccontextmanager
async def connect_if_up(target: Target) -> AsyncIterator[Connection | None]:
    """A connection to a server that serves already; None where only the embedded one is meant and
    it is down.
    """
    # Asked how the server is first: ``connect`` would start it.
    home = state_home()
    if (
        not load_profile(target).address
        and (await server_status(home)).state is not ServerState.SERVING
    ):
        yield None
        return
    async with connect(target, home=home) as connection:
        yield connection
