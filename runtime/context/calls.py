"""Calls of the model's functions and of nodes' methods: bound, checked, and carried out in the
store's gate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime.base.characters import as_literal
from runtime.base.fences import fenced
from runtime.context import api, arguments, groups, notes, sub_jobs, views, waits
from runtime.context.describe import describe_change, header, small_digest, table_line
from runtime.context.diffs import diff_text, fit_lines
from runtime.context.index import creation_order
from runtime.context.outcomes import (
    NeedsRead,
    NodeRef,
    Outcome,
    PendingCall,
    Raised,
    Refused,
    Returned,
)
from runtime.context.sources import ALL_TOKENS, ReadRequest, ReadResult, ReadStatus
from runtime.context.states import (
    DIFF_LOD,
    AnyNode,
    DirtyFlags,
    Freq,
    GroupState,
    Mode,
    NoteState,
    RenderedView,
    ViewState,
    Wait,
)
from runtime.context.store import Cause, NodeStore

FUNCTIONS = {signature.name: signature for signature in api.FUNCTIONS}
METHODS = {kind: api.by_spelling(handle.methods) for kind, handle in api.HANDLES.items()}


def schedule(call: str, bound: dict[str, Any], default: Mode) -> dict[str, Any]:
    """``mode`` and ``freq`` as a node keeps them.

    ``freq`` alone means running; running alone means ``Sync``.
    """
    freq = arguments.optional(arguments.freq, call, bound.get("freq"))
    mode = arguments.optional(arguments.mode, call, bound.get("mode"))
    if mode is None:
        mode = default if freq is None else Mode.RUNNING
    if mode is Mode.RUNNING and freq is None:
        freq = Freq()
    return {"mode": mode, "freq": freq}


def text_of(store: NodeStore, state: AnyNode, lod: int, budget: int) -> str:
    """A node's text at a level it can show without reading, within ``budget``."""
    rendering, previous = state.rendering, state.previous
    if (
        isinstance(state, GroupState)
        and lod != DIFF_LOD
        and (lod, budget) != (rendering.lod, rendering.budget)
    ):
        return groups.summary_of(store, state, lod=lod, tokens=budget).text
    # A diff needs two texts of one kind: before that, the whole text is what is new.
    if lod == DIFF_LOD and previous is not None and previous.lod == rendering.lod:
        return diff_text(previous, rendering, budget, store.count)
    return cut(rendering, budget, store.count)


def cut(rendering: RenderedView, budget: int, count: Callable[[str], int]) -> str:
    """A rendering's text within ``budget``, by whole lines, and a last line on what was cut."""
    # What was made for this very budget is not cut again.
    if budget in (ALL_TOKENS, rendering.budget) or rendering.tokens <= budget:
        return rendering.text
    lines = rendering.text.splitlines()
    # The notice has its room first, with the largest number that it may tell.
    kept = fit_lines(lines, max(budget - count(f"\n... {len(lines)} more lines"), 0), count)
    return "\n".join([*kept, f"... {len(lines) - len(kept)} more lines"])


def framed(store: NodeStore, state: AnyNode, lod: int, text: str) -> str:
    """A node's text under its header, which names the level that the text has, not the one that was
    wished for.
    """
    if isinstance(state, ViewState) and lod != DIFF_LOD:
        lod = state.rendering.lod
    # Counting is dear: where it is the rendering's own text, its count is known.
    tokens = state.rendering.tokens if text == state.rendering.text else store.count(text)
    above = header(state, store.name, lod=lod, tokens=tokens)
    return f"{above}\n{fenced(text)}" if text else above


class Calls:
    """Carries out calls on one store."""

    def __init__(self, store: NodeStore) -> None:
        self._store = store
        self._functions: dict[str, Callable[..., Outcome]] = {
            "view": self._view,
            "group": self._group,
            "ls": self._ls,
            "show": self._show,
            "pin": self._pin,
            "note": self._note,
            "wait": self._wait,
            "wait_for": self._wait_for,
            "tick": lambda *_: Returned(),
        }
        self._methods: dict[str, Callable[..., Outcome]] = {
            "SetLod": self._set_lod,
            "SetTokens": self._set_tokens,
            "SetPos": self._set_pos,
            "Scroll": self._scroll,
            "Add": self._add,
            "Remove": self._remove,
            "SetText": self._set_text,
            "Append": self._append,
            "Run": self._run,
            "Pause": self._pause,
            "Refresh": self._refresh,
            "Render": self._render,
            "GetDigest": self._get_digest,
        }

    def function(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
        """One of the model's functions, but ``tick`` (``ticks.py``) and ``finish`` (the
        runner's).
        """
        signature = FUNCTIONS.get(name)
        if signature is None:
            return Raised("NameError", f"name {as_literal(name)} is not defined")
        try:
            bound = signature.bind(args, kwargs)
            return self._functions[name](bound, args, kwargs)
        except Refused as refused:
            return refused.raised

    def method(
        self, obj_id: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Outcome:
        """A method of a node, in either spelling."""
        state = self._store.nodes[obj_id]
        signature = METHODS[state.obj_type].get(name)
        if signature is None:
            return Raised("AttributeError", missing(state, name))
        try:
            bound = signature.bind(args, kwargs)
            with self._store.method(obj_id, signature.name, args, kwargs) as event:
                outcome = self._methods[signature.name](obj_id, bound, args, kwargs)
                # A call that waits for a read has changed nothing yet; ``complete`` records it.
                event.wanted = not isinstance(outcome, NeedsRead)
                return outcome
        except Refused as refused:
            return refused.raised

    def _view(
        self, bound: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Outcome:
        lod = arguments.view_lod("view", bound.get("lod", 0))
        draft = ViewState(
            obj_id="view-0",
            path=arguments.path("view", bound["path"]),
            pos=arguments.pos("view", bound.get("pos", "0:0")),
            tokens=arguments.tokens("view", bound.get("tokens", 2000)),
            lod=lod,
            # No reading is of level 3: a diff compares two renderings of a level below it.
            base_lod=0 if lod == DIFF_LOD else lod,
            **schedule("view", bound, Mode.PAUSED),
        )
        # The id last: a call that is refused for its arguments takes no number.
        draft = draft.evolve(obj_id=self._store.next_id("view"))
        request = views.request_for(draft)
        return NeedsRead(
            request,
            PendingCall("view", draft.obj_id, request, draft=draft, args=args, kwargs=kwargs),
        )

    def _group(
        self, bound: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Outcome:
        members = self._nodes("group", bound.get("members", ()))
        lod = arguments.group_lod("group", bound.get("lod", 2))
        draft = GroupState(
            obj_id="group-0",
            members=tuple(dict.fromkeys(members)),
            tokens=arguments.tokens("group", bound.get("tokens", 500)),
            lod=lod,
            base_lod=2 if lod == DIFF_LOD else lod,
            # It is made of its members as they are now: its throttle counts from here.
            last_tick_turn=self._store.turn,
            **schedule("group", bound, Mode.RUNNING),
        )
        # Members that are groups first: this one shows what they show.
        groups.recompute_due(self._store, draft.members, Cause.CALL)
        obj_id = self._store.next_id("group")
        with self._store.method(obj_id, "group", args, kwargs):
            self._store.add(groups.recomputed(self._store, draft.evolve(obj_id=obj_id)))
        return Returned(NodeRef(obj_id))

    def _wait(self, bound: dict[str, Any], *_: Any) -> Outcome:
        return self._sleep(
            "wait", Wait(seconds=arguments.seconds("wait", "seconds", bound["seconds"]))
        )

    def _wait_for(self, bound: dict[str, Any], *_: Any) -> Outcome:
        nodes = [
            arguments.node("wait_for", f"argument {i + 1}", node)
            for i, node in enumerate(bound.get("nodes", ()))
        ]
        if nodes and all(sub_jobs.has_ended(self._store, node) for node in nodes):
            return Returned()
        nodes = [node for node in nodes if not sub_jobs.has_ended(self._store, node)]
        timeout = bound.get("timeout")
        seconds = None if timeout is None else arguments.seconds("wait_for", "timeout", timeout)
        wait = Wait(seconds=seconds, change=True, nodes=tuple(dict.fromkeys(nodes)))
        still = [
            n for n in waits.awaited(self._store, wait) if not waits.can_change(self._store, n)
        ]
        if nodes and len(still) == len(wait.nodes):
            names = ", ".join(self._store.name(n) for n in still)
            raise Refused(
                ValueError,
                f"wait_for: nothing would change {names}: Run() a view first, and have its group"
                " run; wait(seconds) just sleeps",
            )
        if not nodes and not any(
            waits.can_change(self._store, n) for n in self._store.index.running
        ):
            raise Refused(
                ValueError, "wait_for: no view runs, so nothing would change; Run() one first"
            )
        return self._sleep("wait_for", wait)

    def _sleep(self, call: str, wait: Wait) -> Outcome:
        if len(self._store.waits) == waits.MOST_WAITS:
            raise Refused(ValueError, f"{call}: a statement may ask for {waits.MOST_WAITS} waits")
        self._store.waits.append(wait)
        return Returned()

    def spawned(
        self, job: str, goal: str, args: tuple[Any, ...], kwargs: dict[str, Any], *, ended: bool
    ) -> Outcome:
        """The view of a sub-job that was started."""
        obj_id = self._store.next_id("view")
        draft, request = sub_jobs.draft_of(obj_id, job, ended=ended)
        call = PendingCall("spawn", obj_id, request, draft=draft, args=args, kwargs=kwargs)
        outcome = self._made(call, draft, sub_jobs.first_reading(request, goal))
        if ended:
            self._store.put(sub_jobs.to_be_read(self._store.view(obj_id)), Cause.CALL)
        return outcome

    def _note(
        self, bound: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Outcome:
        text = arguments.text("note", "text", bound["text"])
        tokens = arguments.tokens("note", bound.get("tokens", notes.NOTE_TOKENS))
        blank = NoteState(obj_id="note-0", tokens=tokens, lod=0, base_lod=0, pinned=notes.PINNED)
        draft = notes.written("note", blank, text, tokens, self._store.count)
        obj_id = self._store.next_id("note")
        with self._store.method(obj_id, "note", args, kwargs):
            self._store.add(draft.evolve(obj_id=obj_id))
        return Returned(NodeRef(obj_id))

    def _set_text(self, obj_id: str, bound: dict[str, Any], *_: Any) -> Outcome:
        return self._write(obj_id, "SetText", arguments.text("SetText", "text", bound["text"]))

    def _append(self, obj_id: str, bound: dict[str, Any], *_: Any) -> Outcome:
        text = arguments.text("Append", "text", bound["text"])
        before = self._store.note(obj_id).rendering.text
        return self._write(obj_id, "Append", f"{before}\n{text}" if before else text)

    def _write(self, obj_id: str, call: str, text: str) -> Outcome:
        state = self._store.note(obj_id)
        return self._set(notes.written(call, state, text, state.tokens, self._store.count))

    def _nodes(self, call: str, values: tuple[Any, ...]) -> list[str]:
        if not values:
            raise Refused(ValueError, f"{call}: at least one handle is needed, as in {call}(foo)")
        return [arguments.node(call, f"argument {i + 1}", value) for i, value in enumerate(values)]

    def _ls(self, bound: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
        del bound, args, kwargs
        return Returned([self.line(obj_id) for obj_id in self._store.nodes])

    def line(self, obj_id: str) -> str:
        """A node's line in the handle table."""
        return table_line(
            self._store.nodes[obj_id], self._store.name(obj_id), changed=self.changed(obj_id)
        )

    def changed(self, obj_id: str) -> bool:
        """Named by the last delta feed, or visibly different since."""
        before = self._store.shown_before.get(obj_id)
        since = before is not None and describe_change(
            before, self._store.nodes[obj_id], self._store.name
        )
        return obj_id in self._store.changed or bool(since)

    def _show(
        self, bound: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Outcome:
        obj_id = arguments.node("show", "obj", bound["obj"])
        return self._answer("show", obj_id, bound, args, kwargs)

    def _render(
        self, obj_id: str, bound: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Outcome:
        return self._answer("Render", obj_id, bound, args, kwargs)

    def _answer(
        self,
        name: str,
        obj_id: str,
        bound: dict[str, Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Outcome:
        """The text for ``show`` and ``Render``: from what is known, or after a read."""
        state = self._store.nodes[obj_id]
        tokens = arguments.optional(arguments.tokens, name, bound.get("tokens"))
        if isinstance(state, NoteState):
            arguments.optional(arguments.note_lod, name, bound.get("lod"))
            return self._answered(name, state, None, tokens)
        if isinstance(state, GroupState):
            lod = arguments.optional(arguments.group_lod, name, bound.get("lod"))
            groups.recompute_due(self._store, [obj_id], Cause.CALL)
            return self._answered(name, self._store.nodes[obj_id], lod, tokens)
        lod = arguments.optional(arguments.view_lod, name, bound.get("lod"))
        request = views.request_for(state, lod=lod, tokens=tokens)
        # Only a reading at the node's own level and budget becomes the node's; any other is for
        # this answer alone.
        keep = (request.lod, request.tokens) == (state.base_lod, state.tokens)
        if state.dirty.explicit or not keep:
            return NeedsRead(
                request, PendingCall(name, obj_id, request, keep, None, lod, tokens, args, kwargs)
            )
        return self._answered(name, state, lod, tokens)

    def _answered(self, name: str, state: AnyNode, lod: int | None, tokens: int | None) -> Outcome:
        level = state.lod if lod is None else lod
        text = text_of(self._store, state, level, state.tokens if tokens is None else tokens)
        if name == "show":
            return Returned(framed(self._store, state, level, text), display=True)
        return Returned(text)

    def _pin(self, bound: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
        obj_id = arguments.node("pin", "obj", bound["obj"])
        reason = arguments.reason("pin", bound.get("reason", "pinned"))
        with self._store.method(obj_id, "pin", args, kwargs):
            self._store.put(self._store.nodes[obj_id].evolve(pinned=reason), Cause.CALL)
        return Returned()

    def _set_lod(self, obj_id: str, bound: dict[str, Any], *_: Any) -> Outcome:
        state = self._store.nodes[obj_id]
        if isinstance(state, ViewState):
            lod = arguments.view_lod("SetLod", bound["lod"])
            changed: AnyNode = views.with_policy(state, lod=lod)
        else:
            lod = arguments.group_lod("SetLod", bound["lod"])
            changed = self._group_policy(self._store.group(obj_id), lod=lod)
        # Level 3 tells what is new since the model looked last, which may be several readings ago.
        if lod == DIFF_LOD and state.lod != DIFF_LOD:
            changed = changed.evolve(previous=self._store.last_shown(obj_id))
        return self._set(changed)

    def _set_tokens(self, obj_id: str, bound: dict[str, Any], *_: Any) -> Outcome:
        state = self._store.nodes[obj_id]
        tokens = arguments.tokens("SetTokens", bound["tokens"])
        if isinstance(state, ViewState):
            return self._set(views.with_policy(state, tokens=tokens))
        if isinstance(state, NoteState):
            return self._set(
                notes.written("SetTokens", state, state.rendering.text, tokens, self._store.count)
            )
        return self._set(self._group_policy(state, tokens=tokens))

    def _group_policy(
        self, state: GroupState, *, lod: int | None = None, tokens: int | None = None
    ) -> GroupState:
        lod = state.lod if lod is None else lod
        base = state.base_lod if lod == DIFF_LOD else lod
        tokens = state.tokens if tokens is None else tokens
        behind = state.dirty.explicit or (base, tokens) != (
            state.rendering.lod,
            state.rendering.budget,
        )
        return state.evolve(
            lod=lod, base_lod=base, tokens=tokens, dirty=DirtyFlags(policy_changed=behind)
        )

    def _set(self, state: AnyNode) -> Outcome:
        self._store.put(state, Cause.CALL)
        return Returned(NodeRef(state.obj_id))

    def _set_pos(self, obj_id: str, bound: dict[str, Any], *_: Any) -> Outcome:
        pos = arguments.pos("SetPos", bound["pos"])
        return self._set(views.with_policy(self._store.view(obj_id), pos=pos))

    def _scroll(self, obj_id: str, bound: dict[str, Any], *_: Any) -> Outcome:
        state = self._store.view(obj_id)
        lines = arguments.whole("Scroll", "delta_lines", bound.get("delta_lines", 0))
        tokens = arguments.whole("Scroll", "delta_tokens", bound.get("delta_tokens", 0))
        if tokens:
            lines += views.lines_for_tokens(state, tokens)
        return self._set(views.with_policy(state, pos=views.scrolled(state, lines)))

    def _add(self, obj_id: str, bound: dict[str, Any], *_: Any) -> Outcome:
        added = self._nodes("Add", bound.get("members", ()))
        return self._set(groups.with_members(self._store, self._store.group(obj_id), added))

    def _remove(self, obj_id: str, bound: dict[str, Any], *_: Any) -> Outcome:
        group = self._store.group(obj_id)
        removed = self._nodes("Remove", bound.get("members", ()))
        for member in removed:
            if member not in group.members:
                raise Refused(
                    ValueError,
                    f"Remove: {self._store.name(member)} is not in {self._store.name(obj_id)}",
                )
        members = tuple(m for m in group.members if m not in removed)
        if not members:
            raise Refused(
                ValueError, "Remove: a group keeps at least one member; Pause() it instead"
            )
        return self._set(group.evolve(members=members, dirty=DirtyFlags(policy_changed=True)))

    def _run(self, obj_id: str, bound: dict[str, Any], *_: Any) -> Outcome:
        freq = arguments.freq("Run", bound.get("freq", "Sync"))
        interval = arguments.interval("Run", bound.get("min_turn_interval", 1))
        state = self._store.nodes[obj_id]
        # An interval begins anew with the schedule: the next tick is the first of it.
        last = state.last_tick_at if (state.mode, state.freq) == (Mode.RUNNING, freq) else None
        return self._set(
            state.evolve(
                mode=Mode.RUNNING, freq=freq, min_turn_interval=interval, last_tick_at=last
            )
        )

    def _pause(self, obj_id: str, *_: Any) -> Outcome:
        return self._set(self._store.nodes[obj_id].evolve(mode=Mode.PAUSED))

    def _refresh(
        self, obj_id: str, bound: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Outcome:
        del bound
        state = self._store.nodes[obj_id]
        if isinstance(state, ViewState):
            request = views.request_for(state)
            return NeedsRead(
                request, PendingCall("Refresh", obj_id, request, args=args, kwargs=kwargs)
            )
        groups.recompute_due(self._store, self._store.group(obj_id).members, Cause.CALL)
        return self._set(groups.recomputed(self._store, self._store.group(obj_id)))

    def _get_digest(self, obj_id: str, *_: Any) -> Outcome:
        return Returned(dict(small_digest(self._store.nodes[obj_id], self._store.digest(obj_id))))

    def complete(self, call: PendingCall, result: ReadResult) -> Outcome:
        """Go on with ``call`` after its read.

        Raises:
            ValueError: if ``result`` answers another request.
        """
        if result.obj_id != call.request.obj_id:
            raise ValueError(
                f"a reading for {result.obj_id} cannot complete a call on {call.obj_id}"
            )
        if call.draft is not None:
            return self._made(call, call.draft, result)
        with self._store.method(call.obj_id, call.name, call.args, call.kwargs):
            state = self._store.view(call.obj_id)
            if call.keep:
                # Before the error is raised: that its source cannot be read is the node's state,
                # too.
                state = apply_reading(self._store, state, call.request, result, Cause.CALL)
            if result.status is ReadStatus.ERROR:
                return raised_by(result)
            if call.name == "Refresh":
                return Returned(NodeRef(call.obj_id))
            return self._answer_from(call, state, result)

    def _made(self, call: PendingCall, draft: ViewState, result: ReadResult) -> Outcome:
        if result.status is ReadStatus.ERROR:
            return raised_by(result)
        state = views.with_reading(draft, call.request, result, None, self._store.count)
        with self._store.method(call.obj_id, call.name, call.args, call.kwargs):
            self._store.add(state)
            note_source(self._store, state, Cause.CALL)
        return Returned(NodeRef(call.obj_id))

    def _answer_from(self, call: PendingCall, state: ViewState, result: ReadResult) -> Outcome:
        if call.keep:
            return self._answered(call.name, state, call.lod, call.tokens)
        rendering = views.rendering_of(call.request, result, self._store.count)
        fresh = state.evolve(rendering=rendering, fault=None, dirty=DirtyFlags())
        note_source(self._store, fresh, Cause.CALL)
        return self._answered(call.name, fresh, call.lod, call.tokens)


def apply_reading(
    store: NodeStore, state: ViewState, request: ReadRequest, result: ReadResult, cause: Cause
) -> ViewState:
    """Put a node's own reading into its state, and mark the views that it shows to be behind."""
    changed = views.with_reading(
        state, request, result, store.last_shown(state.obj_id), store.count
    )
    store.put(changed, cause)
    if changed.rendering.fingerprint != state.rendering.fingerprint:
        note_source(store, changed, cause)
    return changed


def note_source(store: NodeStore, fresh: ViewState, cause: Cause) -> None:
    """Mark the paused views of the same path that show another content of it; running ones are read
    anyway.
    """
    # In an order that every process has: each change below is an event with a number.
    for obj_id in creation_order(store.index.paths.get(fresh.path, ())):
        state = store.view(obj_id)
        if state is fresh:
            continue
        behind = state.rendering.fingerprint != fresh.rendering.fingerprint
        # Both ways: a file that is as it was again makes nothing look old.
        if state.mode is Mode.PAUSED and behind != state.dirty.source_changed:
            dirty = state.dirty.evolve(source_changed=behind)
            # What a statement changed is marked already: this is somebody else's change, or one
            # that was undone.
            store.put(state.evolve(dirty=dirty, written=None), cause)


def raised_by(result: ReadResult) -> Raised:
    """The exception that a failed reading raises in the statement."""
    return Raised(result.error_type or "OSError", result.error_message)


def missing(state: AnyNode, name: str) -> str:
    """The message of an ``AttributeError``: what there is instead."""
    handle = api.HANDLES[state.obj_type]
    known = ", ".join(s.name for s in handle.methods)
    if name in api.by_spelling(handle.methods):
        return f"{name} is a method: call it, as in {name}(...)"
    return f"{handle.name!r} object has no attribute {as_literal(name)}; its methods are {known}"
