"""A statement computes the same in every process: hash seeds, addresses and set orders do not
show.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import re
import sys
from pathlib import Path

import pytest
from plain_loop import PlainLoop, statements

def take(value: object) -> object:
    return value

loop = PlainLoop(Path(sys.argv[1]), statements(
    "s = {'b', 'a', ('c', 1), frozenset(['x', 'y'])}\\nprint(s)\\ns",
    "s.add('d')\\nd = {k: 1 for k in s}\\nprint(list(s), hash('abc'), id(s))\\ntake(sorted(map(str, s)))",
    "def f(): pass\\nclass P: pass\\np = P()\\nprint(f, p, P, [p])\\n(p, f)",
    "import random\\nprint(random.random(), random.sample(range(100), 5))",
    "foo = view('a.txt')\\nprint(foo, [foo], foo.GetDigest())\\n{'k': foo}",
    "import pprint\\npprint.pprint([{'b', 'a', 'c'}, {1: {('x', 1), (1, 'x')}}])\\npprint.pformat({'d', 'e', 'f'})",
    "from urllib.parse import urlencode\\nurlencode({'a': {'x', 'y', 'z'}}, doseq=True)",
    "x = list(range(3_000_000))",
), tools=[take])
loop.run()
print([(t.namespace, t.graph, t.events, t.layout) for t in loop.turns])
print([re.sub(r',"ms":[0-9]+', '', entry.value) for entry in loop.history])
"""


@pytest.mark.slow
def test_two_processes_with_other_hash_seeds_agree(tmp_path: Path) -> None:
    """Node digests, namespace digests, layouts, events and stretch digests are equal."""
    (tmp_path / "a.txt").write_text("hello\n")
    outputs = []
    for seed in ("1", "2"):
        root = Path(__file__).parents[2]
        path = os.pathsep.join([str(root), str(root / "tests" / "job")])
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
        command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    assert "verdict" not in outputs[0]
    assert outputs[0].count("sha256:") > 50
