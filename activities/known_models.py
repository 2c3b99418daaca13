"""What is known of a model before anyone calls it: its provider, what it is for, its key, its
packages and its price.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from activities._litellm import cost_of
from activities._litellm_library import library
from activities._options import ModelOptions
from activities._packages import package_of
from activities.prices import dearest, has_price, mode_of
from runtime.base.environment import environment
from runtime.base.own_headers import with_variables
from runtime.base.spec.models import SCRIPTED
from runtime.base.values import Usage

_CALLED = frozenset({"chat", "responses", "completion"})
"""The modes of litellm's table in which a model answers messages."""

_SIGN_IN = frozenset({"github_copilot", "chatgpt"})
"""Providers that litellm signs in to by itself, over the network, when it is asked about them."""

_TAKES_NONE = "{} takes no tools: give the job 'form: script'"

_NEEDED = {"vertex_ai": "google.auth", "vertex_ai_beta": "google.auth"}
"""The modules that providers need beside litellm's own dependencies."""


def faults(
    name: str, options: Mapping[str, Any], form: str, *, elsewhere: bool = False
) -> list[str]:
    """Why the model cannot be called as a job of this ``form`` would: a sentence each, with what to
    write or do.

    What this machine lacks (a key, a package) is told like any other fault, unless the model is
    called ``elsewhere``. Nobody is called. Imports litellm.
    """
    if name.startswith(SCRIPTED):
        return []
    if name.endswith("/"):
        return [f"{name!r} names a provider and no model: write PROVIDER/MODEL"]
    mode = mode_of(name)
    if mode is not None and mode not in _CALLED:
        return [
            f"{name} is a model for {mode.replace('_', ' ')}, which no job can be run with; name"
            " one for chat"
        ]
    if name.partition("/")[0] in _SIGN_IN:
        return []
    lite = library()
    try:
        model, provider, _, _ = lite.get_llm_provider(name, api_base=options.get("api_base"))
    except Exception:  # noqa: BLE001 - litellm raises its own errors for what it does not know
        return [_unknown(name, lite)]
    problems = [_no_tools(lite, model, provider, form)]
    if not elsewhere:
        problems = [
            _no_package(name, provider),
            _no_key(lite, name, provider, options),
            _no_variable(options),
            *problems,
        ]
    return [fault for fault in problems if fault is not None]


def is_priced(name: str, options: Mapping[str, Any]) -> bool:
    """Whether calls of the model have a price: its own in ``options``, or that of litellm's
    table. Imports litellm for the latter.
    """
    if name.startswith(SCRIPTED) or options.get("price") is not None:
        return True
    return has_price(name) and (name.partition("/")[0] in _SIGN_IN or _is_booked(name))


@lru_cache(maxsize=1_000)
def _is_booked(name: str) -> bool:
    """Whether litellm takes the price that its table has of a model, as it does not for one of
    another provider's by the same name.
    """
    most = dearest(name, None, 2_000)
    is_free = not most.prompt and not most.reply
    return is_free or cost_of(ModelOptions(name=name), Usage(prompt=1_000, completion=1_000)) > 0


def _unknown(name: str, lite: Any) -> str:
    if name.endswith((".py", ".yaml", ".yml", ".json")):
        return f"a model that is a file is written {SCRIPTED}{name}"
    if name == SCRIPTED.removesuffix("/"):
        return f"a model that is a file is written {SCRIPTED}FILE"
    provider, slash, rest = name.partition("/")
    known = sorted(str(getattr(one, "value", one)) for one in lite.provider_list)
    close = difflib.get_close_matches(provider, known, n=1) if slash else []
    hint = (
        f"did you mean {close[0]}/{rest}?"
        if close
        else "write PROVIDER/MODEL, such as openai/gpt-5."
    )
    return (
        f"litellm knows no provider of the model {name!r}: {hint} An endpoint of your own that"
        " speaks OpenAI's protocol is {name: openai/NAME, api_base: https://...}"
    )


def _no_package(name: str, provider: str) -> str | None:
    module = _NEEDED.get(provider)
    try:
        there = module is None or find_spec(module) is not None
    except ModuleNotFoundError:
        there = False
    return (
        None
        if there or module is None
        else f"{name} needs the package {package_of(module)}, which is not installed"
    )


def _no_key(lite: Any, name: str, provider: str, options: Mapping[str, Any]) -> str | None:
    """Which variable is not set, for providers that take one key; clouds have many ways to sign
    in.
    """
    said = lite.validate_environment(name, api_base=options.get("api_base"))
    wanted = [str(variable) for variable in said.get("missing_keys") or ()]
    if (
        not wanted
        or not all(variable.endswith("_API_KEY") for variable in wanted)
        or _has_some_key(provider)
    ):
        return None
    return f"no key for {provider}: set {' or '.join(wanted)} in the environment of this command"


def _no_variable(options: Mapping[str, Any]) -> str | None:
    """Which variable is not set that a header of the model's takes its value from."""
    try:
        with_variables(options, environment())
    except KeyError as error:
        return f"its headers name {error.args[0]}: set that in the environment of this command"
    return None


def _has_some_key(provider: str) -> bool:
    """Whether a key of the provider is there under another name that litellm may take: it has
    several for some.
    """
    start = provider.upper().replace("_AI", "").partition("_")[0]
    named = (name for name, value in os.environ.items() if value and name.startswith(start))
    return any(name.endswith(("_KEY", "_TOKEN")) for name in named) or (
        provider == "huggingface" and bool(os.environ.get("HF_TOKEN"))
    )


def _no_tools(lite: Any, model: str, provider: str, form: str) -> str | None:
    # To answer for Ollama's models litellm asks the server.
    if form != "tool" or provider.startswith("ollama"):
        return None
    if provider.startswith("text-completion"):
        return _TAKES_NONE.format(f"{provider}/{model}")
    try:
        taken = lite.get_supported_openai_params(model=model, custom_llm_provider=provider)
    except Exception:  # noqa: BLE001 - what litellm cannot say is no fault of the model
        return None
    if not taken or "tools" in taken:
        return None
    return _TAKES_NONE.format(f"{provider}/{model}")
