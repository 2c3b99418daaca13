"""Which run of a job a batch takes a wish to begin it anew for."""

from __future__ import annotations

import pytest

from activities.batch_contracts import Followed
from workflows.batch import BatchWorkflow
from workflows.beside import Beside
from workflows.children import Children
from workflows.messages import BatchCarried, Submission
from workflows.patches import STARTS_ONCE


@pytest.mark.parametrize("goes_by", [True, False])
def test_a_rerun_whose_start_is_under_way_is_the_one_asked_for(
    goes_by: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the server has said which run it is, the batch knows the run before; one of before this
    patch takes it for the end of that, as its history has it.
    """
    monkeypatch.setattr("workflows.children.patched", lambda name: name != STARTS_ONCE or goes_by)
    carried = BatchCarried(concurrency=1, open=(Followed(job="one", run="first"),))
    batch = object.__new__(BatchWorkflow)
    batch.children = Children("b", carried, Beside(), lambda *_: None)
    batch.children.starting.add("one")
    rerun = Submission(jobs=(), concurrency=1, rerun=("one",), ends={"one": "first"})
    assert batch.begins_anew("one", rerun) is not goes_by
    batch.children.starting.clear()
    assert batch.begins_anew("one", rerun)
    batch.children.runs["one"] = "second"
    assert not batch.begins_anew("one", rerun)
