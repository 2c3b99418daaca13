"""Result schemas: whatever a schema or a value is, ``finish`` answers and fetches nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from plain_loop import PlainLoop, statements

from runtime.base.result_schemas.faults import result_problem, schema_fault
from runtime.base.spec.models import Budget
from runtime.context.graph import ContextGraph
from runtime.interpreter.host import Failure, ReturnValue
from runtime.interpreter.job_host import MAX_REQUEST_BYTES, JobHost
from runtime.job.stops import JobStatus, Stop

ONE_TURN = Budget(turns=1, tokens=10**9, usd=1000.0)

SLOW = r"^(\w+\s?)*$"
"""Exponential where a search goes back."""


def ended(workspace: Path, schema: dict[str, Any], *sources: str) -> PlainLoop:
    """Runs the statements, and replays them."""
    options = {"result": schema}
    return PlainLoop(workspace, statements(*sources), options=options).run().replayed()


def told(loop: PlainLoop) -> list[str]:
    """What the statements raised."""
    return [one.exception.message for one in loop.executions if one.exception is not None]


def twice(levels: int) -> dict[str, Any]:
    """A schema that looks at a value two to the ``levels`` times."""
    one = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/a0", "$defs": {**one, f"a{levels}": {}}}


def nested_definitions(levels: int) -> dict[str, Any]:
    """A definition within definitions."""
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"$defs": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        (
            {"type": "array", "items": {"$ref": "#/definitions/Item"}},
            "$ref '#/definitions/Item' leads to nothing in the schema itself",
        ),
        ({"$ref": "#"}, "it leads back to itself by $ref '#', with no step into the value"),
        (
            {"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {"$ref": "#"}}}},
            "it leads back to itself, with no step into the value",
        ),
        ({"pattern": "(?=a)"}, "'(?=a)' is no regular expression of RE2's"),
        ({"patternProperties": {"(?!a)": {}}}, "'(?!a)' is no regular expression of RE2's"),
        ({"pattern": "a{99999999999999999999}"}, "the repetition number is too large"),
        ({"unevaluatedItems": False}, "without unevaluatedItems: use items"),
        ({"items": {"$id": "http://x/y"}}, "with no $id inside of it, got 'http://x/y'"),
        ({"$id": "x" * 201}, "whose $id has at most 200 characters"),
        ({"$ref": "#" + "/$defs/a" * 30}, "whose $ref have at most 200 characters"),
    ],
)
def test_a_schema_that_checks_nothing_is_told(
    workspace: Path, schema: dict[str, Any], fault: str
) -> None:
    """The statement that calls ``finish`` hears of it, and the job goes on."""
    loop = PlainLoop(
        workspace, statements("finish([1])"), options={"result": schema, "budget": ONE_TURN}
    ).run()
    assert told(loop)[0].startswith("finish(): no result can be checked by this job's schema:")
    assert fault in told(loop)[0]
    assert fault in (schema_fault(schema) or "")


def test_no_schema_is_fetched(workspace: Path, tmp_path: Path) -> None:
    """A file that a reference names is not read, though it would allow the result."""
    elsewhere = tmp_path / "schema.json"
    elsewhere.write_text(json.dumps({"type": "integer"}))
    schema = {"$ref": elsewhere.as_uri()}
    loop = PlainLoop(
        workspace, statements("finish(1)"), options={"result": schema, "budget": ONE_TURN}
    ).run()
    assert "leads to nothing in the schema itself" in told(loop)[0]


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("schema", "bad"),
    [
        ({"pattern": SLOW}, "'a' * 40 + '!'"),
        ({"patternProperties": {SLOW: {}}, "additionalProperties": False}, "{'a' * 40 + '!': 1}"),
        (
            {"items": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": SLOW}},
            "['a' * 40 + '!']",
        ),
        ({"uniqueItems": True}, "[{'a': i} for i in range(40000)] + [{'a': 7.0}]"),
        (twice(40), "1"),
        (
            {
                "$defs": {str(n): {"$anchor": f"a{n}"} for n in range(1000)},
                "items": {"$ref": "#a1"},
            },
            "[1] * 250000",
        ),
        ({"items": {"$ref": "#" + "/$defs/a" * 20}, **nested_definitions(20)}, "[1] * 50000"),
        ({"items": {"enum": list(range(5000))}}, "[4999] * 50000"),
        ({"pattern": "(a|b)*a(a|b){1000}c"}, "'ab' * 200_000"),
    ],
)
def test_every_check_ends(workspace: Path, schema: dict[str, Any], bad: str) -> None:
    """In counted work: what is too much for it is an error of the statement."""
    host = JobHost(ContextGraph(len), frozenset(), schema, turn=1, now=0.0)
    value = eval(bad)
    assert schema_fault(schema) is None
    answer = host.function("finish", (value,), {})
    assert isinstance(answer, Failure)
    assert answer.message.endswith("; the job goes on")


@pytest.mark.slow
def test_a_large_result_that_fits_is_taken(workspace: Path) -> None:
    """Many unique objects, and a text by a pattern of which each part repeats."""
    schema = {
        "properties": {"items": {"uniqueItems": True}, "text": {"pattern": SLOW}},
    }
    loop = ended(
        workspace,
        schema,
        "finish({'items': [{'a': i} for i in range(20000)], 'text': 'ab ' * 9000})",
    )
    assert (told(loop), loop.stop.status if loop.stop else None) == ([], JobStatus.SUCCEEDED)


NULLABLE = {"anyOf": [{"type": "string"}, {"type": "null"}]}
ROW = {"type": "object", "properties": dict.fromkeys("abcde", NULLABLE), "required": list("abcde")}
KINDS = [{"properties": {"kind": {"const": kind}}, "required": ["kind"]} for kind in "ab"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "row"),
    [
        ({"items": ROW}, dict.fromkeys("abcde")),
        ({"items": {"$ref": "#/$defs/Row"}, "$defs": {"Row": ROW}}, dict.fromkeys("abcde")),
        ({"items": {"$ref": "#/$defs/Row"}, "$defs": {"Row": ROW}}, dict.fromkeys("abcde", "x")),
        ({"items": {"oneOf": KINDS}}, {"kind": "b", "n": 1}),
        ({"items": {"type": "object", "additionalProperties": {"type": "integer"}}}, {"a": 1}),
        ({"items": {"type": "integer"}}, 1),
    ],
)
def test_a_result_as_large_as_may_be_is_taken(schema: dict[str, Any], row: Any) -> None:
    """Also where most of its values fail a branch of the schema, as null fails a text."""
    rows = [row] * (MAX_REQUEST_BYTES // (len(json.dumps(row, separators=(",", ":"))) + 1) - 1)
    host = JobHost(ContextGraph(len), frozenset(), schema, turn=1, now=0.0)
    assert host.function("finish", (rows,), {}) == ReturnValue(None)


def test_a_part_is_checked_by_its_own_schema() -> None:
    """Whatever else was checked before, and by a reference or in place."""
    schema = {
        "$id": "http://h/s",
        "prefixItems": [{"$ref": "#/$defs/a"}, {"$ref": "http://h/s#/$defs/b"}, {"$ref": "#c"}],
        "items": {"$ref": "#/$defs/a"},
        "$defs": {
            "a": {"properties": {"x": {"type": "integer"}}},
            "b": {"properties": {"x": {"type": "string"}, "y": {"$ref": "#/$defs/a"}}},
            "c": {"$anchor": "c", "type": "null"},
        },
    }
    fine = [{"x": 1}, {"x": "1", "y": {"x": 2}}, None, {"x": 3}]
    assert result_problem(fine, schema) is None
    wrong = [fine[0], {"x": "1", "y": {"x": "2"}}, None, {"x": 3}]
    assert result_problem(wrong, schema) == "result[1]['y']['x']: '2' is not of type 'integer'"
    assert result_problem([*fine, {"x": None}], schema) == (
        "result[4]['x']: None is not of type 'integer'"
    )


def test_schemas_that_a_check_makes_are_not_mistaken() -> None:
    """Draft 3 makes one for each type that it disallows."""
    schema = {
        "$schema": "http://json-schema.org/draft-03/schema#",
        "items": {"disallow": ["string", "null"]},
    }
    assert result_problem([1] * 6000, schema) is None
    assert (
        result_problem([1] * 6000 + ["x"], schema) == "result[6000]: 'string' is disallowed for 'x'"
    )


@pytest.mark.parametrize("items", ["[1, 1.0]", "[[True], [True]]", "[{'a': 0}, {'a': -0.0}]"])
def test_equal_items_are_not_unique(workspace: Path, items: str) -> None:
    """Numbers are equal by their values, at any depth."""
    loop = ended(workspace, {"uniqueItems": True}, f"finish({items})", "finish([1])")
    [message] = told(loop)
    assert message.endswith("has non-unique elements; the job goes on")


def test_true_is_not_one(workspace: Path) -> None:
    """Nor is a text a number, or an object with the one the object with the other."""
    items = [True, 1, False, 0, "1", [1], [True], {"a": 1}, {"a": True}, None, 0.5]
    loop = ended(workspace, {"uniqueItems": True}, f"finish({items})")
    assert loop.stop == Stop(JobStatus.SUCCEEDED, "finished", items)


def test_a_value_that_is_deeper_than_a_check_goes(workspace: Path) -> None:
    """It is refused at the same depth in each process."""
    node: dict[str, Any] = {"anyOf": [{"type": "integer"}, {"items": {"$ref": "#/$defs/n"}}]}
    schema = {"$ref": "#/$defs/n", "$defs": {"n": node}}
    deep = "x = 1\nfor _ in range({}):\n    x = [x]\nfinish(x)"
    loop = ended(workspace, schema, deep.format(90), deep.format(30))
    assert told(loop) == [
        "finish(): result: it is nested too deep to be checked by the schema; the job goes on"
    ]


def test_what_was_taken_before_checks_were_bounded_is_taken(workspace: Path) -> None:
    """In a history of then: the host is asked only where something is refused."""
    asked: list[bool] = []

    def before() -> bool:
        asked.append(True)
        return False

    host = JobHost(
        ContextGraph(len), frozenset(), {"pattern": "^(?!b)"}, turn=1, now=0.0, bounded=before
    )
    assert isinstance(host.function("finish", ("a",), {}), ReturnValue)
    assert isinstance(host.function("finish", ("b",), {}), Failure)
    assert len(asked) == 2
    fine = JobHost(ContextGraph(len), frozenset(), {}, turn=1, now=0.0, bounded=before)
    assert isinstance(fine.function("finish", (1,), {}), ReturnValue)
    assert len(asked) == 2
