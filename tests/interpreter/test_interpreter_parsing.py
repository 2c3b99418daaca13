"""Statements and values are read in many threads at once."""

import ast
import subprocess
import sys
import threading
import time

import pytest

from runtime.base import syntax
from runtime.base.syntax import TRIES, literal, tree_of

PARSE = ast.parse


def test_one_thread_parses_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many want to."""
    inside: list[int] = []
    most: list[int] = []

    def watched(source: str, mode: str = "exec") -> ast.AST:
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.001)
        inside.pop()
        return PARSE(source, mode=mode)

    monkeypatch.setattr(syntax.ast, "parse", watched)
    threads = [threading.Thread(target=tree_of, args=("x = 1",)) for _ in range(5)]
    threads += [threading.Thread(target=literal, args=("[1]",)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 10


@pytest.mark.parametrize("times", [1, TRIES - 1, TRIES])
def test_a_parse_that_another_thread_disturbed_is_made_again(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """A library's thread knows nothing of the lock; an interpreter that is broken is told."""
    left = [SystemError("AST constructor recursion depth mismatch (before=129, after=102)")] * times

    def disturbed(source: str, mode: str = "exec") -> ast.AST:
        if left:
            raise left.pop()
        return PARSE(source, mode=mode)

    monkeypatch.setattr(syntax.ast, "parse", disturbed)
    if times < TRIES:
        assert literal("[1, 2]") == [1, 2]
    else:
        with pytest.raises(SystemError):
            literal("[1, 2]")


@pytest.mark.parametrize("text", ["[1", "f()", "[1, f()]", " 1\x00"])
def test_errors_are_the_parsers_own(text: str) -> None:
    """What is no literal is refused as ``ast.literal_eval`` does."""
    with pytest.raises((SyntaxError, ValueError)) as theirs:
        ast.literal_eval(text)
    with pytest.raises(theirs.type):
        literal(text)


@pytest.mark.parametrize("action", ["default", "error"])
def test_what_the_parser_warns_of_is_not_told(action: str) -> None:
    """Nor is it an error, whatever Python is told to do with warnings."""
    program = "from runtime.base.syntax import tree_of; tree_of('x = \"\\\\d\" if 5is 5 else 1')"
    told = subprocess.run(
        [sys.executable, "-W", action, "-c", program], capture_output=True, text=True, check=False
    )
    assert (told.returncode, told.stderr) == (0, "")
