"""Outlines in a process of their own: equal to those made here, and no text takes the worker with
it.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys

import pytest
from temporalio.exceptions import CancelledError

from runtime.context.outlines import Item, outline
from runtime.sources import outlining
from runtime.sources.outlining import Outliner

CODE = 'def one(a: int) -> int:\n    """It is one."""\n    return 1\n\n\nclass Two: ...\n'


def _process(outliner: Outliner) -> int:
    process = outliner._process
    assert process is not None
    return process.pid


def test_an_outline_is_the_same_wherever_it_is_made() -> None:
    """One process makes all of them."""
    outliner = Outliner()
    assert outliner.outline(CODE, ".py") == outline(CODE, ".py")
    first = _process(outliner)
    for text, suffix in [("", ".py"), ("# Ü\n\ud800\u2028\n", ".md"), ("x" * 300_000, "")]:
        assert outliner.outline(text, suffix) == outline(text, suffix)
    assert _process(outliner) == first


@pytest.mark.parametrize(
    ("hostile", "suffix"),
    [("%w(" * 10_000, ".rs"), ("a<" * 60_000, ".java"), ("/*" * 20_000, ".swift")],
)
def test_a_text_that_takes_too_much_is_outlined_by_its_lines(hostile: str, suffix: str) -> None:
    """Which ends the process that parses it, and no other; the next text has a new one."""
    outliner = Outliner()
    told = outliner.outline(f"class Fine:\n{hostile}", suffix)
    assert told == (Item(0, 0, "class Fine:"),)
    assert outliner.outline(CODE, ".py") == outline(CODE, ".py")


def test_a_process_that_was_ended_is_replaced() -> None:
    """Whoever ended it while it had nothing to do."""
    outliner = Outliner()
    outliner.outline(CODE, ".py")
    os.kill(_process(outliner), signal.SIGKILL)
    os.waitid(os.P_PID, _process(outliner), os.WEXITED | os.WNOWAIT)
    assert outliner.outline(CODE, ".py") == outline(CODE, ".py")


WITHOUT_PROCESSES = """
import os, resource, sys
from runtime.base.host_trouble import host_trouble
from runtime.sources.outlining import outline_apart
from runtime.sources.parquet import parquet_outline
file = os.open(os.devnull, os.O_RDONLY)
# Root may start as many as it likes.
if os.getuid() == 0:
    os.setuid(65534)
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
for outline in (lambda: outline_apart("x = 1", ".py"), lambda: parquet_outline(file, bytes)):
    try:
        print(outline())
    except OSError as error:
        print(host_trouble(error), error)
"""


def test_that_no_process_can_be_started_is_no_fault_of_the_source() -> None:
    """It is the host's trouble, for which a reading is tried again."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PROCESSES], capture_output=True, text=True, check=True
    )
    why = f"no process can be started: [Errno {errno.EAGAIN}] {os.strerror(errno.EAGAIN)}"
    assert done.stdout.splitlines() == [f"True {why}"] * 2


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_process_outlines_until_its_worker_has_ended(sent: signal.Signals) -> None:
    """Whoever ends all processes of a worker means the worker, which reads to its end."""
    outliner = Outliner()
    outliner.outline(CODE, ".py")
    first = _process(outliner)
    os.kill(first, sent)
    assert outliner.outline(CODE, ".py") == outline(CODE, ".py")
    assert _process(outliner) == first


def test_a_thread_that_is_stopped_leaves_no_answer_to_the_next_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As those of a worker that ends are, in which others may read still."""
    outliner = Outliner()
    outliner.outline(CODE, ".py")
    sent = outlining._sent

    def stopped(process: subprocess.Popen[bytes], question: bytes) -> bool:
        sent(process, question)
        raise CancelledError("stopped")

    with monkeypatch.context() as then:
        then.setattr(outlining, "_sent", stopped)
        with pytest.raises(CancelledError):
            outliner.outline(CODE, ".py")
    assert outliner.outline("class Three: ...\n", ".py") == outline("class Three: ...\n", ".py")
