"""Outlines that are made in a process of its own, ``_outline_child``: a source may be made to have
its parser take any amount of memory and time, or crash it.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from typing import Any

from runtime.base.own_process import command, starting
from runtime.context.outlines import Item, outline_by_lines


class Outliner:
    """One such process, which is kept, and started where it is missing; it ends with this one. Of
    several threads each waits for its turn.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._started_by = 0

    def outline(self, text: str, suffix: str) -> tuple[Item, ...]:
        """As ``outlines.outline``; of a text for which the process ended, by its lines alone.

        Raises:
            NoProcess: if none can be started.
        """
        with self._lock:
            try:
                told = self._asked(json.dumps([text, suffix]).encode() + b"\n")
            except BaseException:
                # A worker that ends raises in its threads: the answer would be the next text's.
                self._end()
                raise
        return outline_by_lines(text) if told is None else tuple(Item(*item) for item in told)

    def _asked(self, question: bytes) -> list[list[Any]] | None:
        process = self._process
        # Not that of the process from which this one was forked, which uses it too.
        if process is None or self._started_by != os.getpid() or not _sent(process, question):
            process = self._started()
            _sent(process, question)
        assert process.stdout is not None
        answer = process.stdout.readline()
        if answer.endswith(b"\n"):
            items: list[list[Any]] = json.loads(answer)
            return items
        process.communicate()
        return None

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None and self._started_by == os.getpid():
            process.kill()
            process.communicate()

    def _started(self) -> subprocess.Popen[bytes]:
        self._started_by = os.getpid()
        with starting():
            self._process = subprocess.Popen(
                command("runtime.sources._outline_child"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                # What parses a foreign text needs no variable, and shall have no key.
                env={},
            )
        return self._process


def _sent(process: subprocess.Popen[bytes], question: bytes) -> bool:
    """Whether the process is there to take a question."""
    if process.poll() is not None:
        return False
    assert process.stdin is not None
    try:
        process.stdin.write(question)
        process.stdin.flush()
    except BrokenPipeError:
        return False
    return True


outline_apart = Outliner().outline
"""The outline of a text, by the one ``Outliner`` of this process."""
