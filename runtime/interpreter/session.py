"""What the interpreter is between two statements, and what a checkpoint has of it."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from runtime.base.values import Value
from runtime.interpreter import namespace
from runtime.interpreter.definitions import NO_DEFINITIONS, Definitions
from runtime.interpreter.executions import TypeInfo


class SavedSession(Value):
    """What a checkpoint has of a session: ``session`` is its dump in base64, ``supplied`` what it
    was supplied, the rest its namespace.
    """

    session: str | None = None
    supplied: tuple[str, ...] = ()
    variables: dict[str, TypeInfo]
    handles: dict[str, str]
    definitions: Definitions = NO_DEFINITIONS
    aliases: tuple[tuple[str, str], ...] = ()
    scheme: int = namespace.SHORT


@dataclass(frozen=True)
class Session:
    """The interpreter between statements: its dump (None before the first statement), its
    namespace, and what it was supplied.
    """

    dump: bytes | None = None
    names: namespace.Namespace = namespace.EMPTY
    pieces: tuple[str, ...] = ()

    def saved(self) -> SavedSession:
        """For a checkpoint."""
        return SavedSession(
            session=None if self.dump is None else base64.b64encode(self.dump).decode(),
            supplied=self.pieces,
            variables=dict(self.names.variables),
            handles=dict(self.names.handles),
            definitions=self.names.definitions,
            aliases=self.names.aliases,
            scheme=self.names.scheme,
        )

    @classmethod
    def restored(cls, saved: SavedSession) -> Session:
        """The session that was saved.

        Raises:
            binascii.Error: if its dump is no base64.
        """
        # A session that has run nothing was begun by no scheme: it begins by today's.
        names = namespace.Namespace(
            variables=saved.variables,
            handles=saved.handles,
            definitions=saved.definitions,
            aliases=saved.aliases,
            scheme=namespace.WHOLE if saved.session is None else saved.scheme,
        )
        dump = None if saved.session is None else base64.b64decode(saved.session, validate=True)
        return cls(dump=dump, names=names, pieces=saved.supplied)
