"""A tool's stub is one line that the interpreter's type checker understands."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

import pytest
from pydantic import BaseModel, Field
from pydantic_monty import Monty, MontyTypingError

from runtime.tools.stubs import result_text, stub_line, type_text


class Model(BaseModel):
    x: int


@dataclasses.dataclass
class Data:
    x: int


class Typed(TypedDict):
    x: int


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize(
    ("annotation", "parameter", "result"),
    [
        (int, "int", "int"),
        (None, "None", "None"),
        (object, "object", "object"),
        (Any, "Any", "Any"),
        (bytes, "bytes", "str"),
        (list, "list[Any]", "list[Any]"),
        (list[str], "list[str]", "list[str]"),
        (dict[int, list[float]], "dict[int, list[float]]", "dict[str, list[float]]"),
        (set[bytes], "set[bytes]", "list[str]"),
        (frozenset[int], "frozenset[int]", "list[int]"),
        (tuple, "tuple[Any, ...]", "list[Any]"),
        (tuple[int, ...], "tuple[int, ...]", "list[int]"),
        (tuple[int, str], "tuple[int, str]", "list[int | str]"),
        (tuple[()], "tuple[()]", "list[Any]"),
        (Optional[int], "int | None", "int | None"),  # noqa: UP045 both spellings are meant
        (Union[None, int, str], "int | str | None", "int | str | None"),  # noqa: UP007
        (int | Path, "Any", "Any"),
        (Literal["a", 1, None], "Literal['a', 1, None]", "Literal['a', 1, None]"),
        (Literal[Colour.RED], "Any", "Any"),
        (Annotated[int, Field(gt=0)], "int", "int"),
        (Sequence[int], "Any", "Any"),
        (datetime.date, "Any", "Any"),
        (Model, "Any", "dict[str, Any]"),
        (Data, "Any", "dict[str, Any]"),
        (Typed, "Any", "dict[str, Any]"),
        (list[Model], "list[Any]", "list[dict[str, Any]]"),
    ],
)
def test_types(annotation: Any, parameter: str, result: str) -> None:
    """A parameter is written as it is declared; a result as JSON leaves it; the rest is Any."""
    assert (type_text(annotation), result_text(annotation)) == (parameter, result)


def plain(a: int, b: str = "x", c: float = 0.5, d: bool = True, e: int | None = None) -> None: ...
def kinds(a: int, /, b: int, *, c: int) -> None: ...
def stars(*a: int, b: int = 3, **c: str) -> None: ...
def odd(a: list[int] = [], b: int = None, c: str = "x" * 99, d: float = float("inf")) -> None: ...  # type: ignore[assignment]  # noqa: B006, RUF013
async def waits(a: int) -> str: ...


@pytest.mark.parametrize(
    ("function", "stub"),
    [
        (plain, "def plain(a: int, b: str = 'x', c: float = 0.5, d: bool = True, e: int | None = None) -> None: ..."),
        (kinds, "def kinds(a: int, /, b: int, *, c: int) -> None: ..."),
        (stars, "def stars(*a: int, b: int = 3, **c: str) -> None: ..."),
        (odd, "def odd(a: list[int] = ..., b: int = ..., c: str = ..., d: float = ...) -> None: ..."),
        (waits, "def waits(a: int) -> str: ..."),
    ],
)  # fmt: skip
def test_signatures(function: Any, stub: str) -> None:
    """Every kind of parameter is kept; short plain defaults are shown; a coroutine is called like a
    function.
    """
    assert stub_line(function.__name__, inspect.signature(function, eval_str=True)) == stub


@pytest.mark.parametrize(
    ("statement", "wrong"),
    [
        ("plain(1, 'y', e=None)", None),
        ("plain('1')", "invalid-argument-type"),
        ("kinds(1, 2, c=3)", None),
        ("kinds(a=1, b=2, c=3)", "positional-only"),
        ("stars(1, 2, x='y')", None),
        ("odd([1])", None),
        ("odd(['x'])", "invalid-argument-type"),
        ("n: int = waits(1)", "invalid-assignment"),
        ("n: str = waits(1)", None),
    ],
)
def test_the_type_checker_understands_them(statement: str, wrong: str | None) -> None:
    """With the stubs, the interpreter's own checker accepts right calls and rejects wrong ones."""
    functions = (plain, kinds, stars, odd, waits)
    lines = [stub_line(f.__name__, inspect.signature(f, eval_str=True)) for f in functions]
    stubs = "from typing import Any, Literal\n" + "\n".join(lines) + "\n"
    with Monty() as monty, monty.checkout(type_check=True, type_check_stubs=stubs) as session:
        if wrong is None:
            session.feed_start(statement)
        else:
            with pytest.raises(MontyTypingError, match=wrong):
                session.feed_start(statement)
