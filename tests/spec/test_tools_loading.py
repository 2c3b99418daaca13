"""A tool's module is found beside the jobs file first, in a process of that batch's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runtime.base.errors import InputError
from runtime.tools.host import TRIES, HostEnded, ToolHost, ToolHosts, describe_tool
from tests.eventually import SECONDS

pytestmark = pytest.mark.slow


def write(directory: Path, **files: str) -> str:
    """Write ``name.py`` for each keyword (``a__b`` for ``a/b.py``); the directory."""
    for name, text in files.items():
        path = directory / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(directory)


def why(target: str, search_path: str) -> str:
    """The error that describing ``target`` raises."""
    with pytest.raises(InputError) as caught:
        describe_tool(target, search_path)
    return str(caught.value)


def call(target: str, search_path: str, *args: object) -> object:
    """What a tool returns, called in a process that ends with it."""
    return calls(search_path, (target, *args))[0]


def calls(search_path: str, *each: tuple[Any, ...]) -> list[object]:
    """What several calls return, made in one process after each other."""
    host = ToolHost(search_path)
    try:
        return [
            host.call(target, args, {}).answer.result()["outcome"]["value"]
            for target, *args in each
        ]
    finally:
        host.close()


def test_two_batches_have_two_modules_of_one_name(tmp_path: Path) -> None:
    """The same module name in two directories means two modules, also for what they import beside
    them.
    """
    here = write(
        tmp_path / "a",
        shared_name="import helper_name\ndef f(x: int) -> str:\n    return helper_name.N\n",
        helper_name="N = 'a'",
    )
    there = write(
        tmp_path / "b",
        shared_name="import helper_name\ndef f(x: int) -> str:\n    return helper_name.N\n",
        helper_name="N = 'b'",
    )
    assert [call("shared_name:f", path, 1) for path in (here, there)] == ["a", "b"]
    assert {"shared_name", "helper_name"}.isdisjoint(sys.modules)
    assert here not in sys.path


def test_a_module_is_run_once(tmp_path: Path) -> None:
    """Tools of one module share its state."""
    path = write(
        tmp_path,
        stateful=(
            "seen = []\ndef put(x: int) -> None:\n    seen.append(x)\ndef get() -> list[int]:\n   "
            " return seen\n"
        ),
    )
    assert calls(path, ("stateful:put", 3), ("stateful:get",)) == [None, [3]]


def test_packages_and_relative_imports(tmp_path: Path) -> None:
    """A dotted module is found in a package, with or without an ``__init__``; relative imports
    work.
    """
    path = write(
        tmp_path,
        pack__sub="from .other import f\nfrom . import other\n",
        pack__other="def f(x: int) -> int:\n    return x + 1\n",
    )
    assert call("pack.sub:f", path, 1) == 2


def test_what_is_not_beside_the_file_is_imported_as_usual(tmp_path: Path) -> None:
    """An installed module will do, if its functions are typed."""
    assert why("textwrap:dedent", str(tmp_path)).startswith(
        "tools are typed, but the parameter 'text'"
    )


def test_pythons_own_library_is_not_hidden_by_a_neighbour(tmp_path: Path) -> None:
    """A file beside the tool's module with the name of a standard module does not replace that."""
    path = write(
        tmp_path,
        uses_colorsys="import colorsys\ndef f() -> str:\n    return colorsys.__file__\n",
        colorsys="",
    )
    assert not str(call("uses_colorsys:f", path)).startswith(path)


@pytest.mark.parametrize("name", ["activities", "workflows", "runtime", "yaml", "tests"])
def test_a_neighbour_goes_before_what_is_installed(tmp_path: Path, name: str) -> None:
    """Also before packages of Holdfast, which the process has loaded by other names."""
    path = write(
        tmp_path,
        mine=f"import {name}\ndef f() -> str:\n    return {name}.WHOSE\n",
        **{name: "WHOSE = 'mine'\n"},
    )
    assert call("mine:f", path) == "mine"


def test_data_classes_and_postponed_annotations_work(tmp_path: Path) -> None:
    """The private module is a proper one: names in annotations are found."""
    path = write(
        tmp_path,
        postponed=(
            "from __future__ import annotations\nfrom dataclasses import dataclass\n"
            "@dataclass\nclass Hit:\n    line: int\n    next: Hit | None = None\n"
            "def first(hit: Hit) -> Hit:\n    return hit\n"
        ),
    )
    assert (
        describe_tool("postponed:first", path).stub == "def first(hit: Any) -> dict[str, Any]: ..."
    )


def test_what_a_module_prints_does_not_reach_stdout(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The standard output belongs to the command's own answer."""
    path = write(tmp_path, chatty="print('hello')\ndef f() -> None: ...\n")
    describe_tool("chatty:f", path)
    assert capfd.readouterr() == ("", "hello\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ("", "mod:f", "the module 'mod' has no function 'f'"),
        ("f = 3", "mod:f", "expected 'mod:f' to be a function, got int"),
        ("class f: ...", "mod:f", "expected 'mod:f' to be a function, got type"),
        ("def f():\n    yield 1", "mod:f", "expected 'mod:f' to return its result, but it is a generator"),
        ("def f(a, b: int): ...", "mod:f", "tools are typed, but the parameter 'a' of 'mod:f' has no annotation"),
        ("def f(**rest): ...", "mod:f", "tools are typed, but the parameter 'rest' of 'mod:f' has no annotation"),
        ("def f(a: 'Nope'): ...", "mod:f", "the annotations of 'mod:f' cannot be read: NameError: name 'Nope' is not defined"),
        ("def view(a: int): ...", "mod:view", "a tool cannot be called 'view': statements know that name as something else"),
        ("def print(a: int): ...", "mod:print", "a tool cannot be called 'print': statements know that name as something else"),
        ("def _f(a: int): ...", "mod:_f", "a tool cannot be called '_f'"),
        ("1 / 0", "mod:f", "importing 'mod' failed: ZeroDivisionError: division by zero"),
        ("import sys; sys.exit(3)", "mod:f", "importing 'mod' failed: SystemExit: 3"),
        ("import no_such_module", "mod:f", "importing 'mod' failed: ModuleNotFoundError: No module named 'no_such_module'"),
        ("def f(:", "mod:f", "importing 'mod' failed: SyntaxError: invalid syntax (mod.py, line 1)"),
        ("", "mod", "expected a tool as 'module:function', got 'mod'"),
        ("", "mod:f.g", "expected a tool as 'module:function', got 'mod:f.g'"),
        ("", "../mod:f", "expected a tool as 'module:function', got '../mod:f'"),
    ],
)  # fmt: skip
def test_what_is_no_tool(tmp_path: Path, text: str, target: str, message: str) -> None:
    """Each reason why a tool cannot be used is told in a line."""
    assert why(target, write(tmp_path, mod=text)) == message


LAZY = "" if sys.version_info >= (3, 14) else "from __future__ import annotations\n"
"""What has annotations that are evaluated when they are asked for, as each are from 3.14 on."""


def test_a_tool_names_a_class_that_is_defined_below_it(tmp_path: Path) -> None:
    """Also one that is marked, which is looked at before the class is there."""
    text = (
        f"{LAZY}from dataclasses import dataclass\nfrom pathlib import Path\n"
        "from holdfast import tool\n"
        "@tool(workspace=True)\ndef f(a: Below, *, workspace: Path) -> int: return a.n\n"
        "def g(a: Below) -> int: return a.n\n"
        "@dataclass\nclass Below:\n    n: int\n"
    )
    path = write(tmp_path, mod=text)
    assert describe_tool("mod:f", path).workspace
    assert call("mod:g", path, {"n": 3}) == 3


def test_a_tool_names_a_class_that_type_checkers_alone_know(tmp_path: Path) -> None:
    """Which is told as any annotation that cannot be read."""
    text = f"{LAZY}def f(a: Nope) -> int: ...\n"
    assert why("mod:f", write(tmp_path, mod=text)) == (
        "the annotations of 'mod:f' cannot be read: NameError: name 'Nope' is not defined"
    )


def test_no_such_module(tmp_path: Path) -> None:
    """A module that is nowhere is told with the places that were searched."""
    write(tmp_path, pack__other="")
    for module in ("no_such_module", "no_such.module", "pack.nope"):
        assert (
            why(f"{module}:f", str(tmp_path))
            == f"no module '{module}', neither in '{tmp_path}' nor on Python's import path"
        )


def test_a_type_that_cannot_be_checked(tmp_path: Path) -> None:
    """A parameter of a class that pydantic does not know could not be given by a statement."""
    told = why("mod:f", write(tmp_path, mod="class Odd: ...\ndef f(a: Odd): ...\n"))
    assert told.startswith(
        "a parameter of 'mod:f' has a type that a call cannot be checked against: "
    )


def test_a_failed_import_can_be_mended(tmp_path: Path) -> None:
    """After an error the file is read anew."""
    path = write(tmp_path, mended="1 / 0")
    assert "ZeroDivisionError" in why("mended:f", path)
    write(tmp_path, mended="def f(a: int) -> int:\n    return a\n")
    assert describe_tool("mended:f", path).stub == "def f(a: int) -> int: ..."


def test_the_models_that_workflows_import_are_light() -> None:
    """Workflow code gets the frozen models without YAML, JSON Schema, litellm or Temporal."""
    program = (
        "import sys, runtime.base.spec.models, runtime.jobsfile.changes\n"
        "heavy = {'ruamel', 'jsonschema', 'litellm', 'temporalio', 'tiktoken', 'boto3', 'httpx'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


KILLS_ITSELF = """
import os, pathlib, signal
here = pathlib.Path(__file__).parent
started = len(list(here.glob("started-*")))
(here / f"started-{started}").touch()
if started < %d:
    os.kill(os.getpid(), signal.SIGKILL)
def f(a: int) -> int:
    return a
"""
"""A module whose process is killed while it is imported, in so many first processes."""


def test_a_killed_process_is_no_fault_of_the_module(tmp_path: Path) -> None:
    """Another one is asked."""
    path = write(tmp_path, mine=KILLS_ITSELF % (TRIES - 1))
    assert describe_tool("mine:f", path).stub == "def f(a: int) -> int: ..."
    assert len(list(tmp_path.glob("started-*"))) == TRIES


def test_what_is_told_where_each_process_is_killed(tmp_path: Path) -> None:
    """That they were, and by what; the import has not failed."""
    assert why("mine:f", write(tmp_path, mine=KILLS_ITSELF % TRIES)) == (
        "3 processes were started to import 'mine', and each was killed (SIGKILL): by somebody, or"
        " because this machine has too little memory"
    )


def test_a_module_that_ends_its_process_is_told(tmp_path: Path) -> None:
    """Nobody else did, so it is imported once."""
    text = "import os, pathlib\nfile = pathlib.Path(__file__)\n(file.parent / f'{os.getpid()}.was').touch()\nos._exit(3)\n"
    told = why("mine:f", write(tmp_path, mine=text))
    assert told == "importing 'mine' failed: its process ended with exit code 3"
    assert len(list(tmp_path.glob("*.was"))) == 1


def test_processes_that_are_gone_are_not_kept(tmp_path: Path) -> None:
    """A worker of weeks may start any number of them, one after another."""
    search_path, hosts = (
        write(tmp_path, mine="import os\ndef f() -> None: os._exit(3)\n"),
        ToolHosts(),
    )
    try:
        for _ in range(3):
            host = hosts.of(search_path)
            with pytest.raises(HostEnded):
                host.call("mine:f", [], {}).answer.result(timeout=SECONDS)
        assert hosts.of(search_path) is not host
        assert hosts._retired == set()
    finally:
        hosts.close()
