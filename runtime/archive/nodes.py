"""The states of a job's live nodes, as steps hold them: changed ones in most steps, all in
keyframes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.base.digests import digest_of


@dataclass(frozen=True)
class NodeStates:
    """The state of each live node and its digest, by ``obj_id``, in the order in which the nodes
    first appeared.
    """

    states: Mapping[str, dict[str, Any]]
    digests: Mapping[str, str]

    @classmethod
    def none(cls) -> NodeStates:
        """No nodes: how a job starts."""
        return cls({}, {})

    @property
    def digest(self) -> str:
        """One digest for all of them."""
        return digest_of(self.digests)

    def updated(
        self, changes: Iterable[Mapping[str, Any]]
    ) -> tuple[NodeStates, tuple[dict[str, Any], ...]]:
        """The states after ``changes``, and those of ``changes`` that changed anything.

        Each names its node by ``obj_id``; one with ``"removed": true`` takes the node away.
        What is not named stays.

        Raises:
            ValueError: if one has no ``obj_id``.
        """
        states, digests = dict(self.states), dict(self.digests)
        changed = []
        for told in changes:
            state = dict(told)
            obj_id = state.get("obj_id")
            if not isinstance(obj_id, str):
                raise ValueError("a node's state has no obj_id")
            digest = digest_of(state)
            if state.get("removed") is True:
                if states.pop(obj_id, None) is None:
                    continue
                del digests[obj_id]
            elif digests.get(obj_id) == digest:
                continue
            else:
                states[obj_id], digests[obj_id] = state, digest
            changed.append(state)
        return NodeStates(states, digests), tuple(changed)
