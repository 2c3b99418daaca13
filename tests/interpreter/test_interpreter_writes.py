"""Files that a statement writes in a job's own workspace, with ``open`` and ``pathlib``, are what
Python writes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from plain_loop import PlainLoop, statements

from activities.contracts import WorkspaceChanged
from activities.hands import _data
from runtime.base.spec.models import Writable
from runtime.interpreter.host import Effect, EffectKind
from runtime.interpreter.lowering import lower

IMPORT = "from pathlib import Path\n"


class Writing(PlainLoop):
    """A job that writes in a directory itself: versions of it are no concern here."""

    def _perform(self, effect: Effect) -> Any:
        if effect.kind is not EffectKind.CHANGE:
            return super()._perform(effect)
        return self._durable("change", WorkspaceChanged, lambda: self._change(effect.request))

    def _change(self, request: Any) -> WorkspaceChanged:
        mode = {"write": "wb", "append": "ab"}[request.operation]
        with (self.workspace / request.path).open(mode) as file:
            file.write(_data(request.arguments))
        return WorkspaceChanged(version="v")


Wrote = Callable[[str], tuple[str, dict[str, bytes]]]


@pytest.fixture
def wrote(tmp_path: Path) -> Wrote:
    """What a statement printed, and the files that it wrote; a replay comes to the same."""

    def go(source: str) -> tuple[str, dict[str, bytes]]:
        directory = tmp_path / "of the job"
        directory.mkdir()
        loop = Writing(directory, statements(IMPORT + source), options={"writable": Writable()})
        execution = loop.run().replayed().executions[0]
        if execution.exception is not None:
            return f"{execution.exception.type}: {execution.exception.message}", {}
        return execution.stdout, {path.name: path.read_bytes() for path in directory.iterdir()}

    return go


def python_wrote(source: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """What Python itself writes."""
    directory.mkdir()
    monkeypatch.chdir(directory)
    exec(IMPORT + source, {"__name__": "a statement"})
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize(
    "source",
    [
        "Path('t').write_text('é\\n', encoding='utf-8')",
        "Path('t').write_text('é\\n', 'UTF8')",
        "Path('t').write_text(data='é\\n', errors='strict')",
        "Path('t').write_text('é\\n', encoding=None, newline='')",
        "Path('t').write_text('a\\nb\\n', newline='\\r\\n')",
        "Path('t').write_text('é\\n', encoding='utf-16')",
        "Path('t').write_text('é\\n', encoding='utf-8-sig')",
        "(Path('.') / 't').write_text('é\\n', encoding='latin-1')",
        "Path('t').write_text('é\\n', encoding='ascii', errors='ignore')",
        "[Path(n).write_text(f'{n}\\n', encoding='utf-8') for n in 'ab']",
    ],
)
def test_what_is_written_is_what_python_writes(
    source: str, wrote: Wrote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte."""
    told, files = wrote(source)
    assert files == python_wrote(source, tmp_path / "of python", monkeypatch), told


def test_write_text_gives_what_it_gives_in_python(wrote: Wrote) -> None:
    """How many characters it was given, whatever they became."""
    source = "print(Path('t').write_text('é\\n', encoding='utf-16', newline='\\r\\n'))"
    assert wrote(source)[0] == "2\n"


def test_a_method_of_that_name_of_a_statements_own_class_is_called_as_it_is(wrote: Wrote) -> None:
    """With what it is given."""
    source = (
        "class Page:\n"
        "    def write_text(self, text, encoding='-', font='plain'):\n"
        "        return [text, encoding, font]\n"
        "print(Page().write_text('a', encoding='b'), Page().write_text('a', 'b', font='c'))"
    )
    assert wrote(source)[0] == "['a', 'b', 'plain'] ['a', 'b', 'c']\n"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("Path('t').write_text('é', encoding='ascii')", "ordinal not in range"),
        ("Path('t').write_text('é', encoding='no-such')", "unknown encoding: no-such"),
        ("Path('t').write_text('a', newline='a')", "ValueError: illegal newline value: 'a'"),
        ("Path('t').write_text(b'a', encoding='utf-8')", "TypeError: data must be str, not bytes"),
    ],
)
def test_what_cannot_be_written_is_told(source: str, told: str, wrote: Wrote) -> None:
    """As Python tells it."""
    assert told in wrote(source)[0]


@pytest.mark.parametrize(
    "source",
    [
        "Path('t').write_text('a', encoding='utf-8')",
        "Path('t').write_text('a', 'utf-8')",
    ],
)
def test_a_run_of_before_is_given_what_it_was_given_then(source: str) -> None:
    """Its history has what came of it."""
    lowered = lower(IMPORT + source, writes=False)
    assert (lowered.source, lowered.pieces) == (IMPORT + source, ())
    assert "_writes" in lower(IMPORT + source).pieces
