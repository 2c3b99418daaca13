"""Options of a model that may not stand in a jobs file: secrets, what Holdfast sets itself, times
that are none, what is no JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from runtime.base.own_headers import headers_in, is_variable, is_withheld, own_headers
from runtime.base.quoted import shown
from runtime.base.redaction.computed import without_keys
from runtime.jobsfile.problems import Location, Problems
from runtime.jobsfile.resolve.urls import has_userinfo, url_fault
from runtime.jobsfile.written.bounds import MAX_OPTION_BYTES
from runtime.jobsfile.written.models import REPLY_LIMITS, SET_BY_HOLDFAST
from runtime.jobsfile.written.secret_names import is_secret_key

_SET_INSTEAD = "set the provider's environment variable instead, such as OPENAI_API_KEY"

_TIMES = {"timeout": False, "connect": False, "first_byte": True, "stall": True}
"""Options that are seconds, and whether each may be null."""


def check_options(options: dict[str, Any], at: Location, problems: Problems) -> None:
    """Note all that is wrong with a model's ``options``."""
    _check_taken(options, at, problems)
    _check_times(options, at, problems)
    _check_secrets(options, _check_headers(options, at, problems), at, problems)
    _check_endpoints(options, at, problems)
    for where, text in _texts(options, at):
        if without_keys(text) != text:
            problems.add(where, f"this looks like a key: {_SET_INSTEAD}")
    try:
        size = len(json.dumps(options, allow_nan=False))
    except ValueError:
        problems.add(at, "expected JSON values, got a number that is not finite")
    else:
        if size > MAX_OPTION_BYTES:
            problems.add(at, f"expected at most {MAX_OPTION_BYTES} bytes of options, got {size}")


def _check_taken(options: dict[str, Any], at: Location, problems: Problems) -> None:
    """Note what Holdfast sets itself."""
    for key in sorted(SET_BY_HOLDFAST & options.keys()):
        hint = "it is called 'name' here" if key == "model" else "Holdfast sets it"
        problems.add((*at, key), f"not an option of a jobs file; {hint}")
    # What stands there takes the place of what the request would have.
    body = options.get("extra_body")
    names = body.keys() if isinstance(body, dict) else set[str]()
    for key in sorted((SET_BY_HOLDFAST | REPLY_LIMITS) & names):
        own = "write it beside 'extra_body'" if key in REPLY_LIMITS else "Holdfast sets it"
        problems.add((*at, "extra_body", key), f"not for the body of a request; {own}")


def _check_times(options: dict[str, Any], at: Location, problems: Problems) -> None:
    """Note times of a call that are none, with which it would fail."""
    for key in sorted(_TIMES.keys() & options.keys()):
        value, may_be_null = options[key], _TIMES[key]
        if not _is_time(value) and not (value is None and may_be_null):
            problems.add((*at, key), f"expected seconds above 0, got {shown(value)}")


def _is_time(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and float(value) > 0
    except (TypeError, ValueError, OverflowError):
        return False


def _check_headers(options: dict[str, Any], at: Location, problems: Problems) -> set[Location]:
    """Note headers whose values may be secrets; returns where a variable has the value."""
    for option, name, value in headers_in(options):
        if is_withheld(value):
            problems.add(
                (*at, option, name),
                f"no header takes {value}: variables of Holdfast and AWS stay with the worker",
            )
    named = set[Location]()
    for option, name, value in own_headers(options):
        if is_variable(value):
            named.add((*at, option, name))
        elif not is_secret_key(name) and without_keys(value) == value:
            problems.add(
                (*at, option, name),
                "the value may be a secret: put it into an environment variable of the worker,"
                f" and write {name}: $NAME",
            )
    return named


def _check_secrets(
    options: dict[str, Any], named: set[Location], at: Location, problems: Problems
) -> None:
    """Note keys whose values are secrets by their names, but those that variables have."""
    for where, key in _keys(options, at):
        if is_secret_key(key) and where not in named:
            problems.add(where, f"secrets do not belong in a jobs file; {_SET_INSTEAD}")


def _check_endpoints(options: dict[str, Any], at: Location, problems: Problems) -> None:
    """Note endpoints that are no URLs, or that hold a secret."""
    for key in sorted({"api_base", "base_url"} & options.keys()):
        base = options[key]
        if isinstance(base, str) and has_userinfo(base):
            problems.add((*at, key), "expected no credentials in the URL")
        elif not (isinstance(base, str) and base.startswith(("http://", "https://"))):
            problems.add((*at, key), f"expected an http(s) URL, got {shown(base)}")
        elif (fault := url_fault(base, _SET_INSTEAD)) is not None:
            problems.add((*at, key), fault)


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
