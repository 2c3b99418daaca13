"""Handles: live objects of the statement, answered by id, in every process."""

from __future__ import annotations

import pytest
from plain_loop import Run
from pydantic_monty import ClassInstance

from runtime.context.outcomes import NodeRef
from runtime.interpreter.handles import Handles, handle_id


def test_handles_work_in_later_statements_and_chains(run: Run) -> None:
    """Each statement runs in a session that was restored from bytes, perhaps in another process."""
    loop = run(
        "foo = view('src/foo.py', tokens=30)",
        "foo.SetLod(1).SetTokens(All).set_pos('4')",
        "print(foo.lod, foo.tokens, foo.pos, foo.mode, foo.freq, foo.obj_id)",
        "foo.Run(freq='Sync')\nprint(foo.mode, foo.freq, foo.Render(lod=0, tokens=10))",
    )
    assert loop.executions[2].stdout == "1 -1 4:0 paused None view-1\n"
    assert loop.executions[3].stdout == "running Sync def f2():\n    return 2\n"


def test_handles_may_live_in_containers_and_functions(run: Run) -> None:
    """An item that is a handle holds its node like a variable does, under the name that reaches
    it.
    """
    loop = run(
        "views = [view('a.txt'), view('src/foo.py', tokens=20)]\nby = {'k': (views[1],)}",
        "def widen(v): return v.SetTokens(40)\nprint([widen(v).tokens for v in views],"
        " len(group(*views).members))",
        "views.pop()",
        "by = None",
    )
    assert loop.executions[1].stdout == "[40, 40] 2\n"
    assert [dict(turn.handles) for turn in loop.turns[:4]] == [
        {"by['k'][0]": "view-2", "views[0]": "view-1", "views[1]": "view-2"},
        {"by['k'][0]": "view-2", "views[0]": "view-1", "views[1]": "view-2"},
        {"by['k'][0]": "view-2", "views[0]": "view-1"},
        {"views[0]": "view-1"},
    ]


def test_two_names_of_one_node_are_the_same_node(run: Run) -> None:
    """A change through one is seen through the other, and losing one name keeps the node."""
    loop = run(
        "foo = view('a.txt')\nbar = foo", "bar.SetTokens(7)\nfoo = None", "print(bar.tokens)"
    )
    assert loop.executions[2].stdout == "7\n"
    assert loop.turns[1].handles == {"bar": "view-1"}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("take(foo)", "take(): argument 1 is the handle view-1"),
        ("take([1, foo])", "take(): argument 1[1] is the handle view-1"),
        ("take(value={'a': foo})", "take(): value['a'] is the handle view-1"),
        ("finish(foo)", "finish(): result is the handle view-1"),
        ("take({1, 2})", "take(): argument 1 is a set"),
        ("take(b'x')", "take(): argument 1 is a bytes"),
        ("take(float('inf'))", "take(): argument 1 is inf, which JSON does not have"),
        ("take({1: 2})", "take(): argument 1 has the key 1; keys must be strings"),
        ("take(10 ** 5000)", "take(): argument 1 has more than 900 digits; pass it as text"),
        ("class P: pass\ntake(P())", "take(): argument 1 is a P"),
        (
            "x = []\nfor n in range(150): x = [x]\ntake(x)",
            "take(): argument 1 is nested more than 100 levels deep",
        ),
    ],
)
def test_only_plain_data_leaves_a_statement(run: Run, source: str, message: str) -> None:
    """A handle or another live object as a tool's argument is refused, and the message says where
    it is.
    """
    loop = run(f"foo = view('a.txt')\n{source}", "print(foo.path)")
    exception = loop.executions[0].exception
    assert exception is not None
    assert exception.type == "TypeError"
    assert exception.message.startswith(message)
    assert loop.executions[1].stdout == "a.txt\n"


def test_unknown_attributes_and_methods_are_told(run: Run) -> None:
    """At run time too, where the checker knows the variable only as Any."""
    loop = run(
        "foo = view('a.txt')\nitems = [foo]", "items[0].nope", "items[0].SetLod", "items[0].Add(1)"
    )
    told = [execution.exception for execution in loop.executions[1:4]]
    assert [exception.type for exception in told if exception] == ["AttributeError"] * 3
    assert told[1] is not None
    assert told[1].message == "'ViewHandle' object has no attribute 'SetLod'"


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("items[0].path = 'b.txt'", "items[0]"),
        ("items[0].anything = 1", "items[0]"),
        ("setattr(items[0], 'obj_id', 'view-2')", "items[0]"),
        ("one = items[0]\none.tokens += 5", "items[0], one"),
    ],
)
def test_attributes_cannot_be_assigned_at_run_time(run: Run, source: str, place: str) -> None:
    """Where the checker knows the variable only as Any, the statement is taken back, and the node
    stays what it was.
    """
    loop = run(
        "items = [view('a.txt'), view('src/foo.py')]",
        f"x = 1\n{source}",
        "print(items[0].path, items[0].obj_id)",
    )
    exception = loop.executions[1].exception
    assert exception is not None
    assert exception.type == "AttributeError"
    assert exception.message.startswith(
        f"an attribute of {place} was assigned: attributes of handles are read-only;"
    )
    assert "x" not in loop.turns[1].variables
    assert loop.executions[2].stdout == "a.txt view-1\n"


def test_attributes_are_read_only_to_the_checker(run: Run) -> None:
    """Nothing of the statement runs."""
    loop = run("foo = view('a.txt')", "x = 1\nfoo.path = 'b.txt'")
    exception = loop.executions[1].exception
    assert exception is not None
    assert (exception.type, "x" in loop.turns[1].variables) == ("TypeCheckError", False)
    assert (
        "Cannot assign to read-only property `path` on object of type `ViewHandle`"
        in exception.message
    )


def test_outgoing_and_incoming_are_inverse() -> None:
    """Nodes inside lists, tuples and dicts cross to the interpreter and back."""
    handles = Handles(["view-1"])
    value = {"a": [NodeRef("view-1"), (NodeRef("group-2"), 3)]}
    crossing = handles.outgoing(value)
    instance = crossing["a"][0]
    assert isinstance(instance, ClassInstance)
    assert handles.obj_id(handle_id("group-2")) == "group-2"
    assert handles.outgoing(5) == handles.incoming(5) == 5
