"""Which commands wait for a person, by patterns."""

from __future__ import annotations

import pytest

from runtime.base.effect_classes import Approval
from runtime.base.spec.models import Approvals, CommandRule, Writable
from runtime.context.contract import contract_text
from runtime.jobsfile.changes import changes, definition_digest
from runtime.jobsfile.dump import resolved_yaml
from tests.spec.conftest import Load, Refuse

FILE = """
batch: b
defaults: {{model: openai/x, workspace: {workspace}}}
jobs: [{{id: a, goal: g, approvals: {approvals}}}]
"""


def rules(*pairs: tuple[str, str]) -> Approvals:
    """Approvals of commands, by patterns in this order."""
    return Approvals(sh=tuple(CommandRule(pattern=p, approval=Approval(a)) for p, a in pairs))


PUSHES = rules(("git push*", "always"), ("rm *", "once-per-args"))
TESTS_ALONE = rules(("pytest*", "never"), ("tail*", "never"), ("*", "always"))


@pytest.mark.parametrize(
    ("approvals", "command", "answer"),
    [
        (PUSHES, "git status", "never"),
        (PUSHES, "git push origin", "always"),
        (PUSHES, "  git \t push", "always"),
        (PUSHES, "make && git push", "always"),
        (PUSHES, "rm x; git push", "always"),
        (PUSHES, "echo `rm x`", "once-per-args"),
        (PUSHES, "if true\nthen git push\nfi", "always"),
        (PUSHES, "(cd a; GIT_DIR='a b' sudo git push)", "always"),
        (PUSHES, "echo git push", "never"),
        (TESTS_ALONE, "pytest -q 2>&1 | tail -5", "never"),
        (TESTS_ALONE, "pytest -q &> log", "never"),
        (TESTS_ALONE, "pytest -q & curl x", "always"),
        (TESTS_ALONE, "PATH=. pytest -q", "always"),
        (rules(), "git push", "never"),
        (PUSHES, "true;" * 1_001, "always"),
    ],
)
def test_a_command_waits_if_one_of_those_in_it_does(
    approvals: Approvals, command: str, answer: str
) -> None:
    """The first pattern that fits holds for each of them, and the strictest answer for all."""
    assert approvals.of_command(command) == answer


def test_patterns_keep_their_order(load: Load) -> None:
    """In the definition, and in the file that is printed of it; a word alone is for all."""
    text = "{sh: {'pytest*': never, '*': always}, wait: 1h}"
    batch = load(FILE.format(workspace="{write: true}", approvals=text))
    (job,) = batch.jobs
    assert job.approvals.sh == rules(("pytest*", "never"), ("*", "always")).sh
    printed = resolved_yaml(batch)
    assert load(printed).jobs == batch.jobs
    assert "      wait: 1h\n      otherwise: reject\n" in printed
    (alone,) = load(FILE.format(workspace="{write: true}", approvals="{sh: always}")).jobs
    assert alone.approvals.sh == rules(("*", "always")).sh
    turned = job.model_copy(
        update={"approvals": job.approvals.model_copy(update={"sh": job.approvals.sh[::-1]})}
    )
    assert definition_digest(turned) != definition_digest(job)
    assert changes(job, turned) == ["approvals.sh changed"]


@pytest.mark.parametrize(
    ("workspace", "approvals", "message"),
    [
        (".", "{sh: always}", "approvals.sh: the job runs no commands: its workspace is read-only"),
        ("{write: true}", "{sh: {'*': sometimes}}", "approvals.sh['*']"),
        ("{write: true}", "{sh: [a]}", "approvals.sh"),
    ],
)
def test_what_cannot_be_meant(refuse: Refuse, workspace: str, approvals: str, message: str) -> None:
    """The error says where."""
    assert message in refuse(FILE.format(workspace=workspace, approvals=approvals))


@pytest.mark.parametrize(
    ("approvals", "message"),
    [
        ("{tools: {pay: always}}", "3: defaults.approvals.tools.pay: the job 'b' has no such tool"),
        ("{sh: always}", "3: defaults.approvals.sh: the job 'b' runs no commands"),
    ],
)
def test_a_mistake_in_the_defaults_names_the_job(
    refuse: Refuse, approvals: str, message: str
) -> None:
    """There may be many, of which the others have a rule of their own."""
    text = (
        f"batch: b\ndefaults: {{model: openai/x, workspace: .,\n  approvals: {approvals}}}\n"
        "jobs:\n  - {id: a, goal: g, approvals: {}}\n  - {id: b, goal: g}\n"
    )
    assert message in refuse(text)


@pytest.mark.parametrize(
    ("approvals", "mark"),
    [
        (rules(("*", "always")), "env=None) (approval): "),
        (PUSHES, 'env=None) (approval: "git push*", "rm *"): '),
        (TESTS_ALONE, 'env=None) (approval: not "pytest*", not "tail*", "*"): '),
        (rules(("git push*", "always"), ("*", "never")), 'env=None) (approval: "git push*"): '),
    ],
)
def test_the_model_is_told_what_waits(approvals: Approvals, mark: str) -> None:
    """By a mark, and one sentence that says what it means."""
    text = contract_text(
        form="tool", tools=(), result_schema=None, writable=Writable(), approvals=approvals
    )
    assert mark in text
    assert text.count("waits for a person") == 1


@pytest.mark.parametrize("approvals", [Approvals(), rules(("*", "never"))])
def test_a_job_of_which_nothing_waits_is_told_nothing(approvals: Approvals) -> None:
    """Not a word more."""
    writable = Writable()
    text = contract_text(
        form="tool", tools=(), result_schema=None, writable=writable, approvals=approvals
    )
    assert text == contract_text(form="tool", tools=(), result_schema=None, writable=writable)
    assert "approval" not in text
