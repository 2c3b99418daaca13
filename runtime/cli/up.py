"""``holdfast up``: start the embedded server and keep it."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime.cli.options import Json
from runtime.cli.output import json_document, say


def command(
    ui: Annotated[
        bool,
        typer.Option(
            "--ui", help="With Temporal's web UI, open to all users and web pages of this machine."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Start the embedded Temporal server and keep it.

    It runs until 'holdfast down'. Without this command it runs as long as somebody uses it.
    """
    import asyncio

    from runtime.base.home import state_home
    from runtime.server.embedded import NAMESPACE, pin_server

    home = state_home()
    server = asyncio.run(pin_server(home, ui=ui))
    if json:
        about = {
            "address": server.address,
            "namespace": NAMESPACE,
            "ui_url": server.ui_url,
            "pid": server.pid,
        }
        json_document({**about, "home": str(home.path)})
        return
    say(f"Temporal serves at {server.address}, namespace {NAMESPACE} (process {server.pid})")
    if server.ui_url is not None:
        say(f"web UI: {server.ui_url}/namespaces/{NAMESPACE}")
    say("stop it with: holdfast down")
