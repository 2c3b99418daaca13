"""``holdfast archive create``: an archive whose objects are encrypted."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime.cli.output import say


def command(
    archive: Annotated[
        str,
        typer.Argument(
            metavar="STORE", help="Where: a directory or s3://BUCKET/PREFIX.", show_default=False
        ),
    ],
) -> None:
    """Make an archive whose objects are encrypted.

    With the first key of HOLDFAST_ENCRYPTION_KEYS, which every worker and every command that opens
    it needs from then on. An archive that is not encrypted needs no making; 'archive copy' takes it
    over into one that is.
    """
    from runtime.archive.catalog import check_free
    from runtime.archive.stores import create_encrypted

    check_free(archive)
    create_encrypted(archive)
    say(f"{archive}: an archive whose objects are encrypted")
