"""The contract: what the model is told and what the checker knows are one, and true."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic_monty import Monty, MontyError, MontyTypingError

from runtime.base.effect_classes import Approval, EffectClass
from runtime.base.spec.models import Approvals, Spawn
from runtime.base.spec.servers import ServerListing, ServerTool
from runtime.context import api
from runtime.context.contract import MODULES, contract_text, type_stubs
from runtime.interpreter import supplied
from runtime.interpreter.lowering import lower

GOLDEN = Path(__file__).parent / "golden" / "contract.txt"


@dataclass(frozen=True)
class Search:
    """A job's tool as the contract sees it."""

    name: str = "search"
    stub: str = "def search(query: str, limit: int = 5) -> list[str]: ..."
    doc: str = "Lines of the index that contain the query."
    effect: EffectClass = EffectClass.IDEMPOTENT
    approval: Approval = Approval.NEVER


TOOLS = (Search(),)
SCHEMA = {"type": "object", "required": ["files"], "properties": {"files": {"type": "array"}}}


@pytest.fixture(scope="module")
def monty() -> Iterator[Monty]:
    with Monty(max_processes=1) as pool:
        yield pool


def complaint(monty: Monty, source: str) -> str:
    """What the real checker says of ``source``; empty when nothing.

    Nothing runs: the first name suspends.
    """
    stubs = type_stubs(TOOLS) + "gate: int\n"
    with monty.checkout(
        type_check=True, type_check_stubs=stubs, type_check_format="concise"
    ) as session:
        try:
            session.feed_start("gate\n" + source)
        except MontyTypingError as error:
            return str(error)
    return ""


DESIGN_SECTION_5 = """
foo = view("src/foo.py", pos="120:0", tokens=2000, lod=0)
bar = view("src/bar.py")
baz = view("src/baz.py")
foo.SetLod(1).SetTokens(All); foo.SetPos("40"); foo.Scroll(50); foo.Refresh(); foo.Pause()
foo.Run(freq="Sync")
foo.Run(freq=("Periodic", 60))
foo.Run(freq="Async")
s = group(foo, bar, tokens=500, lod=2).Run(freq="Sync")
s.Add(baz); s.Remove(bar); s.SetTokens(300)
ls(); show(foo, lod=0, tokens=800); pin(s, reason="the plan"); tick()
wait(3600); wait_for(foo)
finish({"files": []})
"""

SPEC_SECTION_9 = """
foo_cs = view("~/Foo.cs", pos="0:0", tokens=2000)           # paused by default
foo_cs.Run(freq="Sync")                                     # running, per turn
foo_sum = group(foo_cs, tokens=500, lod=2).Run(freq="Sync") # group summary node
foo_cs.SetLod(1)
foo_cs.SetTokens(10000)
foo_cs.SetPos("120:0")
foo_cs.Scroll(50)
foo_cs.Refresh()             # explicit refresh
foo_cs.Pause()
foo_detail = group(foo_cs, tokens=4000, lod=0)  # a more detailed façade
foo_sum.SetTokens(300)
foo_sum.SetLod(3)  # diff-only façade if supported
"""

SPEC_SECTION_1 = """
foo_cs_file = open("~/Foo.cs")
foo_cs = view(foo_cs_file, pos=0, tokens=2000)
foo_cs.SetLod(1).SetTokens(All)
"""

RIGHT = {
    "docs/design.md section 5": DESIGN_SECTION_5,
    "docs/contract/executable-context.md section 9": SPEC_SECTION_9,
    "docs/contract/executable-context.md section 1.2": SPEC_SECTION_1,
    "snake case": (
        "foo ="
        ' view("a").set_lod(1).set_tokens(5).set_pos(3)\nfoo.scroll(delta_tokens=9).refresh().run().pause()'
    ),
    "an annotation": 'x: ViewHandle = view("a")\ny: GroupHandle = group(x)',
    "paths": 'import pathlib\nfoo = view(pathlib.Path("a"))',
    "a frequency in a variable": (
        'def f(how: str, seconds: tuple) -> None:\n    view("a").Run(how).Run(seconds)'
    ),
    "handles in a list": (
        'vs = [view(p) for p in ("a", "b")]\ng = group(*vs)\ng.Add(*vs)\nn = [m.tokens for m in'
        " g.members]"
    ),
    "attributes": (
        'foo = view("a")\nlines = foo.text.splitlines()[: foo.last_line - foo.first_line]'
    ),
    "files": (
        "import os, pathlib\ntext = open('a').read()\nfor line in open('a', 'r',"
        " encoding='utf-8').readlines():\n    print(line.strip())\nwith open('b') as f:\n    data ="
        " f.read()\nnames = os.listdir('.')\ndeep = [p.name for p in pathlib.Path('.').iterdir() if"
        " p.is_dir()]\nt = pathlib.Path('a').read_text()"
    ),
    "a tool": 'hits: list[str] = search("x", limit=2)',
}

WRONG = {
    "view(1)": "view(1)",
    "SetLod of a str": 'foo = view("a")\nfoo.SetLod("x")',
    "an unknown method": 'foo = view("a")\nfoo.Nope()',
    "a view's method on a group": 'g = group(view("a"))\ng.Scroll(5)',
    "a path in a group": 'group("a")',
    "show of a path": 'show("a")',
    "a misspelt argument": 'view("a", token=5)',
    "a tool's argument": "search(5)",
    "an unknown name": "vieww('a')",
    "a missing argument": 'view("a").SetPos()',
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_calls_pass_the_checker(monty: Monty, name: str) -> None:
    """What the design and the specification write is accepted as written."""
    assert complaint(monty, RIGHT[name]) == ""


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_are_reported(monty: Monty, name: str) -> None:
    """A call that cannot work is reported before anything runs."""
    assert "error" in complaint(monty, WRONG[name])


def test_sub_jobs_are_told_of_where_they_are_allowed() -> None:
    """With what each is lent and how many there may be; elsewhere nobody knows the name."""
    plain = contract_text(form="tool", tools=(), result_schema=None)
    told = contract_text(form="tool", tools=(), result_schema=None, spawn=Spawn(max=3, usd=0.5))
    assert "spawn" not in plain
    assert "# Sub-jobs\nspawn(goal, result=None, turns=None, tokens=None, usd=None)" in told
    assert "20 turns, 500,000 tokens and $0.50" in told
    assert "At most 3;" in told
    assert "def spawn(goal: str, *, result:" in type_stubs((), spawn=True)
    assert "spawn" not in type_stubs(())
    assert api.names(hands=False, spawn=True) - api.names(hands=False) == {"spawn"}


def test_the_text_is_the_golden_file() -> None:
    """The text that the model reads is the one that a reviewer has read.

    HOW: write it to the file, and read the diff.
    """
    assert contract_text(form="tool", tools=TOOLS, result_schema=SCHEMA) == GOLDEN.read_text()


def test_web_pages_are_named_where_the_job_may_view_some() -> None:
    """A job that may not is not told of them."""
    allowed = contract_text(
        form="tool",
        tools=(),
        result_schema=None,
        urls=("https://docs.python.org/3/", "*.example.org"),
    )
    assert "; a web page of https://docs.python.org/3/, *.example.org;" in allowed
    assert "web page" not in contract_text(form="tool", tools=(), result_schema=None)


def test_script_form_differs_in_one_line_only() -> None:
    """The form of the reply changes how a statement is handed over, and nothing else."""
    tool = contract_text(form="tool", tools=(), result_schema=None).splitlines()
    script = contract_text(form="script", tools=(), result_schema=None).splitlines()
    assert [a for a, b in zip(tool, script, strict=True) if a != b] == [tool[1]]


def test_text_names_every_function_and_method() -> None:
    """Nothing that the checker knows is missing from the text."""
    text = contract_text(form="tool", tools=TOOLS, result_schema=SCHEMA)
    functions = [s.name for s in (*api.FUNCTIONS, api.FINISH)] + ["search"]
    methods = [s.name for s in (*api.VIEW_METHODS, *api.GROUP_METHODS)]
    assert [name for name in functions if not re.search(rf"\b{name}\(", text)] == []
    assert [name for name in methods if f".{name}(" not in text] == []


@pytest.mark.parametrize("module", [*MODULES, "subprocess", "socket", "logging"])
def test_modules_are_those_that_import(monty: Monty, module: str) -> None:
    """The text names the modules that a statement has; others are refused."""
    lowered = lower(f"import {module}")
    with monty.checkout() as session:
        for piece in lowered.pieces:
            session.feed_run(supplied.source(piece))
        if module in MODULES:
            session.feed_run(lowered.source)
        else:
            with pytest.raises(MontyError):
                session.feed_run(lowered.source)


@pytest.mark.parametrize(
    "source",
    [
        "def g():\n    while True:\n        yield 1",
        "class E(Exception):\n    pass",
        "class A:\n    pass\nclass B(A):\n    pass",
        "class A:\n    x = 1\na = A()\ndel a.x",
        "class A:\n    @property\n    def x(self):\n        return 1",
        "try:\n    pass\nexcept* ValueError:\n    pass",
        "from os import *",
        "type X = int",
    ],
)
def test_what_is_called_unsupported_is(monty: Monty, source: str) -> None:
    """Each limit of the language that the text names is one."""
    lowered = lower(source)
    with monty.checkout() as session:
        for piece in lowered.pieces:
            session.feed_run(supplied.source(piece))
        with pytest.raises(MontyError, match=r"not yet support|are not supported"):
            session.feed_run(lowered.source)


def test_defaults_in_the_signatures_bind() -> None:
    """Every definition makes a valid Python signature."""
    for signature in (*api.FUNCTIONS, api.FINISH, *api.VIEW_METHODS, *api.GROUP_METHODS):
        assert isinstance(signature.python(), inspect.Signature)


def test_a_job_is_told_of_unknown_outcomes_where_a_tool_runs_at_most_once() -> None:
    """The tool is marked, and the exception is a name of the checker's; in other jobs it is not."""
    tools = (
        *TOOLS,
        Search(
            name="pay", stub="def pay(n: int) -> None: ...", doc="Pay.", effect=EffectClass.ONCE
        ),
    )
    text = contract_text(form="tool", tools=tools, result_schema=None)
    assert (
        "\npay(n: int) -> None (once): Pay.\n\nA call marked (once) is made at most once." in text
    )
    assert "class OutcomeUnknown(Exception): ..." in type_stubs(tools)
    assert "OutcomeUnknown" not in contract_text(form="tool", tools=TOOLS, result_schema=None)
    assert "OutcomeUnknown" not in type_stubs(TOOLS)


def test_a_job_is_told_which_tools_wait_for_a_person() -> None:
    """By what a tool says itself, or the jobs file in its place; of a server's tools too."""
    pay = Search(
        name="pay",
        stub="def pay() -> None: ...",
        effect=EffectClass.ONCE,
        approval=Approval.ALWAYS,
    )
    server = ServerListing(
        name="docs",
        tools=(ServerTool(name="drop", tool="drop", stub="def drop(self): ...", digest=""),),
    )
    tools, asked = (*TOOLS, pay), Approval.ONCE_PER_ARGS

    def text(**approvals: Approval) -> str:
        return contract_text(
            form="tool",
            tools=tools,
            result_schema=None,
            servers=(server,),
            approvals=Approvals(tools=approvals),
        )

    told = text(search=asked, **{"docs.drop": asked})
    assert "list[str] (approval): Lines" in told
    assert "\npay() -> None (once) (approval): Lines" in told
    assert "\ndocs.drop() (once) (approval)\n" in told
    assert told.count("A call marked (approval) waits for a person") == 1
    assert "approval" not in text(pay=Approval.NEVER)
