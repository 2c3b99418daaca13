"""All kinds of stored objects: their JSON Schemas, and the check that an object is one of its
kind.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from runtime.archive.container import FORMAT, ArchivedObject
from runtime.archive.forms.attempt import Attempt
from runtime.archive.forms.base import Form, unlike
from runtime.archive.forms.end import End
from runtime.archive.forms.exchange import Exchange
from runtime.archive.forms.failure import Failure
from runtime.archive.forms.others import (
    CheckpointForm,
    ClaimForm,
    Definition,
    Effect,
    ReplayForm,
    RunStart,
)
from runtime.archive.forms.step import Step
from runtime.base.digests import canonical_json
from runtime.base.errors import ObjectCorrupt

_FORMS: tuple[type[Form], ...] = (
    Definition, RunStart, Attempt, Step, Failure, Exchange, Effect, End, CheckpointForm, ReplayForm,
    ClaimForm,
)  # fmt: skip
KINDS: dict[str, type[Form]] = {form.model_fields["kind"].default: form for form in _FORMS}


def json_schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of each kind's header, by kind."""
    return {
        kind: {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": f"urn:holdfast:archive:{FORMAT}:{kind}",
            **form.model_json_schema(),
        }
        for kind, form in KINDS.items()
    }


def opened(key: str, data: bytes, kind: str) -> ArchivedObject:
    """An object of a kind whose name alone is known. Errors as ``Form.opened``."""
    return KINDS[kind].opened(key, data)


def check_header(archived: ArchivedObject) -> None:
    """Check that an object's header is one of its kind, in canonical JSON.

    Raises:
        ObjectCorrupt: if it is not.
    """
    kind = archived.header.get("kind")
    form = KINDS.get(str(kind))
    if form is None:
        raise ObjectCorrupt(f"{archived.key}: there is no kind {kind!r}")
    # Lone surrogates, which Python strings may have and JSON parsers refuse, are of no concern to a
    # schema.
    text = archived.header_bytes.decode("utf-8", "surrogatepass").encode("utf-8", "replace")
    try:
        form.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise unlike(archived, error) from error
    form.check_complete(archived)
    # Two ways to write one header would be two digests for one content.
    if canonical_json(archived.header) != archived.header_bytes:
        raise ObjectCorrupt(f"{archived.key}: its header is not canonical JSON")
