"""MCP servers: what a job's definition says of one, and what one offered as the job began."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict, Field

from runtime.base.effect_classes import EffectClass
from runtime.base.redaction.rules import Redaction

DEFAULT_TIMEOUT = 60.0

_FIRST = re.compile(r"\(\w+(, )?")


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class ServerSpec(_Value):
    """An MCP server of a job: a ``command`` that speaks over its standard streams, or a ``url``."""

    name: str
    """The name that statements know it by."""
    command: tuple[str, ...] = ()
    directory: str = ""
    """The absolute directory in which the command is started: the jobs file's."""
    env: tuple[str, ...] = ()
    """Names of the worker's variables that the command gets."""
    url: str = ""
    token: str = ""
    """The name of the worker's variable whose value a URL's requests carry as bearer token."""
    timeout: float = Field(default=DEFAULT_TIMEOUT, gt=0)
    """Seconds that a call may take."""
    effects: dict[str, EffectClass] = Field(default_factory=dict)
    """Effect classes of tools, in place of what the server's annotations say."""


def with_tokens(rules: Redaction, servers: Iterable[ServerSpec]) -> Redaction:
    """The rules by which what these servers say is masked: each may repeat its token, whatever the
    variable is called.
    """
    names = tuple(server.token for server in servers if server.token)
    return rules.model_copy(update={"env": (*rules.env, *names)}) if names else rules


class ServerTool(_Value):
    """A tool of a server, as a statement sees it: a method."""

    name: str
    """The method's name: an identifier, unique in the server."""
    tool: str
    """What the server calls it."""
    stub: str
    """The method as one line of Python for the type checker."""
    doc: str = ""
    """The beginning of the server's description, on one line."""
    effect: EffectClass = EffectClass.ONCE
    digest: str
    """Of its schemas and annotations: a tool with another one is another tool."""

    @property
    def shape(self) -> str:
        """The signature without its first parameter, as people read it."""
        text = self.stub.removeprefix("def ").removesuffix(": ...")
        return _FIRST.sub("(", text, count=1)


class ServerResource(_Value):
    """Something that a server has to read, or the form of the URIs of many such (``template``)."""

    uri: str
    doc: str = ""
    """The beginning of the server's description, on one line."""
    template: bool = False


class ServerListing(_Value):
    """What a server offered when its job began.

    ``error`` says why it offered nothing. All its texts are the server's own words: bounded, and to
    be fenced wherever they are shown.
    """

    name: str
    tools: tuple[ServerTool, ...] = ()
    about: str = ""
    """The beginning of its instructions."""
    left_out: int = 0
    """Tools beyond those that a job takes, and what it lists as tools that are none."""
    error: str = ""
    # Left out where there are none: listings of before have the digests that they had.
    resources: tuple[ServerResource, ...] = Field(default=(), exclude_if=lambda value: not value)
    more_resources: int = Field(default=0, exclude_if=lambda value: not value)
    """Resources beyond those that a job is told of; they can be read all the same."""
    wrong: str = Field(default="", exclude_if=lambda value: not value)
    """What is wrong with the first that is no tool."""

    def tool(self, name: str) -> ServerTool | None:
        """The tool behind a method."""
        return next((tool for tool in self.tools if tool.name == name), None)
