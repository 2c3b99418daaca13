"""Which variables of the worker's environment hold secrets is the same wherever it is asked."""

from __future__ import annotations

import pytest

from activities._secrets import Secrets
from runtime.base.redaction.redactor import redactor_of
from runtime.base.redaction.rules import Redaction


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("REGISTRY_AUTH", "dXNlcjpwYXNzd29yZA", True),
        ("GATEWAY_AUTHORIZATION", "word-of-a-gateway", True),
        ("AWS_SECRET_ACCESS_KEY", "/wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLE", True),
        ("SIGNING_KEY", __file__, False),
        ("DESKTOP_SESSION", "ubuntu-wayland", False),
        ("RELEASE_SIGNATURE", "Holdfast-project", False),
    ],
)
def test_what_a_job_reads_and_what_a_model_says_is_masked_alike(
    name: str, value: str, secret: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable's value is masked in a tool's result and in a reply, or in neither: a desktop's
    session is called by words that a statement may well have, and the path of a key's file is no
    key, unlike one that begins as a path does.
    """
    monkeypatch.setenv(name, value)
    text = f"x = {value!r}"
    assert (value not in redactor_of(Redaction()).text(text)) == secret
    assert (value not in Secrets.of_call({}).mask(text)) == secret


@pytest.mark.parametrize("name", ["session", "signature", "sig", "auth"])
def test_a_parameter_of_a_url_is_a_secret_by_more_names(name: str) -> None:
    """There they stand for whoever asks, and a variable's do not."""
    secrets = Secrets.of_call({"api_base": f"https://host/v1?{name}=abcdefghijklmnop"})
    assert "abcdefghijklmnop" not in secrets.mask("refused abcdefghijklmnop")
