"""The MCP servers of a job."""

from __future__ import annotations

from runtime.base.effect_classes import EffectClass
from runtime.base.errors import InputError
from runtime.base.redaction.computed import without_keys
from runtime.base.spec.servers import ServerSpec
from runtime.jobsfile.problems import Location, Problems
from runtime.jobsfile.resolve.disk import Disk
from runtime.jobsfile.resolve.urls import url_fault
from runtime.jobsfile.written.servers import WrittenServer
from runtime.tools.functions import check_name


def servers_of(
    written: dict[str, WrittenServer], at: Location, tools: set[str], disk: Disk, problems: Problems
) -> tuple[ServerSpec, ...]:
    """The servers of one job, in the order of the file; ``tools`` has the names of its tools."""
    servers = []
    for name, server in written.items():
        where = (*at, name)
        _check(name, server, where, tools, problems)
        servers.append(
            ServerSpec(
                name=name,
                command=tuple(server.command),
                directory=(
                    disk.path(server.directory or ".", (*where, "directory"))
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


def _check(
    name: str, server: WrittenServer, at: Location, tools: set[str], problems: Problems
) -> None:
    """Note a name that is taken, keys that do not go together, and what may be a secret."""
    if name in tools:
        problems.add(at, f"expected another name: there is a tool {name!r}")
    try:
        check_name(name, "a server")
    except InputError as error:
        problems.add(at, str(error))
    if bool(server.command) == bool(server.url):
        problems.add(at, "expected either a command or a url")
    for key, transport in (
        ("env", server.url),
        ("directory", server.url),
        ("token", server.command),
    ):
        if transport and key in server.model_fields_set:
            kind = "command" if key == "token" else "url"
            problems.add((*at, key), f"a server with a {kind} has no {key!r}")
    if fault := url_fault(server.url or "", "'token' names a variable"):
        problems.add((*at, "url"), fault)
    for index, text in enumerate(server.command):
        if without_keys(text) != text:
            problems.add((*at, "command", index), "this looks like a key; 'env' names a variable")
