"""Filling in what a checked jobs file leaves out, and checking what it names: directories, scripts,
tools, schemas.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from runtime.base.addresses import SCHEME, WORKSPACE_OF
from runtime.base.effect_classes import Approval, EffectClass
from runtime.base.errors import InputError
from runtime.base.own_headers import headers_in, is_variable, is_withheld, own_headers
from runtime.base.places import expanded, is_directory, is_file, split_url
from runtime.base.quoted import shown
from runtime.base.redaction.computed import without_keys
from runtime.base.redaction.rules import Redaction
from runtime.base.spec.finish import FinishEvent, OnFinish
from runtime.base.spec.models import (
    NO_MODEL,
    Approvals,
    BatchBudget,
    Budget,
    CommandRule,
    CondenserSpec,
    JobSpec,
    Limits,
    ModelSettings,
    ProjectionPolicy,
    Retry,
    Sections,
    Spawn,
    ToolSpec,
    Writable,
    auto,
)
from runtime.base.spec.servers import ServerSpec
from runtime.history.condensers.kinds import KINDS, SETTINGS
from runtime.history.condensers.settings import contradiction
from runtime.jobsfile.problems import Location, Problems
from runtime.jobsfile.written.approvals import WrittenApprovals
from runtime.jobsfile.written.bounds import MAX_OPTION_BYTES
from runtime.jobsfile.written.budgets import WrittenBatchBudget, WrittenBudget
from runtime.jobsfile.written.condensers import WrittenCondenser
from runtime.jobsfile.written.file import STORE_SCHEMES, WrittenHeader
from runtime.jobsfile.written.job import WrittenJob
from runtime.jobsfile.written.limits import WrittenLimits
from runtime.jobsfile.written.models import REPLY_LIMITS, SET_BY_HOLDFAST, WrittenModel
from runtime.jobsfile.written.redaction import WrittenRedaction
from runtime.jobsfile.written.retry import WrittenRetry
from runtime.jobsfile.written.secret_names import is_secret_key, is_secret_name
from runtime.jobsfile.written.sections import WrittenSections
from runtime.jobsfile.written.servers import WrittenServer
from runtime.jobsfile.written.settings import WrittenSettings
from runtime.jobsfile.written.spawn import WrittenSpawn
from runtime.jobsfile.written.workspace import WrittenWorkspace
from runtime.tools.functions import check_name
from runtime.tools.host import ToolHosts, described

_SET_INSTEAD = "set the provider's environment variable instead, such as OPENAI_API_KEY"

SCRIPTED = "scripted/"

P = TypeVar("P")

REMEMBERED = 4_096
"""So many answers of the disk, of each kind, are remembered."""


class _Values:
    """What a job's settings are: its own, else the defaults'.

    ``inherited`` has the parts that come of defaults alone: they are made once for all jobs.
    """

    def __init__(
        self, index: int, job: WrittenJob, defaults: WrittenSettings, inherited: dict[str, Any]
    ) -> None:
        self._index = index
        self._job = job
        self._defaults = defaults
        self._inherited = inherited

    def of(self, key: str) -> tuple[Any, Location]:
        """A setting as it is written, and where."""
        if key in self._job.model_fields_set:
            return getattr(self._job, key), ("jobs", self._index, key)
        return getattr(self._defaults, key), ("defaults", key)

    def once(self, make: Callable[[], P], part: str, *also: str) -> P:
        """The part called as its key is, made of that key and ``also`` of others."""
        if not self._job.model_fields_set.isdisjoint((part, *also)):
            return make()
        if part not in self._inherited:
            self._inherited[part] = make()
        shared: P = self._inherited[part]
        return shared


class Resolver:
    """The resolution of one file's jobs.

    What the disk says is asked once for each value, not for each job.

    Args:
        directory: the absolute directory that the file's paths are relative to.
        header: the file's checked header.
        problems: takes what is wrong.
    """

    def __init__(self, directory: Path, header: WrittenHeader, problems: Problems) -> None:
        self._directory = directory
        self._header = header
        self._defaults = header.defaults
        self._problems = problems
        self._tools: dict[tuple[str, tuple[str, ...]], ToolSpec | str] = {}
        self._hosts = ToolHosts()
        self._inherited: dict[str, Any] = {}
        # For this file alone: when the next one is read, the disk may be another.
        self._workspace_fault = lru_cache(REMEMBERED)(workspace_fault)
        self._is_script = lru_cache(REMEMBERED)(is_file)
        self._schema_fault = lru_cache(REMEMBERED)(_schema_fault)
        self._tools_path = self._path(header.tools_path or ".", ("tools_path",))

    def close(self) -> None:
        """End the process in which tools were imported."""
        self._hosts.close()

    def store(self) -> str | None:
        """The archive's URL, or the absolute path of its directory."""
        store = self._header.store
        if store is None:
            return None
        scheme, separator, _ = store.partition("://")
        if not separator:
            return self._path(store, ("store",))
        # Before the scheme is looked at, whose error repeats the URL.
        if _has_userinfo(store):
            self._problems.add(
                ("store",), "expected no credentials in the URL; set AWS_ACCESS_KEY_ID and its like"
            )
        elif scheme not in STORE_SCHEMES:
            self._problems.add(
                ("store",),
                f"expected a directory or a URL of {' or '.join(STORE_SCHEMES)}, got"
                f" {shown(store)}",
            )
        else:
            try:
                split_url(store)
            except InputError as error:
                self._problems.add(("store",), str(error))
        return store

    def on_finish(self) -> OnFinish | None:
        """Who is told of ends."""
        written = self._header.on_finish
        if written is None:
            return None
        return OnFinish(
            command=written.command,
            webhook=written.webhook,
            events=tuple(dict.fromkeys(map(FinishEvent, written.events))),
            timeout=written.timeout,
            directory=str(self._directory),
        )

    def jobs(self, written: Iterable[tuple[int, WrittenJob]]) -> Iterator[JobSpec]:
        """The resolved jobs; those that cannot be are left out, and what is wrong with them is
        noted.
        """
        if self._header.tools_path and not is_directory(self._tools_path):
            self._problems.add(("tools_path",), f"no such directory: {shown(self._tools_path)}")
        # Also where every job names a model of its own: all that is wrong in the file is told.
        if self._defaults.model is not None:
            self.model(self._defaults.model, ("defaults", "model"))
        for index, job in written:
            resolved = self._job(index, job)
            if resolved is not None:
                yield resolved

    def _job(self, index: int, job: WrittenJob) -> JobSpec | None:
        """One job, or None where something it needs is missing."""
        values = _Values(index, job, self._defaults, self._inherited)
        missing = [key for key in ("model", "workspace") if values.of(key)[0] is None]
        for key in missing:
            place = ("jobs", index, key)
            self._problems.add(place, "required key is missing, here and in 'defaults'")
        # Also of a job that lacks something: all that is wrong is told at once.
        secrets = tuple(values.of("secrets")[0])
        tools = self._job_tools(*values.of("tools"), secrets)
        servers = self._servers(*values.of("mcp"), {tool.name for tool in tools})
        schema, at = values.of("result")
        self._result(schema, at)
        if missing:
            return None
        workspace, writable = values.once(
            lambda: self._workspace(*values.of("workspace")), "workspace"
        )
        if writable is None:
            self._check_files(tools, values.of("tools")[1])
        self._check_queues(tools, values.of("tools")[1])
        form = values.of("form")[0]
        return JobSpec(
            id=job.id,
            goal=job.goal,
            workspace=workspace,
            writable=writable,
            tools=tools,
            secrets=secrets,
            mcp=servers,
            # It is checked against all of these, so it is shared only where none is the job's own.
            approvals=values.once(
                lambda: self._approvals(*values.of("approvals"), tools, servers, writable),
                *("approvals", "tools", "secrets", "mcp", "workspace"),
            ),
            result=schema,
            form="tool" if form == "auto" else form,
            context_tokens=values.of("context_tokens")[0],
            pin_user_messages=values.of("pin_user_messages")[0],
            urls=tuple(values.of("urls")[0]),
            projection=ProjectionPolicy(values.of("projection")[0]),
            redact=values.once(
                lambda: _redaction(values.of("redact")[0], writable, secrets),
                *("redact", "workspace", "secrets"),
            ),
            check=self._check(*values.of("check"), secrets),
            spawn=values.once(lambda: self._spawn(*values.of("spawn")), "spawn"),
            **self._bounds(values, job),
            **self._models(values),
        )

    def _bounds(self, values: _Values, job: WrittenJob) -> dict[str, Any]:
        """What the job may use: its own bounds, then the defaults' ones."""
        defaults = self._defaults
        return {
            "budget": values.once(lambda: _budget(defaults.budget, job.budget), "budget"),
            "retry": values.once(lambda: _retry(defaults.retry, job.retry), "retry"),
            "sections": values.once(lambda: _sections(defaults.sections, job.sections), "sections"),
        }

    def _models(self, values: _Values) -> dict[str, Any]:
        """The models that the job asks, and what has them asked for summaries."""
        model = values.once(lambda: self.model(*values.of("model")), "model")
        return {
            "model": model,
            # By the model too, which decides what 'auto' is.
            "condenser": values.once(
                lambda: self._condensers(*values.of("condenser"), model), "condenser", "model"
            ),
            "summary_model": self._summary_model(*values.of("summary_model")),
        }

    def _check(self, target: str | None, at: Location, secrets: tuple[str, ...]) -> ToolSpec | None:
        """The function that gives a score."""
        if target is None:
            return None
        tool = self._tool(target, secrets)
        if isinstance(tool, str):
            self._problems.add(at, tool)
            return None
        return tool

    def _spawn(self, written: WrittenSpawn | None, at: Location) -> Spawn | None:
        """How many sub-jobs the job may start."""
        if written is None:
            return None
        model = None if written.model is None else self.model(written.model, (*at, "model"))
        numbers = written.model_dump(exclude={"model"})
        return Spawn(**numbers, model=model)

    def _path(self, text: str, at: Location) -> str:
        """``text`` as an absolute path; what is none is noted.

        Links stay links, so a workspace may be moved by re-pointing one.
        """
        try:
            path = expanded(text)
        except InputError as error:
            self._problems.add(at, str(error))
            path = Path()
        return os.path.normpath(self._directory / path)

    def _workspace(self, written: WrittenWorkspace, at: Location) -> tuple[str, Writable | None]:
        """Where the workspace comes from, and what makes it one that the job may change."""
        writable = None
        if written.write:
            fields = written.model_dump(exclude={"from_", "write"})
            writable = Writable(
                **{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
            )
            if written.from_ is None:
                return "", writable
            if written.from_.startswith(SCHEME):
                if WORKSPACE_OF.fullmatch(written.from_) is None:
                    self._problems.add(
                        (*at, "from"), f"expected holdfast://JOB@N, got {shown(written.from_)}"
                    )
                return written.from_, writable
        return self._directory_at(written.from_ or "", at), writable

    def _directory_at(self, text: str, at: Location) -> str:
        path = self._path(text, at)
        if (fault := self._workspace_fault(path)) is not None:
            self._problems.add(at, f"expected a directory, got {shown(text)}, {fault}")
        return path

    def model(self, written: WrittenModel, at: Location) -> ModelSettings:
        """The model's settings; a scripted model's name gets its script's absolute path."""
        options = dict(written.model_extra or {})
        self._options(options, at)
        if written.price is not None:
            options["price"] = written.price.model_dump(exclude_none=True)
        name = written.name
        if name.startswith(SCRIPTED):
            script = name.removeprefix(SCRIPTED)
            path = self._path(script, at)
            name = SCRIPTED + path
            if not self._is_script(path):
                self._problems.add(
                    at, f"expected the file of a script, got {shown(script)}, which is none"
                )
        return ModelSettings(name=name, options=options)

    def _summary_model(self, written: WrittenModel | None, at: Location) -> ModelSettings | None:
        if written is not None and written.name == NO_MODEL and written.model_extra:
            self._problems.add(at, f"'{NO_MODEL}' stands alone: no model sums anything up")
        return None if written is None else self.model(written, at)

    def _condensers(
        self, written: list[WrittenCondenser], at: Location, model: ModelSettings
    ) -> tuple[CondenserSpec, ...]:
        """The condensers in order of preference; none for ``none``."""
        if [condenser.kind for condenser in written] == ["none"]:
            self._ignored(written[0], {"max_size", "keep_first", *SETTINGS}, at)
            return ()
        specs = []
        for index, condenser in enumerate(written):
            # One alone stands in most files without a list.
            where = (*at, index) if len(written) > 1 else at
            if condenser.kind == "none":
                self._problems.add(
                    where, "'none' stands alone: it forgets nothing, and others would"
                )
                continue
            specs.append(self._condenser(condenser, where, model))
        return tuple(specs)

    def _condenser(
        self, written: WrittenCondenser, at: Location, model: ModelSettings
    ) -> CondenserSpec:
        own = self.model(written.model, (*at, "model")) if written.model is not None else None
        kind = auto(own or model) if written.kind == "auto" else written.kind
        settings = KINDS[kind].settings
        if written.kind != "auto":
            # What is written beside "auto" may be meant for the other kind that it could become.
            self._ignored(written, set(SETTINGS - settings), at)
        # A setting that the kind does not have holds a default, which contradicts nothing.
        together = contradiction(
            max_size=written.max_size,
            keep_first=written.keep_first,
            input_tokens=written.input_tokens if "input_tokens" in settings else None,
            summary_tokens=written.summary_tokens,
        )
        if together is not None:
            self._problems.add((*at, together[0]), together[1])
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

    def _ignored(self, written: WrittenCondenser, keys: set[str], at: Location) -> None:
        """Refuse keys that mean nothing for the condenser's kind."""
        for key in sorted(keys & written.model_fields_set):
            self._problems.add(
                (*at, key), f"a condenser of the kind {written.kind!r} has no {key!r}"
            )

    def _options(self, options: dict[str, Any], at: Location) -> None:
        """Refuse options that are secrets, that Holdfast sets itself, or that are no JSON."""
        for key in sorted(SET_BY_HOLDFAST & options.keys()):
            hint = "it is called 'name' here" if key == "model" else "Holdfast sets it"
            self._problems.add((*at, key), f"not an option of a jobs file; {hint}")
        # What stands there takes the place of what the request would have.
        body = options.get("extra_body")
        names = body.keys() if isinstance(body, dict) else set[str]()
        for key in sorted((SET_BY_HOLDFAST | REPLY_LIMITS) & names):
            own = "write it beside 'extra_body'" if key in REPLY_LIMITS else "Holdfast sets it"
            self._problems.add((*at, "extra_body", key), f"not for the body of a request; {own}")
        for option, name, value in headers_in(options):
            if is_withheld(value):
                self._problems.add(
                    (*at, option, name),
                    f"no header takes {value}: variables of Holdfast and AWS stay with the worker",
                )
        named = set[Location]()
        for option, name, value in own_headers(options):
            if is_variable(value):
                named.add((*at, option, name))
            elif not is_secret_key(name) and without_keys(value) == value:
                self._problems.add(
                    (*at, option, name),
                    "the value may be a secret: put it into an environment variable of the worker,"
                    f" and write {name}: $NAME",
                )
        for where, key in _keys(options, at):
            if is_secret_key(key) and where not in named:
                self._problems.add(
                    where,
                    f"secrets do not belong in a jobs file; {_SET_INSTEAD}",
                )
        for key in sorted({"api_base", "base_url"} & options.keys()):
            base = options[key]
            if isinstance(base, str) and _has_userinfo(base):
                self._problems.add((*at, key), "expected no credentials in the URL")
            elif not (isinstance(base, str) and base.startswith(("http://", "https://"))):
                self._problems.add((*at, key), f"expected an http(s) URL, got {shown(base)}")
            elif (fault := _url_fault(base, _SET_INSTEAD)) is not None:
                self._problems.add((*at, key), fault)
        for where, text in _texts(options, at):
            if without_keys(text) != text:
                self._problems.add(where, f"this looks like a key: {_SET_INSTEAD}")
        try:
            size = len(json.dumps(options, allow_nan=False))
        except ValueError:
            self._problems.add(at, "expected JSON values, got a number that is not finite")
        else:
            if size > MAX_OPTION_BYTES:
                self._problems.add(
                    at, f"expected at most {MAX_OPTION_BYTES} bytes of options, got {size}"
                )

    def _result(self, schema: dict[str, Any] | None, at: Location) -> None:
        if schema is None:
            return
        # As text, which a cache can look up.
        if fault := self._schema_fault(json.dumps(schema, sort_keys=True)):
            self._problems.add(at, fault)

    def _job_tools(
        self, targets: list[str], at: Location, secrets: tuple[str, ...]
    ) -> tuple[ToolSpec, ...]:
        """The tools of one job; two of one name are noted at the second."""
        specs: dict[str, ToolSpec] = {}
        for index, target in enumerate(targets):
            spec = self._tool(target, secrets)
            if isinstance(spec, str):
                self._problems.add((*at, index), spec)
            elif spec.name in specs:
                self._problems.add(
                    (*at, index),
                    f"expected tools of different names, got {spec.name!r} from {target!r} again",
                )
            else:
                specs[spec.name] = spec
        return tuple(specs.values())

    def _servers(
        self, written: dict[str, WrittenServer], at: Location, tools: set[str]
    ) -> tuple[ServerSpec, ...]:
        """The MCP servers of one job, in the order of the file."""
        servers = []
        for name, server in written.items():
            where = (*at, name)
            if name in tools:
                self._problems.add(where, f"expected another name: there is a tool {name!r}")
            try:
                check_name(name, "a server")
            except InputError as error:
                self._problems.add(where, str(error))
            if bool(server.command) == bool(server.url):
                self._problems.add(where, "expected either a command or a url")
            for key, transport in (
                ("env", server.url),
                ("directory", server.url),
                ("token", server.command),
            ):
                if transport and key in server.model_fields_set:
                    kind = "command" if key == "token" else "url"
                    self._problems.add((*where, key), f"a server with a {kind} has no {key!r}")
            if fault := _url_fault(server.url or "", "'token' names a variable"):
                self._problems.add((*where, "url"), fault)
            for index, text in enumerate(server.command):
                if without_keys(text) != text:
                    self._problems.add(
                        (*where, "command", index), "this looks like a key; 'env' names a variable"
                    )
            servers.append(
                ServerSpec(
                    name=name,
                    command=tuple(server.command),
                    directory=(
                        self._path(server.directory or ".", (*where, "directory"))
                        if server.command
                        else ""
                    ),
                    env=tuple(server.env),
                    url=server.url or "",
                    token=server.token or "",
                    timeout=server.timeout,
                    effects={tool: EffectClass(one) for tool, one in server.effects.items()},
                )
            )
        return tuple(servers)

    def _approvals(
        self,
        written: WrittenApprovals,
        at: Location,
        tools: tuple[ToolSpec, ...],
        servers: tuple[ServerSpec, ...],
        writable: Writable | None,
    ) -> Approvals:
        names = {tool.name for tool in tools}
        owners = {server.name for server in servers}
        for name in written.tools:
            if name not in names and name.partition(".")[0] not in owners:
                self._problems.add((*at, "tools", name), "the job has no such tool or server")
        if written.sh and writable is None:
            self._problems.add((*at, "sh"), "the job runs no commands: its workspace is read-only")
        return Approvals(
            tools={name: Approval(one) for name, one in written.tools.items()},
            sh=tuple(
                CommandRule(pattern=pattern, approval=Approval(one))
                for pattern, one in written.sh.items()
            ),
            wait=written.wait,
            otherwise=written.otherwise,
        )

    def _check_files(self, tools: tuple[ToolSpec, ...], at: Location) -> None:
        """Note tools that work on files of a job that has none of its own."""
        for index, tool in enumerate(tools):
            if tool.workspace:
                self._problems.add(
                    (*at, index),
                    f"{tool.name!r} works on the job's own files, and the job's workspace is"
                    " read-only",
                )

    def _check_queues(self, tools: tuple[ToolSpec, ...], at: Location) -> None:
        """Note tools that have a queue and a limit: a limit is a queue too."""
        for index, tool in enumerate(tools):
            if tool.queue is not None and tool.target in self._header.limits.tools:
                self._problems.add(
                    (*at, index),
                    f"{tool.name!r} has queue={tool.queue!r}, and limits.tools names it; only one"
                    " of them can say which workers make its calls",
                )

    def _tool(self, target: str, secrets: tuple[str, ...]) -> ToolSpec | str:
        """The tool, or why there is none; each is imported once a file, with what it is given."""
        # By its secrets too: a module may read them while it is imported.
        known = target, secrets
        if known not in self._tools:
            try:
                self._tools[known] = described(self._hosts, target, self._tools_path, secrets)
            except InputError as error:
                self._tools[known] = str(error)
        return self._tools[known]


def _redaction(
    written: WrittenRedaction, writable: Writable | None, of_tools: tuple[str, ...]
) -> Redaction:
    """What is masked: the secrets that commands and tools are given too."""
    fields = {name: tuple(texts) for name, texts in written.model_dump().items()}
    secrets = () if writable is None else writable.secrets
    fields["env"] = tuple(dict.fromkeys((*fields["env"], *secrets, *of_tools)))
    return Redaction(**fields)


def _schema_fault(schema: str) -> str | None:
    """What is wrong with a result schema, in JSON."""
    from runtime.base.result_schemas.faults import schema_fault

    return schema_fault(json.loads(schema))


def workspace_fault(path: str) -> str | None:
    """Why the directory at ``path`` cannot be read, if it cannot."""
    try:
        with os.scandir(path) as entries:
            next(entries, None)
    except (FileNotFoundError, NotADirectoryError):
        return "which is none"
    except OSError as error:
        return f"which may not be read ({error.strerror})"
    return None


def _budget(defaults: WrittenBudget, own: WrittenBudget) -> Budget:
    """The job's own limits, then the defaults' ones."""
    # Only what is written counts: a default of the job's own part would hide what the file's
    # defaults say.
    values = {**defaults.model_dump(exclude_unset=True), **own.model_dump(exclude_unset=True)}
    if "wall" in values:
        values["wall_seconds"] = values.pop("wall")
    return Budget(**values)


def batch_budget(written: WrittenBatchBudget) -> BatchBudget | None:
    """What a batch may spend; None where nothing is bounded."""
    values = written.model_dump(exclude_unset=True)
    if "wall" in values:
        values["wall_seconds"] = values.pop("wall")
    return BatchBudget(**values) if values else None


def limits_of(written: WrittenLimits) -> Limits:
    """How fast a batch's models and tools may be called."""
    return Limits.model_validate(written.model_dump(exclude_unset=True))


def _retry(defaults: WrittenRetry, own: WrittenRetry) -> Retry:
    """The job's own bounds, then the defaults' ones."""
    return Retry(
        **{**defaults.model_dump(exclude_unset=True), **own.model_dump(exclude_unset=True)}
    )


def _sections(defaults: WrittenSections, own: WrittenSections) -> Sections:
    """The job's own bounds, then the defaults' ones."""
    return Sections(
        **{**defaults.model_dump(exclude_unset=True), **own.model_dump(exclude_unset=True)}
    )


def _keys(value: Any, at: Location) -> Iterator[tuple[Location, str]]:
    """Every key in ``value``, at any depth, with its location."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*at, key), key
            yield from _keys(item, (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _keys(item, (*at, index))


def _texts(value: Any, at: Location) -> Iterator[tuple[Location, str]]:
    """Every text in ``value``, at any depth, with its location."""
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*at, index))


def _url_fault(url: str, instead: str) -> str | None:
    """Why ``url`` may not stand in a file, if it may not; ``instead`` of a secret in it."""
    try:
        query = split_url(url).query
    except InputError as error:
        return str(error)
    if _has_userinfo(url) or any(is_secret_name(name) for name, _ in parse_qsl(query)):
        return f"expected no secret in the URL; {instead}"
    return None


def _has_userinfo(url: str) -> bool:
    """Whether ``url`` names a user or password, with or without a scheme; errors must not repeat
    those.
    """
    return "@" in url.partition("://")[2].partition("/")[0] or "@" in url.partition("/")[0]
