"""What the forms of all stored objects share: how a form becomes a header, and a header a form."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from functools import cache
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    GetJsonSchemaHandler,
    PrivateAttr,
    ValidationError,
)
from pydantic_core import CoreSchema

from runtime.archive.container import ArchivedObject, unseal
from runtime.base.digests import digest_bytes
from runtime.base.errors import ObjectCorrupt
from runtime.base.values import Later, LeftOut, StepRef, Value

Digest = Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


def _checked_time(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("a time without its offset from UTC")
    return text


Time = Annotated[str, AfterValidator(_checked_time)]
"""ISO 8601, with the offset from UTC."""
TimeIfKnown = Annotated[str, AfterValidator(lambda text: text and _checked_time(text))]
"""The same, or nothing: earlier releases did not tell all of them."""


_Mark = TypeVar("_Mark", LeftOut, Later)

_JSON = frozenset({str, int, float, bool, type(None), dict})
"""Types of values that are JSON as they are; those of their subclasses may be others."""


class Sized(Value):
    """The digest and the size in bytes of a request or a response."""

    digest: Digest
    bytes: Count


def sized(data: bytes) -> Sized:
    """The digest and the size of some bytes."""
    return Sized(digest=digest_bytes(data), bytes=len(data))


class Form(Value):
    """The header of a stored object.

    ``parts``: name and size of each binary part, in order; in format 1 the stored size between
    them.

    A field stands here once: as it is written, as it is read, and as ``holdfast schema --archive``
    publishes it. A default is what a writer need not say; a header has the field all the same,
    unless it is marked with ``LeftOut`` or ``Later``.
    """

    kind: str
    # The container writes them: what they are is known when the object is sealed.
    parts: Annotated[tuple[tuple[str, Count] | tuple[str, Count, Count], ...], LeftOut()] = ()

    _address: StepRef | None = PrivateAttr(default=None)

    internal: ClassVar[frozenset[str]] = frozenset({"kind", "parts"})
    """Fields that ``document`` leaves out: what only the archive itself needs."""
    derived: ClassVar[tuple[str, ...]] = ()
    """Properties that ``document`` tells too."""

    @classmethod
    def read(cls, archived: ArchivedObject) -> Self:
        """What an object says of itself. Fields of later releases are passed over.

        Raises:
            ObjectCorrupt: if its header is none of this kind.
        """
        header = archived.header
        try:
            form = cls.model_validate(
                {name: header[name] for name in cls.model_fields if name in header}
            )
        # A digest proves that somebody wrote these bytes, and not that it was this release.
        except ValidationError as error:
            raise unlike(archived, error) from error
        cls.check_complete(archived)
        form._address = StepRef(key=archived.key, digest=archived.digest)
        return form

    @property
    def ref(self) -> StepRef:
        """Where the object is, and its digest.

        Raises:
            ValueError: if it was not read.
        """
        if self._address is None:
            raise ValueError(f"this {self.kind} was not read from an archive")
        return self._address

    def header(self) -> dict[str, Any]:
        """The fields as they are written."""
        silent = {name for name, mark in self._marked(LeftOut) if mark.empty(getattr(self, name))}
        return {name: _plain(value) for name, value in self if name not in silent}

    def document(self) -> dict[str, Any]:
        """What is told of the object, as JSON: in an export, and with ``--json``."""
        told = {name: _plain(value) for name, value in self if name not in self.internal}
        return told | {name: _plain(getattr(self, name)) for name in self.derived}

    @classmethod
    def required(cls) -> tuple[str, ...]:
        """The fields that every header of this kind has, of whichever release."""
        return _required(cls)

    @classmethod
    def opened(cls, key: str, data: bytes) -> ArchivedObject:
        """What ``unseal`` gives, whose header has what this kind has: readers need not ask for each
        field.

        Raises:
            ObjectCorrupt: as ``unseal``; also if the header is none of this kind.
        """
        archived = unseal(key, data, cls.model_fields["kind"].default)
        cls.read(archived)
        return archived

    @classmethod
    def check_complete(cls, archived: ArchivedObject) -> None:
        """Check that a header has the fields that every one of this kind has.

        Raises:
            ObjectCorrupt: if it has not.
        """
        if missing := [name for name in cls.required() if name not in archived.header]:
            raise ObjectCorrupt(
                f"{archived.key}: its header is none of a {archived.header.get('kind')}: it has no"
                f" {', '.join(missing)}"
            )

    @classmethod
    def _marked(cls, mark: type[_Mark]) -> list[tuple[str, _Mark]]:
        return [(name, marker) for name, marker in _marks(cls) if isinstance(marker, mark)]

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        schema = handler.resolve_ref_schema(handler(core_schema))
        for name in cls.required():
            schema["properties"][name].pop("default", None)
        return schema | {"required": list(cls.required())}


def unlike(archived: ArchivedObject, error: ValidationError) -> ObjectCorrupt:
    """What is said of an object whose header is none of its kind: the first thing that is wrong."""
    kind = archived.header["kind"]
    return ObjectCorrupt(f"{archived.key}: its header is none of a {kind}: {first_in(error)}")


def first_in(error: ValidationError) -> str:
    """The first thing that is wrong, and where."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))


@cache
def _required(form: type[Form]) -> tuple[str, ...]:
    optional = {name for name, _ in _marks(form)}
    return tuple(name for name in form.model_fields if name not in optional)


@cache
def _marks(form: type[Form]) -> tuple[tuple[str, LeftOut | Later], ...]:
    return tuple(
        (name, marker)
        for name, field in form.model_fields.items()
        for marker in field.metadata
        if isinstance(marker, (LeftOut, Later))
    )


def _plain(value: Any) -> Any:
    """A field's value as JSON. Dictionaries hold JSON already."""
    if type(value) in _JSON:
        return value
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value
