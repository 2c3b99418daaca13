"""Where a statement that is executed again differs from its record
(docs/contract/executable-context.md section 10.3).

Compared is what the statement did, not where it began: a variable or a node that was different
before and is not touched is no divergence of this statement. So the statement that read a changed
file is named, and not all that come after it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import zip_longest
from typing import Any

from runtime.base.digests import digest_of
from runtime.base.values import Value
from runtime.job.happenings import said_of
from runtime.job.unmasked import as_recorded, differs_by_marks

SHOWN_CHARS = 200
"""Characters of a value in a divergence."""

NOTHING = "(nothing)"

_DIGEST = re.compile(r"(sha256:[0-9a-f]{12})[0-9a-f]{52}")


class Aspect(StrEnum):
    """What differs, in the order in which one thing causes another."""

    EFFECT_CALL = "effect call"
    EFFECT_RESULT = "effect result"
    STATUS = "status"
    EXCEPTION = "exception"
    STDOUT = "stdout"
    STDERR = "stderr"
    NAMESPACE = "namespace"
    ARTIFACT = "artifact"
    NODE = "node"
    EVENT = "event"


class Divergence(Value):
    """One difference of the statement of ``turn``: ``subject`` names the effect, variable or node
    it is about.
    """

    turn: int
    aspect: Aspect
    subject: str = ""
    recorded: str
    now: str

    @property
    def place(self) -> str:
        """What it is about: the statement, the aspect and the subject."""
        return f"statement {self.turn}, {self.aspect}" + (
            f" {self.subject}" if self.subject else ""
        )

    def line(self) -> str:
        """The difference in one line, with the beginnings of digests."""
        return (
            f"{self.place}: {_DIGEST.sub(_begun, self.now)}; recorded was"
            f" {_DIGEST.sub(_begun, self.recorded)}"
        )


def compare_executions(
    turn: int, recorded: Mapping[str, Any] | None, now: Mapping[str, Any] | None
) -> tuple[Divergence, ...]:
    """The differences between two executions as steps or ends have them; causes come before what
    they cause.
    """
    if recorded is None or now is None:
        if (recorded is None) == (now is None):
            return ()
        return (_made(turn, Aspect.STATUS, "", _status(recorded), _status(now)),)
    # What differs by masks alone is the same: a worker masks in the archive what it alone knows.
    return tuple(_differences(turn, recorded, as_recorded(recorded, now)))


def compare_nodes(
    turn: int, recorded: Iterable[Mapping[str, Any]], now: Iterable[Mapping[str, Any]]
) -> tuple[Divergence, ...]:
    """The differences between the states of the nodes that changed.

    When a summary that a model writes in the background is there is chance, and so are its words:
    neither is a difference.
    """
    before = {state["obj_id"]: state for state in recorded}
    after = {state["obj_id"]: state for state in now}
    return tuple(
        _made(turn, Aspect.NODE, obj_id, before.get(obj_id), after.get(obj_id))
        for obj_id in dict.fromkeys([*before, *after])
        if not _alike(before.get(obj_id), after.get(obj_id))
    )


def compare_events(
    turn: int,
    recorded: Iterable[Mapping[str, Any]],
    now: Iterable[Mapping[str, Any]],
    known: Collection[str],
) -> tuple[Divergence, ...]:
    """The first differing event of each node that is not ``known`` to differ: what happened,
    whatever the events' ids are.
    """
    before, after = _happened(recorded), _happened(now)
    divergences: list[Divergence] = []
    # Not a set of both: what is told must come in the same order in each process.
    for subject in dict.fromkeys([*before, *after]):
        # A node that differs by its state is told once: its events would only say so again.
        if subject in known:
            continue
        for old, new in zip_longest(before.get(subject, ()), after.get(subject, ())):
            if old != new and not (old and new and differs_by_marks(old, new)):
                divergences.append(_made(turn, Aspect.EVENT, subject, old, new))
                # Of each node the first: what follows is caused by it.
                break
    return tuple(divergences)


def _happened(events: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """What happened to each node, in order.

    When the background prepared it is no matter: nobody decides that.
    """
    happened: dict[str, list[str]] = {}
    for event in events:
        if event["type"] != "async_payload_prepared":
            subject = str(event.get("obj_id") or event.get("group_id") or event["type"])
            told = {name: value for name, value in event.items() if name != "payload_meta"}
            happened.setdefault(subject, []).append(f"{event['type']} {said_of(told)}")
    return happened


_BASIS = ("basis", "rewritten")


def summed_up(recorded: Iterable[Mapping[str, Any]], now: Iterable[Mapping[str, Any]]) -> set[str]:
    """The nodes that a model sums up in the background: what happens to them, and when, is
    chance.
    """
    return {state["obj_id"] for state in (*recorded, *now) if "basis" in state}


def _alike(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> bool:
    """Whether two states of a node differ by nothing, or by a background summary alone."""
    if before is None or after is None:
        return bool((before or after or {}).get("rewritten"))
    if "basis" in before and "basis" in after:
        return bool(before["basis"] == after["basis"])
    after = as_recorded(before, after)
    # Records of earlier releases have no basis.
    sides = [
        {name: value for name, value in side.items() if name not in _BASIS}
        for side in (before, after)
    ]
    return sides[0] == sides[1]


def _differences(
    turn: int, recorded: Mapping[str, Any], now: Mapping[str, Any]
) -> Iterator[Divergence]:
    effects = zip_longest(recorded.get("effects", ()), now.get("effects", ()))
    for number, (before, after) in enumerate(effects):
        yield from _effect(turn, number, before, after)
    for aspect in (Aspect.STATUS, Aspect.EXCEPTION):
        if recorded.get(aspect) != now.get(aspect):
            yield _made(turn, aspect, "", recorded.get(aspect), now.get(aspect))
    for aspect in (Aspect.STDOUT, Aspect.STDERR):
        before, after = _text(recorded, aspect), _text(now, aspect)
        if before != after:
            yield _made(turn, aspect, "", before, after)
    yield from _namespace(turn, recorded.get("state_diff", {}), now.get("state_diff", {}))
    old, new = _by_name(recorded.get("artifacts", ())), _by_name(now.get("artifacts", ()))
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) != new.get(name):
            yield _made(turn, Aspect.ARTIFACT, name, old.get(name), new.get(name))


def _effect(
    turn: int, number: int, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> Iterator[Divergence]:
    # Another question explains another result, which is then not told as well.
    if _asked(before) != _asked(after):
        yield _made(turn, Aspect.EFFECT_CALL, str(number), _asked(before), _asked(after))
    elif (
        before is not None
        and after is not None
        and before.get("result_digest") != after.get("result_digest")
    ):
        results = (effect.get("error") or effect.get("result_digest") for effect in (before, after))
        subject = " ".join([str(number), after["name"], *filter(None, [after.get("path")])])
        yield _made(turn, Aspect.EFFECT_RESULT, subject, *results)


def _asked(effect: Mapping[str, Any] | None) -> str | None:
    if effect is None:
        return None
    return " ".join(filter(None, [effect["name"], effect.get("path"), effect["request_digest"]]))


def _namespace(
    turn: int, recorded: Mapping[str, Any], now: Mapping[str, Any]
) -> Iterator[Divergence]:
    """Variables that a statement made something else of, at the places within them that it
    changed.
    """
    before, after = _made_of(recorded), _made_of(now)
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name), after.get(name)
        if _content(old, new) != _content(new, old):
            places = list(dict.fromkeys([*_places(recorded, name), *_places(now, name)]))
            yield _made(turn, Aspect.NAMESPACE, ", ".join(places) or name, old, new)


def _made_of(diff: Mapping[str, Any]) -> dict[str, Any]:
    """What each variable that was touched is afterwards."""
    changed = {name: change["after"] for name, change in diff.get("changed", {}).items()}
    return {
        **diff.get("added", {}),
        **changed,
        **dict.fromkeys(diff.get("deleted", ()), "(deleted)"),
    }


def _content(info: Any, other: Any) -> Any:
    """What can be compared of a variable: records of earlier releases have no digests, and no reprs
    of handles.
    """
    if not (isinstance(info, Mapping) and isinstance(other, Mapping)):
        return info
    told = next((name for name in ("digest", "repr") if info.get(name) and other.get(name)), "type")
    return {name: info.get(name) for name in ("type", "size", told)}


def _places(diff: Mapping[str, Any], name: str) -> Iterable[str]:
    paths: Iterable[str] = diff.get("changed", {}).get(name, {}).get("paths", ())
    return paths


def _by_name(artifacts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {artifact["name"]: artifact["digest"] for artifact in artifacts}


def _text(execution: Mapping[str, Any], stream: str) -> str | None:
    """The digest of an execution's output: steps hold that alone, ends the text."""
    if execution.get(stream):
        return digest_of(execution[stream])
    return execution.get(f"{stream}_digest")


def _status(execution: Mapping[str, Any] | None) -> Any:
    return None if execution is None else execution.get("status")


def _made(turn: int, aspect: Aspect, subject: str, recorded: Any, now: Any) -> Divergence:
    return Divergence(
        turn=turn, aspect=aspect, subject=subject, recorded=_shown(recorded), now=_shown(now)
    )


def _begun(digest: re.Match[str]) -> str:
    return f"{digest[1]}…"


def _shown(value: Any) -> str:
    """A short text of a value."""
    match value:
        case None:
            return NOTHING
        case {"type": kind, "message": message}:
            text = f"{kind}: {message}"
        case {"obj_id": _, "digest": digest}:
            text = " ".join(
                [*(f"{k}={value[k]}" for k in ("type", "path", "pos") if k in value), str(digest)]
            )
        case {"type": kind, **rest}:
            size = f" of {rest['size']}" if rest.get("size") is not None else ""
            digest = f" ({rest['digest']})" if rest.get("digest") else ""
            text = f"{kind}{size} {rest.get('repr', '')}".rstrip() + digest
        case _:
            text = str(value)
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
