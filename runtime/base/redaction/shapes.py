"""Secrets that are known by their form alone.

Pure, and linear in the text: RE2 never goes back over what it has read.

What stands in a text is decided by this file and nothing else, so every worker of a release finds
the same. A text without a shape's hint is not searched: most have none, and looking for a constant
costs next to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import re2

_WINDOW = 300
"""Bytes around an AWS access key's id in which its secret is looked for."""


@dataclass(frozen=True)
class Shape:
    """Texts that hold one of ``hints`` and match ``pattern`` are secrets called ``name``: its group
    1, if it has one.
    """

    name: str
    hints: tuple[bytes, ...]
    pattern: Any

    def spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Where the secrets stand.

        What stands beside a label may be a mark already; what is a key by itself cannot.
        """
        if not any(hint in data for hint in self.hints):
            return
        group = self.pattern.groups
        for match in self.pattern.finditer(data):
            start, stop = match.span(group)
            if not (group and data.startswith(b"[masked:", start)):
                yield start, stop


def _shape(name: str, pattern: str, *hints: str) -> Shape:
    return Shape(name, tuple(hint.encode() for hint in hints), re2.compile(pattern.encode()))


_BASE = r"[A-Za-z0-9_-]"
_QUOTE = r"""\\?["']?"""
_IS = rf"{_QUOTE}\s*[:=]\s*{_QUOTE}"
"""Between a name and its value, in JSON, YAML, headers, Python and shells."""

SHAPES = (
    _shape(
        "private-key",
        r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?-----END [A-Z0-9 ]*PRIVATE KEY-----",
        "PRIVATE KEY-----",
    ),
    # OpenAI, Anthropic, OpenRouter and others. A digit is asked for: "sk-" begins names in style
    # sheets too.
    _shape("api-key", rf"\bsk-[A-Za-z_-]*[0-9]{_BASE}*", "sk-"),
    _shape("api-key", rf"\b(?:gsk_|xai-){_BASE}{{32,}}", "gsk_", "xai-"),
    _shape("aws-access-key-id", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", "AKIA", "ASIA"),
    _shape(
        "aws-secret-key", rf"(?i)secret_?access_?key{_IS}([A-Za-z0-9/+]{{40}})", "ecret", "ECRET"
    ),
    _shape(
        "github-token", r"\bgh[pousr]_[A-Za-z0-9]{36,}\b", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"
    ),
    _shape("github-token", r"\bgithub_pat_[A-Za-z0-9_]{50,}", "github_pat_"),
    _shape("gitlab-token", rf"\bglpat-{_BASE}{{20,}}", "glpat-"),
    _shape("slack-token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}", "xox"),
    _shape(
        "slack-webhook",
        r"\bhooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{20,})",
        "hooks.slack.com/",
    ),
    _shape(
        "discord-webhook",
        rf"\bdiscord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/([0-9]+/{_BASE}{{20,}})",
        "/webhooks/",
    ),
    _shape(
        "teams-webhook", r"\bwebhook\.office\.com/([A-Za-z0-9/@_-]{20,})", "webhook.office.com/"
    ),
    _shape("google-api-key", rf"\bAIza{_BASE}{{35,}}", "AIza"),
    _shape("google-token", rf"\bya29\.{_BASE}{{20,}}", "ya29."),
    _shape("huggingface-token", r"\bhf_[A-Za-z0-9]{30,}\b", "hf_"),
    _shape("stripe-key", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}\b", "k_live_", "k_test_"),
    _shape("sendgrid-key", rf"\bSG\.{_BASE}{{16,}}\.{_BASE}{{16,}}", "SG."),
    _shape("npm-token", r"\bnpm_[A-Za-z0-9]{36}\b", "npm_"),
    _shape("pypi-token", rf"\bpypi-AgEI{_BASE}{{50,}}", "pypi-AgEI"),
    _shape("jwt", rf"\beyJ{_BASE}{{10,}}\.eyJ{_BASE}{{10,}}\.{_BASE}{{10,}}", "eyJ"),
    _shape(
        "url-password",
        r"""\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'<>\[\]]*:([^\s/@"'<>{}$%][^\s/@"'<>]*)@""",
        "://",
    ),
    _shape(
        "url-token",
        r"""(?i)[?&](?:[a-z]+[_-])*(?:token|api_?key|secret|password|passwd|signature"""
        r"""|sig)=([^\s&#"'<>`\\]{8,})""",
        "=",
    ),
    _shape(
        "authorization",
        rf"(?i)\bauthorization{_IS}(?:bearer|basic|token|bot)\s+([a-z0-9._~+/=-]{{8,}})",
        "uthorization",
        "UTHORIZATION",
    ),
    _shape(
        "x-api-key",
        rf"""(?i)(?:^|[\s"'{{,])(?:x-api-key|api-key"""
        rf"""|x-auth-token){_IS}([a-z0-9._~+/=-]{{16,}})""",
        "-key",
        "-Key",
        "-KEY",
        "-oken",
        "-Token",
        "-token",
    ),
    _shape(
        "cookie",
        r"""(?i)\b(?:set-)?cookie\\?["']?\s*:\s*\\?["']?([^\s=;:"',\\]+=[^\r\n"'\\]{8,})""",
        "ookie",
        "OOKIE",
    ),
)
_LEAST = {"api-key": 23}
"""The fewest characters of what is a key, where the pattern does not say."""

_HINT = re2.compile(b"|".join(re.escape(hint) for shape in SHAPES for hint in shape.hints))
_ANY = re2.compile(b"|".join(b"(?:" + shape.pattern.pattern + b")" for shape in SHAPES))
"""One look at a text in place of one for each shape.

What an AWS id has beside it needs that id, which is a shape itself.
"""

_AWS_SECRET = re2.compile(rb"(?:^|[^A-Za-z0-9/+=])([A-Za-z0-9/+]{40})(?:$|[^A-Za-z0-9/+=])")
_AWS_ID = next(shape for shape in SHAPES if shape.name == "aws-access-key-id")


def has_shape(data: bytes) -> bool:
    """Whether anything in ``data`` is like a secret; ``mask_shapes`` leaves it as it is if not.

    What a line is like, the text is like of which it is one: no shape asks for more at its ends
    than a line's end gives.
    """
    return _HINT.search(data) is not None and _ANY.search(data) is not None


def mask_shapes(data: bytes, mark: Callable[[str, bytes], bytes]) -> bytes:
    """``data`` with ``mark(name, secret)`` in place of each secret.

    Without secrets it is not copied.
    """
    if not has_shape(data):
        return data
    pieces: list[bytes] = []
    done = 0
    for start, stop, name in _joined(data):
        pieces += (data[done:start], mark(name, data[start:stop]))
        done = stop
    return b"".join([*pieces, data[done:]]) if pieces else data


def _joined(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Where secrets stand, in order; those that overlap as one, by the name of the first and
    longest.
    """
    spans = [(*span, shape.name) for shape in SHAPES for span in shape.spans(data)]
    spans = [(a, b, name) for a, b, name in spans if b - a >= _LEAST.get(name, 0)]
    spans += [(*span, "aws-secret-key") for span in _aws_secrets(data)]
    spans.sort(key=lambda item: (item[0], -item[1]))
    current: tuple[int, int, str] | None = None
    for start, stop, name in spans:
        if current is not None and start < current[1]:
            current = (current[0], max(stop, current[1]), current[2])
            continue
        if current is not None:
            yield current
        current = (start, stop, name)
    if current is not None:
        yield current


def _aws_secrets(data: bytes) -> Iterator[tuple[int, int]]:
    """Keys of 40 characters near the id of an AWS access key.

    Digests, which are of that length too, have no capitals.
    """
    done = 0
    for start, stop in _AWS_ID.spans(data):
        # From behind what was found: two ids may stand near one secret.
        low, high = max(start - _WINDOW, done), stop + _WINDOW
        for match in _AWS_SECRET.finditer(data[low:high]) if low < high else ():
            if match[1] not in (match[1].lower(), match[1].upper()):
                yield low + match.start(1), low + match.end(1)
                done = low + match.end(1)
        done = max(done, stop)
