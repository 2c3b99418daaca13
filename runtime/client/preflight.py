"""What is checked of a batch before anything is started, beyond what its file says of itself: all
problems at once.

Models (their provider, mode, key, packages and price, or what their script says), the archive, what
jobs begin with of other jobs' workspaces, and what this machine must have where it does the work:
secrets, sandboxes, MCP servers' programs. That what the file names is there (workspaces, scripts,
tools) is checked when it is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from runtime.archive.catalog import check_free
from runtime.archive.stores import open_store
from runtime.base.errors import ArchiveError, InputError
from runtime.base.roles import EVERY, Role, Roles, own_roles
from runtime.base.spec.finish import OnFinish, url_of, variable_of
from runtime.base.spec.models import NO_MODEL, Budget, JobSpec, ModelSettings, Writable
from runtime.client.beginnings import begun_with, missing
from runtime.jobsfile.load import Loaded
from runtime.jobsfile.problems import Location, Problems
from runtime.tools.environment import named_secrets
from runtime.tools.startable import faults as server_faults

_REMEMBERED = 4_096
"""Models that are asked about once, each with its options: jobs may have a seed each. And MCP
servers.
"""

_BUCKET = "s3://"

_WRITE_PRICE = (
    "'price: {input: 1.25, output: 10}' in the model's mapping (dollars per million tokens), or"
    " 'price: free'"
)


_NO_TURN = "jobs that have it, and have not ended, begin no other turn"


def check(
    loaded: Loaded,
    store: str | None,
    here: Roles | None = None,
    archive: Callable[[], str] | None = None,
) -> list[str]:
    """Check the models of the batch, each where it is named, and the archive at ``store``.

    Returns what is worth a note. ``archive`` tells the address of the one that has what the jobs
    begin with, None where that is not known. ``here`` are the parts of the work that are done on
    this machine, None for those of its environment: for the others, workers elsewhere have keys,
    packages, secrets and sandboxes.

    litellm is imported only where a model is none of the scripted ones.

    Raises:
        InputError: with every problem, by line.
        ArchiveError: if there is none, and the archive cannot be reached or written.
    """
    problems, notes = loaded.problems, dict[str, None]()
    if here is None:
        here = own_roles() or EVERY
    elsewhere = Role.MODELS not in here
    fault = _store_fault(store, loaded) if store is not None else None
    # Many jobs name few models, and the first check of one imports litellm.
    checked: dict[str, list[str]] = {}
    servers: dict[str, list[tuple[Location, str]]] = {}
    for index, job in enumerate(loaded.batch.jobs):
        for model, at in _models(index, job, problems):
            # Of what is no file nothing is read: it may be a pipe.
            if model.name == NO_MODEL or (model.script and at in problems.by_location):
                continue
            known = model.script or f"{job.form} {model.model_dump_json()}"
            if known not in checked:
                if len(checked) == _REMEMBERED:
                    checked.clear()
                checked[known] = _faults(model, job.form, elsewhere=elsewhere)
            if faults := checked[known]:
                problems.add(at, "; ".join(faults))
            if model.script is None:
                notes |= dict.fromkeys(_unpriced(model, job, index, at, problems))
        if has_passed(job.budget):
            notes |= {f"the deadline {job.budget.deadline} has passed: {_NO_TURN}": None}
        if job.writable is not None and Role.SANDBOXES in here:
            _check_hands(job.writable, index, problems)
        if Role.TOOLS in here:
            _check_secrets(job, index, problems)
            _check_servers(job, index, problems, servers)
        if Role.READS in here:
            notes |= dict.fromkeys(_unmasked(job))
    if Role.TOOLS in here:
        _check_finish(loaded.batch.on_finish, problems)
    # Asked only then: to know it may make the state directory.
    if archive is not None and (wanted := begun_with(loaded.batch)):
        for index, told in missing(loaded.batch, wanted, archive()):
            problems.add((*_workspace(index, problems), "from"), told)
    problems.raise_if_any()
    if fault is not None:
        raise fault
    return list(notes)


def check_model(
    model: ModelSettings, form: str, budget: Budget, *, elsewhere: bool = False
) -> list[str]:
    """Check a model that a replay or a fork is to have from a turn on, as one of a jobs file is.

    Returns what is worth a note. ``elsewhere``: its calls are made by workers with keys and
    packages of their own.

    Raises:
        InputError: if it cannot be called, or has no price and ``budget`` is one in dollars.
    """
    here = own_roles() or EVERY
    if told := _faults(model, form, elsewhere=elsewhere or Role.MODELS not in here):
        raise InputError(f"--model: {'; '.join(told)}")
    if model.script is not None:
        return []
    from activities.known_models import is_priced

    if is_priced(model.name, model.options):
        return []
    if budget.usd != Budget().usd:
        raise InputError(f"--model: {_would_not_hold(model)}")
    return [_counts_as_free(model)]


def has_passed(budget: Budget) -> bool:
    """Whether a budget has a deadline that is a time, and has passed."""
    deadline = budget.deadline
    return isinstance(deadline, str) and datetime.fromisoformat(deadline) <= datetime.now(UTC)


def _store_fault(store: str, loaded: Loaded) -> ArchiveError | InputError | None:
    """What keeps the archive from being written, unless that is a problem of the file, which names
    no store, or a directory that can be none. What a bucket answers, or that it answers nothing, is
    no fault of the file.
    """
    try:
        # A bucket that does not answer is waited for once.
        if not store.startswith(_BUCKET):
            check_free(store)
        open_store(store)
    except (ArchiveError, InputError) as error:
        named = store == loaded.batch.store and loaded.problems.has(("store",))
        if not named or (store.startswith(_BUCKET) and isinstance(error, ArchiveError)):
            return error
        loaded.problems.add(("store",), str(error))
    return None


def _check_hands(writable: Writable, index: int, problems: Problems) -> None:
    """See that commands can be run here as the job wants them."""
    from runtime.sandbox.choice import sandbox_of
    from runtime.sandbox.command import SandboxUnavailable

    at = _workspace(index, problems)
    try:
        sandbox_of(writable.sandbox)
        named_secrets(writable.secrets, os.environ)
    except (SandboxUnavailable, ValueError) as error:
        problems.add(at, str(error))
    except OSError as error:
        problems.add(at, f"no command could be tried here: {error}")


def _workspace(index: int, problems: Problems) -> Location:
    """Where the file names a job's workspace."""
    own = problems.has(("jobs", index, "workspace"))
    return ("jobs", index, "workspace") if own else ("defaults", "workspace")


def _check_secrets(job: JobSpec, index: int, problems: Problems) -> None:
    """See that the job's tools can be given what it names."""
    own = problems.has(("jobs", index, "secrets"))
    try:
        named_secrets(job.secrets, os.environ)
    except ValueError as error:
        problems.add(("jobs", index, "secrets") if own else ("defaults", "secrets"), str(error))


def _unmasked(job: JobSpec) -> Iterator[str]:
    """A note of each variable whose value is to be masked, and that is not set: it may be one that
    others have, or misspelt.
    """
    for name in job.redact.env:
        if name not in os.environ:
            yield f"redact: {name} is not set in the environment of this command: it masks nothing"


def _check_finish(told: OnFinish | None, problems: Problems) -> None:
    """See that whoever is told of ends has an address."""
    if told is None or told.webhook is None or url_of(told.webhook, os.environ) is not None:
        return
    text = f"set {variable_of(told.webhook)} to a URL in the environment of this command"
    problems.add(("on_finish", "webhook"), text)


def _check_servers(
    job: JobSpec, index: int, problems: Problems, checked: dict[str, list[tuple[Location, str]]]
) -> None:
    """See that the job's MCP servers can be started: without one it would go on, and be told."""
    own = problems.has(("jobs", index, "mcp"))
    at: Location = ("jobs", index, "mcp") if own else ("defaults", "mcp")
    for server in job.mcp:
        known = server.model_dump_json()
        if known not in checked:
            if len(checked) == _REMEMBERED:
                checked.clear()
            checked[known] = list(server_faults(server, os.environ))
        for key, text in checked[known]:
            problems.add((*at, server.name, *key), text)


def _faults(model: ModelSettings, form: str, *, elsewhere: bool) -> list[str]:
    if model.script is None:
        from activities.known_models import faults

        return list(faults(model.name, model.options, form, elsewhere=elsewhere))
    from activities._script import fault

    # Elsewhere another file may be at the same path.
    told = None if elsewhere else fault(model.script)
    return [told] if told is not None else []


def _unpriced(
    model: ModelSettings, job: JobSpec, index: int, at: Location, problems: Problems
) -> Iterator[str]:
    """A note that the model's calls count as free; where the file has a budget in dollars, that is
    a problem instead.
    """
    from activities.known_models import is_priced

    if is_priced(model.name, model.options) or at in problems.by_location:
        return
    if _has_usd(job, index, problems):
        problems.add(at, _would_not_hold(model))
    else:
        yield _counts_as_free(model)


def _would_not_hold(model: ModelSettings) -> str:
    return (
        f"no price is known of {model.name}, so the budget's usd would not hold: write"
        f" {_WRITE_PRICE}"
    )


def _counts_as_free(model: ModelSettings) -> str:
    return f"no price is known of {model.name}: its calls count as $0 (write {_WRITE_PRICE})"


def _has_usd(job: JobSpec, index: int, problems: Problems) -> bool:
    """Whether the file sets a budget in dollars for the job, its sub-jobs or all jobs together; the
    default is there to stop what nobody thought of.
    """
    keys = ["budget"] if job.spawn is None else ["budget", "spawn"]
    places: list[Location] = [("budget",)]
    places += [(*at, key) for at in (("jobs", index), ("defaults",)) for key in keys]
    return job.budget.usd != Budget().usd or any(problems.has((*at, "usd")) for at in places)


def _models(
    index: int, job: JobSpec, problems: Problems
) -> Iterator[tuple[ModelSettings, Location]]:
    """The models of a job, each with where the file names it."""

    def place(key: str, *rest: str | int) -> Location:
        inherited = not problems.has(("jobs", index, key)) and problems.has(("defaults", key))
        return ("defaults", key, *rest) if inherited else ("jobs", index, key, *rest)

    yield job.model, place("model")
    if job.summary_model is not None:
        yield job.summary_model, place("summary_model")
    if job.spawn is not None and job.spawn.model is not None:
        yield job.spawn.model, place("spawn", "model")
    for number, condenser in enumerate(job.condenser):
        if condenser.model is not None:
            rest = (number, "model") if len(job.condenser) > 1 else ("model",)
            yield condenser.model, place("condenser", *rest)
