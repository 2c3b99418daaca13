"""``holdfast codec``: an endpoint by which Temporal's own tools show prompts and replies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runtime.base.errors import InputError
from runtime.cli.options import Store
from runtime.cli.output import note, say

if TYPE_CHECKING:
    from http.server import HTTPServer


def command(
    host: Annotated[
        str,
        typer.Option(
            "--host", help="The address to serve at; others than this machine's see prompts."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", help="The port; a free one by default.", min=0, max=65535)
    ] = 0,
    origin: Annotated[
        list[str] | None,
        typer.Option(
            "--origin",
            metavar="URL",
            help="A web UI's origin besides this machine's, such as https://cloud.temporal.io.",
            show_default=False,
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="Answer those alone who send the token in this file (HOLDFAST_CODEC_TOKEN). By"
            " default a new one is told.",
            show_default=False,
        ),
    ] = None,
    store: Store = None,
) -> None:
    """Serve prompts and replies to Temporal's web UI, until Ctrl-C.

    They take the place of references to the archive, and with HOLDFAST_ENCRYPTION_KEYS that of what
    is encrypted, for those who send the token: 'temporal --codec-endpoint URL --codec-auth "Bearer
    TOKEN" workflow show', or the UI's data encoder settings, which then say to include credentials,
    once the token was entered at URL/login.
    """
    from runtime.cli._codec_server import make_server
    from runtime.cli._codec_token import new_token, token_of
    from runtime.cli.stores import archive_to_read
    from runtime.server.authentic import encryption_keys

    if not host:
        # It would be every address of this machine.
        raise InputError("--host '' names none: leave --host out, or name one")
    keys, token = encryption_keys(), token_of(token_file)
    told = None
    if token is None:
        # The archive is for nobody by chance: other users of this machine reach the port.
        token = told = new_token()
    objects = archive_to_read(store)
    try:
        server = make_server(
            objects, host, port, frozenset(url.rstrip("/") for url in origin or ()), token, keys
        )
    except OSError as error:
        raise InputError(f"{host}:{port} cannot be served: {error.strerror or error}") from error
    sent = told.text if told else "TOKEN"
    _serve(server, f"http://{host}:{server.server_address[1]}", sent)


def _serve(server: HTTPServer, address: str, token: str) -> None:
    """Serve until a signal asks for the end; ``token`` is what the CLI is to send."""
    import signal
    import threading

    stop = threading.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, lambda *_: stop.set())
    # ``shutdown`` waits for the loop to end: called in the loop's own thread, it would never
    # return.
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    say(f"codec endpoint: {address}")
    note(
        f"use it with: temporal --codec-endpoint {address} --codec-auth 'Bearer {token}' workflow"
        " show --workflow-id holdfast/BATCH/JOB"
    )
    stop.wait()
    server.shutdown()
    server.server_close()
