"""The properties of the View, one file each.

To add one, write its class and add an instance to the list.
"""

from runtime.history.properties.base import Tracker, ViewProperty
from runtime.history.properties.batch_atomicity import BatchAtomicity
from runtime.history.properties.condensation import CondensationProperty
from runtime.history.properties.pinned import HEAD_AND_USER, Pinned
from runtime.history.properties.tool_call_matching import ToolCallMatching
from runtime.history.properties.tool_loop_atomicity import ToolLoopAtomicity

_BASE: tuple[ViewProperty, ...] = (
    BatchAtomicity(),
    ToolLoopAtomicity(),
    ToolCallMatching(),
    CondensationProperty(),
)
ALL_PROPERTIES: tuple[ViewProperty, ...] = (*_BASE, Pinned())
USER_MESSAGES_PINNED: tuple[ViewProperty, ...] = (*_BASE, Pinned(sources=HEAD_AND_USER))

__all__ = [
    "ALL_PROPERTIES",
    "USER_MESSAGES_PINNED",
    "BatchAtomicity",
    "CondensationProperty",
    "Pinned",
    "ToolCallMatching",
    "ToolLoopAtomicity",
    "Tracker",
    "ViewProperty",
]
