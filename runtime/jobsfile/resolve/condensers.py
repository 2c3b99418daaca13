"""How a job makes room: the kinds of its condensers, and whether their settings go together."""

from __future__ import annotations

from runtime.base.spec.models import CondenserSpec, ModelSettings, auto
from runtime.history.condensers.kinds import KINDS, SETTINGS
from runtime.history.condensers.settings import contradiction
from runtime.jobsfile.problems import Location, Problems
from runtime.jobsfile.resolve.disk import Disk
from runtime.jobsfile.resolve.models import model_of
from runtime.jobsfile.written.condensers import WrittenCondenser


def condensers_of(
    written: list[WrittenCondenser],
    at: Location,
    model: ModelSettings,
    disk: Disk,
    problems: Problems,
) -> tuple[CondenserSpec, ...]:
    """The condensers in order of preference; none for ``none``."""
    if [condenser.kind for condenser in written] == ["none"]:
        _ignored(written[0], {"max_size", "keep_first", *SETTINGS}, at, problems)
        return ()
    specs = []
    for index, condenser in enumerate(written):
        # One alone stands in most files without a list.
        where = (*at, index) if len(written) > 1 else at
        if condenser.kind == "none":
            problems.add(where, "'none' stands alone: it forgets nothing, and others would")
            continue
        specs.append(_condenser(condenser, where, model, disk, problems))
    return tuple(specs)


def _condenser(
    written: WrittenCondenser, at: Location, model: ModelSettings, disk: Disk, problems: Problems
) -> CondenserSpec:
    own = None
    if written.model is not None:
        own = model_of(written.model, (*at, "model"), disk, problems)
    kind = auto(own or model) if written.kind == "auto" else written.kind
    settings = KINDS[kind].settings
    if written.kind != "auto":
        # What is written beside "auto" may be meant for the other kind that it could become.
        _ignored(written, set(SETTINGS - settings), at, problems)
    # A setting that the kind does not have holds a default, which contradicts nothing.
    together = contradiction(
        max_size=written.max_size,
        keep_first=written.keep_first,
        input_tokens=written.input_tokens if "input_tokens" in settings else None,
        summary_tokens=written.summary_tokens,
    )
    if together is not None:
        problems.add((*at, together[0]), together[1])
    return CondenserSpec(
        kind=kind,
        max_size=written.max_size,
        keep_first=written.keep_first,
        model=own if "model" in settings else None,
        **{
            name: getattr(written, name)
            for name in ("input_tokens", "summary_tokens")
            if name in settings
        },
    )


def _ignored(written: WrittenCondenser, keys: set[str], at: Location, problems: Problems) -> None:
    """Refuse keys that mean nothing for the condenser's kind."""
    for key in sorted(keys & written.model_fields_set):
        problems.add((*at, key), f"a condenser of the kind {written.kind!r} has no {key!r}")
