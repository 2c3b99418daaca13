"""Reading a jobs file: bytes to plain JSON values with the line of every key.

YAML is composed into nodes by ruamel.yaml and converted here, since nodes know their lines, show
duplicate keys and share aliased parts: an alias costs nothing until it is expanded, and the
expansion is counted (``MAX_VALUES``).
"""

from __future__ import annotations

import json
import re
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from runtime.base.characters import is_unicode
from runtime.base.errors import InputError
from runtime.base.quoted import shown
from runtime.jobsfile.packed import Packed, as_it_is
from runtime.jobsfile.problems import Location, Problems

MAX_FILE_BYTES = 8 * 1024 * 1024
MAX_JSONL_BYTES = 512 * 1024 * 1024
"""Of YAML, which is composed as a whole, and of JSON lines."""

MAX_VALUES = 400_000
# Readers call themselves for each level: this is far within Python's own limit.
MAX_DEPTH = 60
MAX_DIGITS = 300
"""Of a whole number: each is in the range of floats, and can be written out."""

JSONL_SUFFIXES = frozenset({".jsonl", ".ndjson"})
_TAG = "tag:yaml.org,2002:"
_JSON_SCALARS = frozenset({_TAG + kind for kind in ("int", "float", "bool", "null")})
_TEXT_SCALARS = frozenset({_TAG + "str", _TAG + "timestamp"})
_ESCAPE = re.compile(r"\\U([0-9A-Fa-f]{8})")


def is_jsonl(path: Path) -> bool:
    """Whether ``path`` holds one job a line."""
    return path.suffix.lower() in JSONL_SUFFIXES


def read_text(path: Path) -> str:
    """The text of the YAML file at ``path``.

    Raises:
        InputError: as ``lines_of``; also if it is longer than ``MAX_FILE_BYTES``.
    """
    return "".join(lines_of(path, MAX_FILE_BYTES))


def lines_of(path: Path, most: int) -> Iterator[str]:
    """The lines of the jobs file at ``path``, with their ends.

    Raises:
        InputError: no file, not a regular file, unreadable, longer than ``most`` bytes, or not
            UTF-8.
    """
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise InputError(f"{path}: expected a jobs file, got a directory")
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{path}: expected a jobs file, got something that is no regular file")
        if status.st_size > most:
            raise InputError(
                f"{path}: expected at most {most} bytes, got {status.st_size}; give many jobs as"
                " one with 'for_each'"
            )
        # Bytes, so that what is no UTF-8 is told by its line.
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                yield _decoded(line, path, number)
    except FileNotFoundError:
        raise InputError(f"{path}: no such jobs file") from None
    # A path with a NUL in it is a ValueError.
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{str(path)!r}: cannot read the jobs file: {reason}") from None


def _decoded(line: bytes, path: Path, number: int) -> str:
    try:
        # Some editors begin a file with a byte order mark.
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}:{number}: expected UTF-8, got the byte 0x{error.object[error.start]:02x}"
        ) from None


def read_yaml(text: str, problems: Problems) -> Any:
    """The plain value of a YAML document; ``problems.lines`` learns the line of every key.

    Raises:
        InputError: bad YAML, several documents, or more than the bounds allow.
    """
    yaml = YAML(typ="safe", pure=True)
    try:
        # Not loaded: only nodes know their lines and the keys that come twice.
        node = yaml.compose(text)
        if node is None:
            return None
        return _Plain(yaml.constructor.construct_object, problems).value(node, ())
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(str(error.problem or error.context or "not YAML").split())
        if error.context_mark and str(error.context).startswith("while "):
            what += f" {error.context} that begins on line {error.context_mark.line + 1}"
        raise InputError(
            f"{problems.file}:{mark.line + 1 if mark else 1}: bad YAML: {what}"
        ) from None
    except YAMLError as error:
        at = getattr(error, "position", 0)
        what = str(error).splitlines()[0]
        raise InputError(
            f"{problems.file}:{text.count(chr(10), 0, at) + 1}: bad YAML: {what}"
        ) from None
    # The escape of a character past the last one.
    except (ValueError, OverflowError) as error:
        at = next((one.start() for one in _ESCAPE.finditer(text) if _is_past_all(one[1])), None)
        what = str(error) if at is None else f"there is no character {text[at : at + 10]}"
        line = text.count("\n", 0, at or 0) + 1
        raise InputError(f"{problems.file}:{line}: bad YAML: {what}") from None
    except RecursionError:
        raise InputError(
            f"{problems.file}:1: bad YAML: nested more than {MAX_DEPTH} deep"
        ) from None


def _is_past_all(digits: str) -> bool:
    return int(digits, 16) > sys.maxunicode


@dataclass
class _Plain:
    """The conversion of one document's nodes."""

    construct: Callable[[Node], Any]
    problems: Problems
    values: int = field(default=0)

    def value(self, node: Node, at: Location) -> Any:
        """The plain value of ``node``, which stands at ``at``."""
        self.values += 1
        line = node.start_mark.line + 1
        # A few lines of aliases to aliases stand for billions of values.
        if self.values > MAX_VALUES:
            raise InputError(
                f"{self.problems.file}:{line}: expected at most {MAX_VALUES} values once aliases"
                " are expanded"
            )
        if len(at) > MAX_DEPTH:
            raise InputError(f"{self.problems.file}:{line}: nested more than {MAX_DEPTH} deep")
        if isinstance(node, MappingNode) and node.tag == _TAG + "map":
            return self.mapping(node, at)
        if isinstance(node, SequenceNode) and node.tag == _TAG + "seq":
            return [self.item(item, (*at, index)) for index, item in enumerate(node.value)]
        if isinstance(node, ScalarNode):
            return self.scalar(node, at)
        self.problems.add(at, _tagged(node))
        return None

    def item(self, node: Node, at: Location) -> Any:
        """The plain value of a list item."""
        self.problems.lines.by_location[at] = node.start_mark.line + 1
        return self.value(node, at)

    def scalar(self, node: ScalarNode, at: Location) -> Any:
        """A scalar's value; what YAML would make a date is left as text, since JSON has no
        dates.
        """
        if node.tag in _TEXT_SCALARS:
            return checked_text(node.value, at, self.problems)
        if node.tag in _JSON_SCALARS:
            try:
                return checked_number(self.construct(node), at, self.problems)
            # A tag says what a text is which it need not be: 'maybe' is no key of the table of
            # truth values, and an empty text has no first digit.
            except (ValueError, LookupError):
                pass
        self.problems.add(
            at, f"expected plain YAML, got {shown(node.value)} with the tag {shown(str(node.tag))}"
        )
        return None

    def mapping(self, node: MappingNode, at: Location) -> dict[str, Any]:
        """A mapping, whose keys are texts as they are written; what ``<<`` names comes first, so
        that the mapping's own keys win.
        """
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        seen: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, ScalarNode):
                self.problems.add(at, "expected text keys, got a list or mapping as a key")
                continue
            key = checked_text(key_node.value, at, self.problems)
            here = (*at, key)
            # Of a key that comes twice the line of the second, where the mistake is.
            self.problems.lines.by_location[here] = line
            if key in seen:
                self.problems.add(here, f"expected each key once, got it on line {seen[key]} too")
                continue
            seen[key] = line
            if key_node.tag == _TAG + "merge":
                # The earlier of several sources wins, as in YAML's own definition of ``<<``.
                for source in (
                    value_node.value if isinstance(value_node, SequenceNode) else [value_node]
                ):
                    merged = {**self.merge_source(source, at), **merged}
            elif key_node.tag in _TEXT_SCALARS | _JSON_SCALARS:
                own[key] = self.value(value_node, here)
            else:
                self.problems.add(here, _tagged(key_node))
        return {**merged, **own}

    def merge_source(self, node: Node, at: Location) -> dict[str, Any]:
        """The mapping that a ``<<`` entry names."""
        value = self.value(node, at) if isinstance(node, MappingNode) else None
        if isinstance(value, dict):
            return value
        self.problems.add(at, "expected '<<' to name a mapping")
        return {}


def _tagged(node: Node) -> str:
    return f"expected plain YAML, got the tag {shown(str(node.tag))}"


def read_jsonl(path: Path, problems: Problems) -> Packed[Any]:
    """The values of a JSONL file, one a line, blank lines left out; ``problems.lines`` learns each
    one's line.

    Raises:
        InputError: as ``lines_of``.
    """

    def values() -> Iterator[Any]:
        for number, line in enumerate(lines_of(path, MAX_JSONL_BYTES), start=1):
            if line.strip():
                here: Location = ("jobs", len(problems.lines.of_items))
                problems.lines.of_items.append(number)
                yield json_line(line.removesuffix("\n"), here, problems)

    return Packed(values(), as_it_is, as_it_is)


def json_line(line: str, here: Location, problems: Problems) -> Any:
    """One line's value; None where it is no JSON, which is noted."""

    # The parser alone would keep the last of two equal keys and say nothing.
    def pairs(entries: list[tuple[str, Any]]) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for key, item in entries:
            if key in value:
                problems.add((*here, key), "expected each key once in a mapping")
            value[key] = item
        return value

    # The parser takes NaN and Infinity, which are no JSON.
    def constant(name: str) -> Any:
        raise ValueError(f"{name} is no JSON number")

    try:
        value = json.loads(line, object_pairs_hook=pairs, parse_constant=constant)
        _check_json(value, here, problems)
        return value
    except RecursionError:
        problems.add(here, f"nested more than {MAX_DEPTH} deep")
    except json.JSONDecodeError as error:
        problems.add(here, f"expected one JSON object a line: {error.msg} at column {error.colno}")
    except ValueError as error:
        problems.add(here, f"expected one JSON object a line: {error}")
    return None


def _check_json(value: Any, at: Location, problems: Problems) -> None:
    """Note texts that are no Unicode, numbers past ``MAX_DIGITS`` and nesting past
    ``MAX_DEPTH``.
    """
    if len(at) > MAX_DEPTH:
        raise RecursionError
    if isinstance(value, str):
        checked_text(value, at, problems)
    elif isinstance(value, int):
        checked_number(value, at, problems)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_json(item, (*at, index), problems)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_json(item, (*at, checked_text(key, at, problems)), problems)


def checked_number(value: Any, at: Location, problems: Problems) -> Any:
    """``value``, or 0 where it is a whole number of more than ``MAX_DIGITS``; that is noted."""
    if isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:
        problems.add(at, f"expected a whole number of at most {MAX_DIGITS} digits")
        return 0
    return value


def checked_text(text: str, at: Location, problems: Problems) -> str:
    """``text``, its surrogates as the characters that pairs of them are, or an empty text where it
    holds lone ones, which no UTF-8 file can; that is noted.
    """
    if is_unicode(text):
        return text
    # JSON, which is YAML too, has two escapes for one character past the first 65,536.
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    if is_unicode(joined):
        return joined
    problems.add(at, f"expected Unicode text, got {shown(text)}")
    return ""
