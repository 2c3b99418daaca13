"""Secrets are masked by value, by shape and by a job's patterns, alike in text and in bytes."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import InputError
from runtime.redaction.key import redaction_key
from runtime.redaction.marks import MARK, count_marks
from runtime.redaction.redactor import Redactor
from runtime.redaction.rules import Redaction

KEY = b"a key of the installation"
TEAM = "s3cr3t"
PROVIDER = "sk-test-0123456789abcdefghij"
ENVIRONMENT = {"OPENAI_API_KEY": PROVIDER, "TEAM_PIN": TEAM, "KEY_FILE_KEY": "/etc/ssl/private.key", "A_TOKEN": "short"}

SHAPES = {
    "private-key": "-----BEGIN RSA PRIVATE KEY-----\nMIIB\nabc=\n-----END RSA PRIVATE KEY-----",
    "api-key": "sk-ant-api03-" + "Ab3" * 12,
    "aws-access-key-id": "AKIA" + "ABCDEFGH12345678",
    "github-token": "ghp_" + "a1" * 18,
    "gitlab-token": "glpat-" + "a1" * 10,
    "slack-token": "xoxb-" + "1234567890-abc",
    "google-api-key": "AIza" + "a" * 35,
    "google-token": "ya29." + "a" * 30,
    "huggingface-token": "hf_" + "a" * 34,
    "stripe-key": "sk_live_" + "a1" * 10,
    "npm-token": "npm_" + "a" * 36,
    "pypi-token": "pypi-AgEI" + "a" * 60,
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.abcdefghijkl",
}


def redactor(*patterns: str, env: tuple[str, ...] = ("TEAM_PIN",)) -> Redactor:
    return Redactor(Redaction(env=env, patterns=patterns), ENVIRONMENT, lambda: KEY)


def mark(name: str, value: str) -> str:
    code = hmac.new(KEY, value.encode(), hashlib.sha256).hexdigest()[:16]
    return f"[masked:{name}:{code}]"


def test_values_of_the_environment_are_masked_by_their_names() -> None:
    """A provider's key and a variable that the job names; not the path of a key's file, nor what is too short."""
    given_text = f"key={PROVIDER} pin {TEAM}, {ENVIRONMENT['KEY_FILE_KEY']} and short"
    expected = f"key={mark('OPENAI_API_KEY', PROVIDER)} pin {mark('TEAM_PIN', TEAM)}, /etc/ssl/private.key and short"
    assert redactor().text(given_text) == expected
    assert redactor().data(given_text.encode()) == expected.encode()
    assert count_marks(expected) == 2


@pytest.mark.parametrize(("name", "secret"), SHAPES.items())
def test_well_known_shapes_are_masked(name: str, secret: str) -> None:
    """A key of each known form is masked wherever it stands; the lines after it keep their numbers."""
    text = f'x = "{secret}"\nnext line'
    breaks = "\n" * secret.count("\n")
    assert redactor().text(text) == f'x = "{mark(name, secret)}{breaks}"\nnext line'
    assert redactor().data(text.encode()) == redactor().text(text).encode()


@pytest.mark.parametrize(
    "text", ["class sk-fading-circle-of-dots-large {}", "task-runner", "through", "an eyJ", "AKIAsomething", "hf_x"]
)
def test_what_only_looks_a_little_like_a_key_stays(text: str) -> None:
    """Ordinary words that begin like keys are left as they are."""
    assert redactor().text(text) == text


def test_a_jobs_patterns_are_masked() -> None:
    """Patterns are Python's regular expressions over text, also in bytes."""
    text = "Ticket ÄB-1234 and ÄB-99"
    expected = f"Ticket {mark('pattern-1', 'ÄB-1234')} and {mark('pattern-1', 'ÄB-99')}"
    assert redactor(r"\w\w-\d+").text(text) == expected
    assert redactor(r"\w\w-\d+").data(text.encode() + b"\xff") == expected.encode() + b"\xff"


def test_values_in_json_are_masked_at_any_depth() -> None:
    """Lists, mappings, keys of mappings and bytes; other values stay what they are."""
    value = {"a": [1, None, {"b": f"x{TEAM}y"}], TEAM: True, "raw": TEAM.encode(), "pair": (TEAM, 2.5)}
    hidden = mark("TEAM_PIN", TEAM)
    assert redactor().value(value) == {
        "a": [1, None, {"b": f"x{hidden}y"}],
        hidden: True,
        "raw": hidden.encode(),
        "pair": (hidden, 2.5),
    }


def test_a_secret_in_escaped_json_is_masked() -> None:
    """A value with quotes is found in a JSON text, where it stands with escapes."""
    environment = {"DB_PASSWORD": 'pass"word\\1234'}
    text = json.dumps({"password": environment["DB_PASSWORD"]})
    masked = Redactor(Redaction(), environment, lambda: KEY).text(text)
    assert count_marks(masked) == 1
    assert "pass" not in json.loads(masked)["password"]


@given(st.lists(st.sampled_from([PROVIDER, TEAM, *SHAPES.values(), "plain ", "\n", "[masked:X:", "é"]), max_size=8))
def test_masking_again_changes_nothing(pieces: list[str]) -> None:
    """Marks are never masked, whatever the pattern; text and bytes give the same."""
    masker = redactor(r"[a-z0-9]{3,}")
    once = masker.text("".join(pieces))
    assert masker.text(once) == once
    assert masker.data("".join(pieces).encode()) == once.encode()
    for secret in (PROVIDER, TEAM, *SHAPES.values()):
        assert secret not in MARK.sub("", once)


def test_the_key_is_made_once_and_kept(tmp_path: Path) -> None:
    """Without the variable a random key is made in the state directory, which only the user can read."""
    environment = {"HOLDFAST_HOME": str(tmp_path)}
    first = redaction_key(environment)
    assert len(first) == 64
    assert redaction_key(environment) == first
    assert (tmp_path / "redaction.key").stat().st_mode & 0o777 == 0o600
    assert redaction_key({**environment, "HOLDFAST_REDACTION_KEY": "x" * 20}) == b"x" * 20
    with pytest.raises(InputError, match="at least 16"):
        redaction_key({"HOLDFAST_REDACTION_KEY": "short"})
