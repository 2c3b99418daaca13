"""Files that a statement writes in a job's own workspace, with ``open`` and ``pathlib``, are what
Python writes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from plain_loop import PlainLoop, statements

from activities.contracts import WorkspaceChanged
from activities.hands import _data
from runtime.base.spec.models import Writable
from runtime.context.graph import ContextGraph
from runtime.interpreter.dialect import Dialect
from runtime.interpreter.hands import Outputs
from runtime.interpreter.host import Effect, EffectKind, ReturnValue
from runtime.interpreter.job_host import JobHost
from runtime.interpreter.lowering import lower

IMPORT = "from pathlib import Path\n"
UTF_8 = "NotImplementedError: open() writes text as UTF-8 alone: use Path(path).write_text(text, "


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
        "with open('t', 'wb') as f:\n    f.write(b'\\xff')\n    f.write(b'\\n')",
        "f = open('t', mode='bw')\nf.close()",
        "for n in range(2):\n    with Path('t').open('ab') as f:\n        f.write(b'\\xfe\\r\\n')",
        "with open('t', 'w') as f:\n    f.write('é\\n')",
        "with open('t', 'w', encoding='UTF-8', newline='') as f:\n    f.write('é\\r\\n')",
        "with open('t', mode='a', newline='\\n', errors='replace') as f:\n    f.write('é\\n')",
        "with Path('t').open('w', encoding='utf8') as f:\n    f.write('é\\n')",
        "with open('t', 'w', newline='\\r\\n', encoding='utf-8') as f:\n    f.write('é\\n\\r')",
        "with open('t', 'a', newline='\\r', encoding=None) as f:\n    f.write('é\\n')",
        "with open('t', 'w', newline='\\r\\n') as f:\n    f.write('é\\n')",
        "with Path('t').open('w', -1, 'utf-8', newline='\\r\\n') as f:\n    f.write('é\\n')",
        "with Path('t').open('w', newline='\\r\\n', encoding='utf-8') as f:\n    f.write('é\\n')",
        "with Path('t').open('w', newline='') as f:\n    f.write('é\\n')",
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
        ("open('t', 'wb').write('a')", "TypeError: a bytes-like object is required, not 'str'"),
        ("open('t', 'w', encoding='utf-16')", UTF_8 + "encoding='utf-16')"),
        ("open('t', mode='a', encoding='latin-1')", UTF_8 + "encoding='latin-1')"),
        ("Path('t').open('w', encoding='ascii')", UTF_8 + "encoding='ascii')"),
        ("open('t', 'w').write(b'a')", "TypeError: write() argument must be str, not bytes"),
        ("Path('t').write_text(b'a', encoding='utf-8')", "TypeError: data must be str, not bytes"),
    ],
)
def test_what_cannot_be_written_is_told(source: str, told: str, wrote: Wrote) -> None:
    """As Python tells it, or with what to write instead; nothing is written."""
    assert told in wrote(source)[0]


@pytest.mark.parametrize(("mode", "operation"), [("wb", "write"), ("ab", "append")])
def test_a_file_opened_for_bytes_was_one_for_text(mode: str, operation: str) -> None:
    """In a run of before, whose history has what came of it."""
    for dialect, data, then in [(Dialect.FIRST, "text", ""), (Dialect.LATEST, "data", "b")]:
        host = JobHost(
            ContextGraph(len), frozenset(), None, 1, 0.0, outputs=Outputs(), dialect=dialect
        )
        effect = host.system("open", (PurePosixPath("/workspace/t"), mode), {})
        assert isinstance(effect, Effect)
        assert (effect.request.operation, effect.request.arguments[data]) == (operation, "")
        answer = host.answered(effect, WorkspaceChanged(version="v"))
        assert isinstance(answer, ReturnValue)
        assert answer.value.mode == mode[0] + then


def test_what_is_read_is_read_in_its_encoding(wrote: Wrote) -> None:
    """As ever, beside what is written; and a statement's own ``open`` is called as it is."""
    source = (
        "Path('t').write_text('é\\n', encoding='latin-1')\n"
        "print(open('t', encoding='latin-1', newline='').read())\n"
        "print(Path('t').open(encoding='latin-1').read(), open('t', newline=None, mode='rb').read())"
        "\ndef open(*args, **kwargs):\n    return [args, kwargs]\n"
        "print(open('t', 'w', encoding='utf-16'))"
    )
    told = "é\n\né\n b'\\xe9\\n'\n[('t', 'w'), {'encoding': 'utf-16'}]\n"
    assert wrote(source)[0] == told


def test_a_run_of_before_opens_what_it_opened_then() -> None:
    """Whatever its encoding."""
    source = "open('t', 'w', encoding='utf-16')"
    assert lower(source, dialect=Dialect.FIRST).pieces[-1] == "_open"
    assert lower(source, dialect=Dialect.WRITES).pieces[-1] == "_opens"


@pytest.mark.parametrize(
    "source",
    [
        "Path('t').write_text('a', encoding='utf-8')",
        "Path('t').write_text('a', 'utf-8')",
    ],
)
def test_a_run_of_before_is_given_what_it_was_given_then(source: str) -> None:
    """Its history has what came of it."""
    lowered = lower(IMPORT + source, dialect=Dialect.FIRST)
    assert (lowered.source, lowered.pieces) == (IMPORT + source, ())
    assert "_writes" in lower(IMPORT + source).pieces
