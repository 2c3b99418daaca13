"""The exceptions of Holdfast."""

from runtime.base.errors import ArchiveError, HoldfastError, InputError, NotFound, ServerError

__all__ = ["ArchiveError", "HoldfastError", "InputError", "NotFound", "ServerError"]
