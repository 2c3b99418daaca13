"""A model or a budget given on the command line, in the words of a jobs file and checked as one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runtime.base.errors import InputError
from runtime.base.spec.models import Budget
from runtime.jobsfile.load import checked
from runtime.jobsfile.problems import Problems
from runtime.jobsfile.resolve.disk import Disk
from runtime.jobsfile.resolve.merged import spending_in
from runtime.jobsfile.resolve.models import model_of
from runtime.jobsfile.source import read_yaml
from runtime.jobsfile.written.budgets import WrittenBudget
from runtime.jobsfile.written.models import WrittenModel


def model_override(text: str, directory: Path) -> dict[str, Any]:
    """What litellm is called with for ``text``: a model's name, or a YAML mapping with its name and
    options.

    Raises:
        InputError: if it is neither; paths of scripts are relative to ``directory``.
    """
    problems = Problems("--model")
    written = checked(WrittenModel, read_yaml(text, problems), (), problems)
    problems.raise_if_any()
    assert written is not None, "what does not validate has a problem"
    settings = model_of(written, (), Disk(directory.resolve(), problems), problems)
    problems.raise_if_any()
    return {"name": settings.name, **settings.options}


def budget_override(text: str, base: Budget) -> Budget:
    """``base`` with the limits of ``text`` in their places: ``turns=80,usd=2.5,wall=12h``.

    Raises:
        InputError: if it is none.
    """
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(key.strip() and equals and value.strip() for key, equals, value in pairs):
        raise InputError(f"--budget {text!r}: expected limits such as turns=80,usd=2.5,wall=12h")
    problems = Problems("--budget")
    # As lines of YAML, so that each value means what it would in a file.
    lines = "".join(f"{key.strip()}: {value.strip()}\n" for key, _, value in pairs)
    written = checked(WrittenBudget, read_yaml(lines, problems), (), problems)
    problems.raise_if_any()
    assert written is not None, "what does not validate has a problem"
    return base.model_copy(update=spending_in(written))
