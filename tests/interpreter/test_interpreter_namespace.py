"""The namespace's digest covers all that variables hold, and a diff names the places that
changed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

import pytest
from plain_loop import Run

from runtime.base.digests import digest_bytes
from runtime.interpreter import listing, namespace, walk
from runtime.interpreter.contents import parse
from runtime.interpreter.definitions import Definitions
from runtime.interpreter.executions import Execution
from runtime.job.checkpoint import dump, load
from runtime.job.divergence import Aspect, compare_executions

CLASSES = """
from dataclasses import dataclass
@dataclass
class P:
    x: int
    y: object = None
class Q:
    def __init__(self):
        self.n = [1, 2]
p = P(1)
q = Q()
ps = [P(i) for i in range(20)]
"""


def _changed(execution: Execution) -> Mapping[str, tuple[str, ...]]:
    return {name: change.paths for name, change in execution.state_diff.changed.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second", "changed"),
    [
        ("acc = list(range(100))", "acc[40] = -1", {"acc": ("acc[40]",)}),
        ("acc = list(range(100_000))", "acc[77_777] = -1", {"acc": ("acc[77777]",)}),
        ("acc = [0, 1]", "acc += [2, 3]", {"acc": ("acc[2:4]",)}),
        ("conf = {'a': {'b': 1}, 'c': [1]}", "conf['a']['b'] = 2", {"conf": ("conf['a']['b']",)}),
        (
            "m = {(1, 2): [[1]], 'k': {'z': [{}]}}",
            "m['k']['z'][0]['n'] = 1",
            {"m": ("m['k']['z'][0]['n']",)},
        ),
        ("t = 'x' * 3000", "t = t[:1200] + '0123456789' + t[1210:]", {"t": ("t[1200:1210]",)}),
        ("t = 'x' * 200_000", "t = t[:-1] + 'y'", {"t": ()}),
        (
            "r = [{'id': i, 'n': str(i)} for i in range(2000)]",
            "r[1500]['n'] = '!'",
            {"r": ("r[1500]['n']",)},
        ),
        ("d = {'a': 1, 'b': 2}", "d = {'b': 2, 'a': 1}", {"d": ("d (the order of its keys)",)}),
        ("s = {'a', 'b'}\nk = [s, [0]]", "s.add('c')", {"k": ("k[0]",), "s": ()}),
        ("s = {3, 1, 2}", "s = {1, 2, 3}", {}),
        ("b = [b'a' * 200]", "b[0] = b'a' * 199 + b'b'", {"b": ("b[0]",)}),
        ("big = 10 ** 5000", "big += 1", {"big": ()}),
        ("f = [0.1 + 0.2, -0.0]", "f[1] = 0.0", {"f": ("f[1]",)}),
        ("v = [True, None]", "v[0] = 1", {"v": ("v[0]",)}),
        (CLASSES, "p.x = 2", {"p": ("p.x",)}),
        (CLASSES, "p.extra = 2", {"p": ("p.extra",)}),
        (CLASSES, "q.n.append(3)", {"q": ("q.n[2]",)}),
        (CLASSES, "ps[7].x = 99", {"ps": ("ps[7].x",)}),
        (CLASSES, "p.y = p", {"p": ("p.y",)}),
        ("a = [1]\nb = a", "b = list(a)", {"b": ()}),
        ("a = [1]\nb = [1]", "b = a", {"b": ()}),
        ("a = [1]\na.append(a)", "a[0] = 2", {"a": ("a[0]",)}),
        ("def f(): return 1", "def f(): return 2", {"f": ()}),
        ("def f(a=1): return a\ng = 1", "def f(a=2): return a", {"f": ()}),
        ("f = [lambda: 1, 0]", "f[0] = lambda: 2", {"f": ("f[0]",)}),
        ("f = lambda: 1", "g = sorted([2, 1], key=lambda n: -n)", {}),
        ("class C:\n    n = 1", "C.n = 2", {"C": ("C.n",)}),
        ("foo = view('a.txt')\nbar = view('a.txt')", "foo = bar", {"foo": ()}),
        ("foo = view('a.txt')\nbar = view('a.txt')\nv = [foo]", "v[0] = bar", {"v": ("v[0]",)}),
        ("x = []\nfor _ in range(40): x = [x, x]", "y = 1", {}),
        ("n = []\nfor _ in range(3000): n = [n]", "y = 1", {}),
    ],
)
def test_a_diff_names_what_changed_and_nothing_else(
    run: Run, first: str, second: str, changed: Mapping[str, tuple[str, ...]]
) -> None:
    """Whatever a statement changes inside a variable changes the digest; what it does not touch
    stays as it is.
    """
    loop = run(first, second)
    before, after = loop.executions[:2]
    assert (before.exception, after.exception) == (None, None)
    assert _changed(after) == changed
    assert bool(changed or after.state_diff.added) == (
        before.namespace_digest != after.namespace_digest
    )


def test_the_places_are_told_from_the_session_before_where_nothing_was_kept(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that takes a job over names the places that the first one would have named."""
    monkeypatch.setattr(listing, "KEPT_CHARS", 0)
    sources = (CLASSES + "acc = [[1], [2]]\ndef f(): return 1", "ps[3].y = acc\nacc[1].append(f)")
    assert _changed(run(*sources).executions[1]) == {"acc": ("acc[1][1]",), "ps": ("ps[3].y",)}


@pytest.mark.slow
def test_what_a_bound_leaves_out_is_said_and_takes_nothing_else_along(run: Run) -> None:
    """The one value that is too large is partial; smaller ones beside it are whole, and their
    changes are found.
    """
    loop = run(
        "huge = [[i, [i]] for i in range(20_000)]\nconf = {'a': {'b': [1]}}",
        "huge[19_000][0] = 'new'",
        "conf['a']['b'][0] = 2",
    )
    added = loop.executions[0].state_diff.added
    assert (added["huge"].partial, added["conf"].partial) == (("a list of 20000",), ())
    assert loop.executions[1].state_diff.changed == {}
    assert _changed(loop.executions[2]) == {"conf": ("conf['a']['b'][0]",)}


@pytest.mark.parametrize(
    ("source", "partial"),
    [
        ("v = [iter([1])]", ("[0]: the inside of a list_iterator",)),
        ("def v(a=[]): return a", ("a function's defaults and captured variables",)),
        (
            (
                "class C:\n    def __init__(self, **kw):\n        for k in kw: setattr(self, k,"
                " kw[k])\nv = {'c': C(a=1)}"
            ),
            ("['c']: attributes of a C that were set by computed names",),
        ),
    ],
)
def test_what_the_sandbox_does_not_show_is_said(
    run: Run, source: str, partial: tuple[str, ...]
) -> None:
    """A digest that cannot cover everything says what it does not cover, and where."""
    assert run(source).executions[0].state_diff.added["v"].partial == partial


def test_a_walk_does_bounded_work_whatever_it_meets() -> None:
    """Shared values are told once, and at most as many units are worked through as there are."""
    contents = parse(
        "v\t@0\n\n" + "\n".join([f"mlist\t@{n + 1}\t@{n + 1}" for n in range(60)] + ["=[]"]),
        frozenset(),
    )
    assert len(contents.told["v"].digest) == 16
    assert walk.UNITS * 20e-6 < 0.2


@pytest.mark.parametrize(
    "source",
    [
        "f = lambda: 0; g = lambda: 'é'",
        "é = [lambda: 'ü', lambda: [\n 1,\r\n 2]]\r\nclass C:\r  x = lambda s: '\x0c'\n",
        "\x0cdef f():\n\tdef g():\n\t\treturn '\x1c\u2028'\n\treturn g",
    ],
)
def test_definitions_are_cut_out_of_a_source_without_a_look_through_it_for_each(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand functions in a statement took seconds of processor time, five thousand minutes."""
    texts: dict[str, list[str]] = {}
    for name, node in _defined_in(ast.parse(source)):
        texts.setdefault(name, []).append(ast.get_source_segment(source, node) or "")
    assert texts
    monkeypatch.delattr(ast, "get_source_segment")
    assert Definitions().after(source).sources == {
        name: digest_bytes("\n".join(of).encode()).removeprefix("sha256:")[:16]
        for name, of in texts.items()
    }


def _defined_in(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The definitions in a tree, by name, from the outside in."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name, node
    elif isinstance(node, ast.Lambda):
        yield "<lambda>", node
    for part in ast.iter_child_nodes(node):
        yield from _defined_in(part)


def test_two_records_of_one_statement_differ_at_a_place(run: Run) -> None:
    """A divergence tells the path that differs, and none is told of a record without digests."""
    recorded = run("acc = [[1], [2], [3]]\nfoo = view('a.txt')", "acc[1][0] = 5").executions
    now = run("acc = [[1], [2], [3]]\nfoo = view('a.txt')", "acc[1][0] = 6").executions
    (found,) = compare_executions(2, recorded[1].archived(), now[1].archived())
    assert (found.aspect, found.subject) == (Aspect.NAMESPACE, "acc[1][0]")
    old = recorded[0].archived()
    for info in old["state_diff"]["added"].values():
        info.pop("digest", None)
    old["state_diff"]["added"]["foo"].pop("repr")
    assert compare_executions(1, old, now[0].archived()) == ()


def test_a_checkpoint_of_a_release_without_the_walk_goes_on_with_its_digests(run: Run) -> None:
    """Its session has no walk: it is listed, and digested, as its histories were."""
    loop = run("a = [1, 2]\nb = 'x'", "a.append(3)")
    job = loop.job
    saved = dump(job)
    names = job.session.names
    assert names.scheme == namespace.WHOLE
    again = load(job.spec, saved, count=len).session.names
    assert (again.digest, again.definitions, again.aliases) == (
        names.digest,
        names.definitions,
        names.aliases,
    )
    for field in ("scheme", "definitions", "aliases"):
        saved.pop(field, None)
    old = load(job.spec, saved, count=len).session.names
    assert (old.scheme, old.digest) == (namespace.SHORT, names.short_digest)
