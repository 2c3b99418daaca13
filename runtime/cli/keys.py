"""``holdfast keys``: a new line for the file of encryption keys."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime.base.errors import InputError
from runtime.cli.output import say


def command(
    name: Annotated[
        str,
        typer.Argument(metavar="ID", help="What the key is called, such as may-2026."),
    ],
    kms: Annotated[
        str | None,
        typer.Option(
            "--kms",
            metavar="KEY",
            help="Have AWS' key service make and wrap it: an id, alias/NAME or ARN,"
            " with ?region=R&endpoint_url=URL&profile=P after it where these are not the"
            " environment's.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Make an encryption key, or have KMS make one.

    It is printed as a line for HOLDFAST_ENCRYPTION_KEYS.

    With --kms the line has no secret: each process has the key unwrapped by KMS when it begins, and
    its credentials need kms:Decrypt. This command's need kms:GenerateDataKeyWithoutPlaintext.
    """
    import base64
    import secrets

    from runtime.server.authentic.encryption import is_key_id
    from runtime.server.authentic.kms import BYTES, PREFIX, KmsKey, line_of

    if not is_key_id(name):
        raise InputError(
            f"{name!r} is no id of a key: expected at most 32 letters, digits, '.', '_' and '-'"
        )
    if kms is None:
        say(f"{name} {base64.b64encode(secrets.token_bytes(BYTES)).decode()}")
        return
    reference = PREFIX + kms.removeprefix(PREFIX)
    if len(reference.split()) != 1:
        raise InputError(f"--kms {kms!r}: expected no space")
    service = KmsKey.parsed(reference)
    wrapped = service.made(name)
    # Asked at once: who may make a key that nobody can unwrap should hear it now.
    service.unwrapped(name, wrapped)
    say(line_of(name, reference, wrapped))
