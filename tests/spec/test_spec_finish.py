"""``on_finish`` in a jobs file: a command or a webhook, and no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.base.errors import InputError
from runtime.base.spec.finish import FinishEvent, OnFinish
from runtime.base.spec.models import BatchSpec
from runtime.jobsfile.dump import resolved_yaml
from runtime.jobsfile.load import load_jobs_file

JOBS = "jobs:\n  - {id: a, goal: g, workspace: ., model: openai/m}\n"


def loaded(path: Path, on_finish: str) -> BatchSpec:
    file = path / "jobs.yaml"
    file.write_text(f"on_finish: {on_finish}\n{JOBS}")
    return load_jobs_file(file)


def test_a_command_and_a_webhook(tmp_path: Path) -> None:
    """All ends are told by default; a command runs where the jobs file is."""
    assert loaded(tmp_path, "{command: ./notify.sh}").on_finish == OnFinish(
        command="./notify.sh", directory=str(tmp_path)
    )
    hook = loaded(tmp_path, "{webhook: $HOOK, events: [batch, batch], timeout: 5s}").on_finish
    assert hook == OnFinish(
        webhook="$HOOK", events=(FinishEvent.BATCH,), timeout=5.0, directory=str(tmp_path)
    )


def test_it_is_printed_so_that_it_is_read_back(tmp_path: Path) -> None:
    """``--print-config`` gives the same batch again."""
    batch = loaded(tmp_path, "{webhook: 'https://example.org/hook?x=1', events: [job]}")
    (tmp_path / "again.yaml").write_text(resolved_yaml(batch))
    assert load_jobs_file(tmp_path / "again.yaml") == batch


@pytest.mark.parametrize(
    ("on_finish", "told"),
    [
        ("{}", "expected one of 'command' and 'webhook'"),
        ("{command: a, webhook: $B}", "expected one of 'command' and 'webhook'"),
        ("{webhook: 'ftp://example.org/h0tsecret'}", "expected a URL that begins with http"),
        ("{webhook: 'https://u:h0tsecret@example.org/'}", "expected a URL without a secret"),
        ("{webhook: 'https://example.org/?token=h0tsecret'}", "expected a URL without a secret"),
    ],
)
def test_what_is_wrong_is_told_without_the_secret(
    tmp_path: Path, on_finish: str, told: str
) -> None:
    """One line with the place, and never what may be a secret."""
    with pytest.raises(InputError) as error:
        loaded(tmp_path, on_finish)
    assert told in str(error.value)
    assert "h0tsecret" not in str(error.value)


@pytest.mark.parametrize(
    ("webhook", "shown"),
    [
        (
            "https://hooks.example.org:8443/services/T0/xyz",
            "https://hooks.example.org:8443/[masked]",
        ),
        ("https://example.org/", "https://example.org"),
        ("$HOOK", "$HOOK"),
    ],
)
def test_a_webhook_is_shown_by_its_host(webhook: str, shown: str) -> None:
    """Its path may be all that keeps others out."""
    assert OnFinish(webhook=webhook).shown == f"webhook {shown}"
