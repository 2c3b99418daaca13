"""The patch that a job hands over with its result."""

from __future__ import annotations

import re

from runtime.archive.handed import MOST_TOLD, handed_patch, told_patch
from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore
from runtime.archive.trees import Trees
from runtime.base.digests import digest_bytes
from runtime.base.redaction.redactor import Redactor
from runtime.base.redaction.rules import Redaction
from runtime.base.spec.models import Writable
from runtime.context import api
from runtime.context.contract import contract_text, type_stubs
from runtime.context.graph import ContextGraph
from runtime.interpreter.hands import Outputs
from runtime.interpreter.host import Failure, ReturnValue
from runtime.interpreter.job_host import Finished, JobHost
from runtime.workspace.git.differences import differences
from runtime.workspace.handed import hand_over
from tests.git.jobs import RUN, hands_job

PLAIN = Redactor(Redaction(), {}, lambda: b"k")


def made(text: bytes, redactor: Redactor = PLAIN) -> tuple[JobArchive, str, bytes]:
    """A job that wrote a file, and the patch of its first version to its last; its end names the
    one that it handed over.
    """
    job = hands_job(MemoryStore(), {"a": b"one\n", "b": b"\0\1"}, [("x", {"n": text, "b": None})])
    end = job.end(RUN)
    assert end is not None
    handed = hand_over(job, RUN, 1, end.workspace, redactor)
    assert handed is not None
    assert hand_over(job, RUN, 1, end.workspace, PLAIN) == handed, "what was first stays"
    told = end.model_copy(update={"patch": handed})
    base = (job.effect(RUN, 0, 0) or {})["version"]
    whole = differences(Trees(job.store), base, end.workspace, binary=True).patch
    assert handed.digest == digest_bytes(handed_patch(job, told))
    assert (handed.paths, handed.bytes) == (2, len(handed_patch(job, told)))
    text_told = (told_patch(job, told) or {})["text"]
    return job, text_told, whole if handed_patch(job, told) == whole else handed_patch(job, told)


def test_it_is_an_object_that_the_result_names() -> None:
    """Whole, binary files too, and told as text where it is short."""
    _, told, whole = made(b"new\n")
    assert told.encode() == whole
    assert b"GIT binary patch" in whole and b"+new" in whole
    _, told, whole = made(b"long line\n" * (MOST_TOLD // 10))
    assert told is None
    assert len(whole) > MOST_TOLD


def test_secrets_in_it_are_masked() -> None:
    """As everywhere else, and it says how many."""
    job, told, _ = made(
        b"a secret-17 b\n", Redactor(Redaction(patterns=("secret-\\d+",)), {}, lambda: b"k")
    )
    assert re.search(r"\+a \[masked:pattern-1:[0-9a-f]{16}\] b\n", told)
    effect = job.effect(RUN, 1, 780_000) or {}
    assert effect["patch"]["masked"] == 1


def test_a_mark_that_a_file_holds_is_no_secret_of_the_patch() -> None:
    """As of what the job was shown masked, and wrote down: there the patch applies."""
    mark = b"a [masked:pattern-1:0123456789abcdef] b\n"
    job, _, _ = made(mark)
    assert (job.effect(RUN, 1, 780_000) or {})["patch"]["masked"] == 0
    redactor = Redactor(Redaction(patterns=("secret-\\d+",)), {}, lambda: b"k")
    job, _, _ = made(mark + b"secret-17\n", redactor)
    assert (job.effect(RUN, 1, 780_000) or {})["patch"]["masked"] == 1


def test_only_a_job_with_files_of_its_own_knows_of_it() -> None:
    """Of the contract, the checker and the call."""
    own = {"form": "tool", "tools": (), "result_schema": None}
    assert "patch" not in contract_text(**own)  # type: ignore[arg-type]
    assert "finish(result=None, patch=False): " in contract_text(**own, writable=Writable())  # type: ignore[arg-type]
    assert "patch" not in type_stubs(())
    assert "def finish(result: Any = None, patch: bool = False) -> None" in type_stubs(
        (), hands=True
    )

    def host(outputs: Outputs | None) -> JobHost:
        return JobHost(ContextGraph(len), frozenset(), None, turn=1, now=0.0, outputs=outputs)

    refused = host(None).function("finish", (1,), {"patch": True})
    assert isinstance(refused, Failure) and api.FINISH.shape() in refused.message
    with_files = host(Outputs())
    assert with_files.function("finish", (1,), {"patch": True}) == ReturnValue(None)
    assert with_files.finished == Finished(1, patch=True)
