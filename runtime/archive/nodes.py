"""The states of a job's live nodes, as steps record them: changed ones in most steps, all in
keyframes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.base.digests import digest_of


@dataclass(frozen=True)
class NodeStates:
    """The record of each live node and its digest, by ``obj_id``, in the order in which the nodes
    first appeared.
    """

    records: Mapping[str, dict[str, Any]]
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
        self, records: Iterable[Mapping[str, Any]]
    ) -> tuple[NodeStates, tuple[dict[str, Any], ...]]:
        """The states after ``records``, and those of ``records`` that changed anything.

        A record names its node by ``obj_id``; one with ``"removed": true`` takes the node away.
        What is not named stays.

        Raises:
            ValueError: if a record has no ``obj_id``.
        """
        states, digests = dict(self.records), dict(self.digests)
        changed = []
        for given in records:
            record = dict(given)
            obj_id = record.get("obj_id")
            if not isinstance(obj_id, str):
                raise ValueError("a node's record has no obj_id")
            digest = digest_of(record)
            if record.get("removed") is True:
                if states.pop(obj_id, None) is None:
                    continue
                del digests[obj_id]
            elif digests.get(obj_id) == digest:
                continue
            else:
                states[obj_id], digests[obj_id] = record, digest
            changed.append(record)
        return NodeStates(states, digests), tuple(changed)
