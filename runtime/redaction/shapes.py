"""Secrets that are known by their form alone: a name for their marks, a hint, and a pattern.

A text without the hint is not searched: most have none, and looking for a constant costs next to nothing.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Shape(NamedTuple):
    """Texts that hold ``hint`` and match ``pattern`` are secrets called ``name``; ``raw`` is the pattern for bytes."""

    name: str
    hint: str
    pattern: re.Pattern[str]
    raw: re.Pattern[bytes]


def _shape(name: str, hint: str, pattern: str) -> Shape:
    return Shape(name, hint, re.compile(pattern, re.ASCII), re.compile(pattern.encode()))


SHAPES = (
    _shape("private-key", "PRIVATE KEY-----", r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z0-9 ]*PRIVATE KEY-----"),
    # OpenAI, Anthropic, OpenRouter and others. A digit is asked for: "sk-" begins names in style sheets too.
    _shape("api-key", "sk-", r"\bsk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{20,}"),
    _shape("aws-access-key-id", "AKIA", r"\bAKIA[A-Z0-9]{16}\b"),
    _shape("aws-access-key-id", "ASIA", r"\bASIA[A-Z0-9]{16}\b"),
    *(_shape("github-token", f"gh{kind}_", rf"\bgh{kind}_[A-Za-z0-9]{{36,}}\b") for kind in "pousr"),
    _shape("github-token", "github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{50,}"),
    _shape("gitlab-token", "glpat-", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    _shape("slack-token", "xox", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    _shape("google-api-key", "AIza", r"\bAIza[A-Za-z0-9_-]{35}"),
    _shape("google-token", "ya29.", r"\bya29\.[A-Za-z0-9_-]{20,}"),
    _shape("huggingface-token", "hf_", r"\bhf_[A-Za-z0-9]{30,}\b"),
    _shape("stripe-key", "k_live_", r"\b[rs]k_live_[A-Za-z0-9]{16,}\b"),
    _shape("npm-token", "npm_", r"\bnpm_[A-Za-z0-9]{36}\b"),
    _shape("pypi-token", "pypi-AgEI", r"\bpypi-AgEI[A-Za-z0-9_-]{50,}"),
    _shape("jwt", "eyJ", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
)  # fmt: skip
