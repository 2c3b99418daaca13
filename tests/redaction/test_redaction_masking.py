"""Secrets are masked by value, by shape and by a job's patterns, alike in text and in bytes."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.base.errors import InputError
from runtime.base.redaction import computed
from runtime.base.redaction.computed import without_keys
from runtime.base.redaction.key import redaction_key
from runtime.base.redaction.marks import MARK, count_marks
from runtime.base.redaction.redactor import Redactor
from runtime.base.redaction.rules import Redaction
from runtime.base.redaction.shapes import Shape, mask_shapes
from tests.tiers.tiers import examples
from tests.work import work

KEY = b"a key of the installation"
TEAM = "s3cr3t"
PROVIDER = "sk-test-0123456789abcdefghij"
ENVIRONMENT = {
    "OPENAI_API_KEY": PROVIDER,
    "TEAM_PIN": TEAM,
    "KEY_FILE_KEY": __file__,
    "A_TOKEN": "short",
}

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


BESIDE = {
    "aws-secret-key": ("AWS_SECRET_ACCESS_KEY={}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    "slack-webhook": (
        "https://hooks.slack.com/services/{} x",
        "T00000000/B00000000/abcdefghijklmnopqrstuvwx",
    ),
    "discord-webhook": (
        "https://discord.com/api/webhooks/{}",
        "123456789/abcdefghij-klmnopqrst_uvwx",
    ),
    "url-password": ("postgres://app:{}@db.internal/x", "hunter2"),
    "url-token": ("https://example.org/v1?a=b&access_token={}#x", "0123456789abcdef"),
    "authorization": ('{{"Authorization": "Bearer {}"}}', "abcdef0123456789"),
    "x-api-key": ("x-api-key: {}", "abcdef0123456789"),
    "cookie": ("Cookie: {}", "session=abcdef0123456789"),
}


def redactor(*patterns: str, env: tuple[str, ...] = ("TEAM_PIN",)) -> Redactor:
    return Redactor(Redaction(env=env, patterns=patterns), ENVIRONMENT, lambda: KEY)


def mark(name: str, value: str) -> str:
    code = hmac.new(KEY, value.encode(), hashlib.sha256).hexdigest()[:16]
    return f"[masked:{name}:{code}]"


def test_values_of_the_environment_are_masked_by_their_names() -> None:
    """A provider's key and a variable that the job names; not the path of a key's file, nor what is
    too short.
    """
    given_text = f"key={PROVIDER} pin {TEAM}, {ENVIRONMENT['KEY_FILE_KEY']} and short"
    expected = (
        f"key={mark('OPENAI_API_KEY', PROVIDER)} pin {mark('TEAM_PIN', TEAM)}, {__file__} and short"
    )
    assert redactor().text(given_text) == expected
    assert redactor().data(given_text.encode()) == expected.encode()
    assert count_marks(expected) == 2


@pytest.mark.parametrize("end", ["\n", "\r\n", " "])
def test_a_value_that_ends_as_a_line_does_is_masked_without_its_end(end: str) -> None:
    """As that of a variable that was made of a file. What is nothing but white space is no
    secret.
    """
    environment = {"OPENAI_API_KEY": PROVIDER + end, "TEAM_PIN": TEAM + end, "MY_TOKEN": end * 20}
    made = Redactor(Redaction(env=("TEAM_PIN", "MY_TOKEN")), environment, lambda: KEY)
    told = f"{mark('OPENAI_API_KEY', PROVIDER)}, {mark('TEAM_PIN', TEAM)}{end}"
    assert made.text(f"{PROVIDER}, {TEAM}{end}") == told


@pytest.mark.parametrize(("name", "secret"), SHAPES.items())
def test_well_known_shapes_are_masked(name: str, secret: str) -> None:
    """A key of each known form is masked wherever it stands; the lines after it keep their
    numbers.
    """
    text = f'x = "{secret}"\nnext line'
    breaks = "\n" * secret.count("\n")
    assert redactor().text(text) == f'x = "{mark(name, secret)}{breaks}"\nnext line'
    assert redactor().data(text.encode()) == redactor().text(text).encode()


@pytest.mark.parametrize(("name", "around", "secret"), [(n, *pair) for n, pair in BESIDE.items()])
def test_what_stands_beside_a_label_is_masked_and_the_label_stays(
    name: str, around: str, secret: str
) -> None:
    """Passwords and tokens in URLs, webhooks, headers, and an AWS key by its variable's name."""
    assert redactor().text(around.format(secret)) == around.format(mark(name, secret))


def test_an_aws_secret_near_its_id_is_masked_without_a_label_and_a_digest_is_not() -> None:
    """Forty characters of mixed case near an access key's id; a SHA-1 is forty digits and small
    letters.
    """
    id, secret, sha = (
        "AKIAABCDEFGH12345678",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    )
    text = f"{id},{secret}\n{sha}\n"
    assert (
        redactor().text(text)
        == f"{mark('aws-access-key-id', id)},{mark('aws-secret-key', secret)}\n{sha}\n"
    )
    assert redactor().text(f"{secret}\n{sha}") == f"{secret}\n{sha}"


def test_a_mark_made_around_a_secret_hides_nothing() -> None:
    """What looks like a mark is no shelter for a key."""
    key = SHAPES["github-token"]
    assert key not in redactor().text(f"[masked:{key}:0123456789abcdef] [masked:{key}]")


ADVERSARIAL = (
    "sk-", "sk-a1", " sk-abcdefghijklmnopqrstuv1 ", "-----BEGIN PRIVATE KEY-----", "PRIVATE KEY----- -----BEGIN ",
    "eyJaaaaaaaaaa.", "eyJaaaaaaaaaa", "AKIAABCDEFGH12345678 ", "AKIAABCDEFGH12345678 ASIAABCDEFGH12345678 ", "AKIA", "a://", "a://b:",
    "://b:c", "?token=", "&a-token", "authorization: ", "authorization:bearer ", "cookie: a=", "secret_access_key=", "hooks.slack.com/services/",
    "ghp_", "npm_", "SG.aaaaaaaaaaaaaaaaa", "[masked:a]", "[masked:", "a1", "-", " ", "\n", "ä",
)  # fmt: skip


def _work(text: str) -> float:
    masker = redactor(r"(\w+-)+\d{3}")
    return work(lambda: masker.text(text))


@pytest.mark.parametrize("piece", ADVERSARIAL)
@pytest.mark.slow
def test_the_work_grows_as_the_text_does(piece: str) -> None:
    """Sixteen times the text is nowhere near 256 times the work; a fixed share stands for the
    clock's grain.
    """
    small, large = (piece * (size // len(piece)) for size in (30_000, 480_000))
    assert _work(large) < 64 * (_work(small) + 0.001)


@settings(max_examples=examples(40))
@given(st.lists(st.sampled_from(ADVERSARIAL), min_size=1, max_size=6).map("".join))
@pytest.mark.slow
def test_no_text_costs_much_more_than_another_of_its_length(piece: str) -> None:
    """Mixtures: a kilobyte may take ten times as long as one in which each word is a key to be
    marked.
    """
    usual = _work(" sk-abcdefghijklmnopqrstuv1 " * 2_000) / 56
    assert _work(piece * (200_000 // len(piece))) < 10 * 200 * usual


@pytest.mark.parametrize(
    "text",
    [
        "class sk-fading-circle-of-dots-large {}",
        "task-runner",
        "through",
        "an eyJ",
        "AKIAsomething",
        "hf_x",
    ],
)
def test_what_only_looks_a_little_like_a_key_stays(text: str) -> None:
    """Ordinary words that begin like keys are left as they are."""
    assert redactor().text(text) == text


def test_a_jobs_patterns_are_masked() -> None:
    """Patterns know all letters and digits, also in bytes."""
    assert redactor(r"[\w]\W[^\]\d]").text("aé!x") == "a" + mark("pattern-1", "é!x")
    text = "Ticket ÄB-1234 and ÄB-99"
    expected = f"Ticket {mark('pattern-1', 'ÄB-1234')} and {mark('pattern-1', 'ÄB-99')}"
    assert redactor(r"\w\w-\d+").text(text) == expected
    assert redactor(r"\w\w-\d+").data(text.encode() + b"\xff") == expected.encode() + b"\xff"


def test_values_in_json_are_masked_at_any_depth() -> None:
    """Lists, mappings, keys of mappings and bytes; other values stay what they are."""
    value = {
        "a": [1, None, {"b": f"x{TEAM}y"}],
        TEAM: True,
        "raw": TEAM.encode(),
        "pair": (TEAM, 2.5),
    }
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


@given(
    st.lists(
        st.sampled_from(
            [
                PROVIDER,
                TEAM,
                *SHAPES.values(),
                *(around.format(secret) for around, secret in BESIDE.values()),
                "plain ",
                "\n",
                "[masked:X:",
                "é",
            ]
        ),
        max_size=8,
    )
)
def test_masking_again_changes_nothing(pieces: list[str]) -> None:
    """Marks are never masked, whatever the pattern; text and bytes give the same."""
    masker = redactor(r"[a-z0-9]{3,}")
    once = masker.text("".join(pieces))
    assert masker.text(once) == once
    assert masker.data("".join(pieces).encode()) == once.encode()
    for secret in (PROVIDER, TEAM, *SHAPES.values()):
        assert secret not in MARK.sub("", once)


def test_the_key_is_made_once_and_kept(tmp_path: Path) -> None:
    """Without the variable a random key is made in the state directory, which only the user can
    read.
    """
    environment = {"HOLDFAST_HOME": str(tmp_path)}
    first = redaction_key(environment)
    assert len(first) == 64
    assert redaction_key(environment) == first
    assert (tmp_path / "redaction.key").stat().st_mode & 0o777 == 0o600
    assert redaction_key({**environment, "HOLDFAST_REDACTION_KEY": "x" * 20}) == b"x" * 20
    assert redaction_key({**environment, "HOLDFAST_REDACTION_KEY": ""}) == first
    with pytest.raises(InputError, match="at least 16"):
        redaction_key({"HOLDFAST_REDACTION_KEY": "short"})
    (tmp_path / "redaction.key").unlink()
    os.mkfifo(tmp_path / "redaction.key")
    with pytest.raises(InputError, match="is no regular file"):
        redaction_key(environment)


def test_a_text_without_secrets_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No shape searches it by itself, also where it has the hints of some: a value may hold 100,000
    such texts.
    """
    monkeypatch.setattr(Shape, "spans", lambda *_: pytest.fail("searched for one shape"))
    for text in (
        b"abcdefghij",
        b"key = value",
        b"https://example.org/?a=b",
        b"sk-" * 30_000,
        b"monkey-token",
    ):
        assert mask_shapes(text, lambda name, secret: b"") is text


def test_a_value_without_secrets_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its texts together, and it is not copied: a turn's records are some fifty texts."""
    monkeypatch.setattr(computed, "mask_shapes", lambda *_: pytest.fail("looked at one text"))
    monkeypatch.setattr(Redactor, "data", lambda *_: pytest.fail("looked at one text"))
    value = {"a": ["x = 1", ("y", b"z\xff", "\udc80"), {"deep": PurePosixPath("/a")}], "n": 1}
    assert without_keys(value) is value
    assert redactor().value(value) is value


@pytest.mark.parametrize(
    "secret",
    [TEAM, PROVIDER, *SHAPES.values(), *(around.format(key) for around, key in BESIDE.values())],
)
@pytest.mark.parametrize("around", ["{}", "x {}", "{} y"])
def test_a_secret_is_found_wherever_in_a_value_it_is(secret: str, around: str) -> None:
    """At the start or the end of a text, which has neighbours where all are looked at together."""
    text = around.format(secret)
    value = ["before", text, {"key": [text, "after"]}, (text.encode(), 7)]
    masked = redactor().text(text)
    assert masked != text
    assert redactor().value(value) == [
        "before",
        masked,
        {"key": [masked, "after"]},
        (masked.encode(), 7),
    ]
