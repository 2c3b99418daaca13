"""The checks of settings see what is wrong: else whatever passes them means nothing."""

import pytest

from tests.infra.kustomize import merged
from tests.infra.settings import UsageError, is_known, read_command


@pytest.mark.parametrize(
    "name",
    [
        *("HOLDFAST_KEY", "HOLDFAST_HOME", "HOLDFAST_STORE", "HOLDFAST_METRICS", "HOLDFAST_LOG"),
        *("TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_API_KEY", "TEMPORAL_TLS"),
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"),
    ],
)
def test_variables_that_are_read(name: str) -> None:
    """What the program, the SDK or the S3 library reads is known."""
    assert is_known(name)


@pytest.mark.parametrize(
    "name", ["HOLDFAST_KEYS", "HOLDFAST", "TEMPORAL_ADRESS", "TEMPORAL_TOKEN", "AWS_KEY", "STORE"]
)
def test_variables_that_nobody_reads(name: str) -> None:
    """A misspelt variable is not."""
    assert not is_known(name)


def test_command_lines_are_taken_apart() -> None:
    """A command and options that there are pass, others raise."""
    assert read_command(["worker", "--metrics", "0.0.0.0:9464"]) == "worker"
    for wrong in (["work"], ["worker", "--metric", "x"], ["init", "--retain", "30d"]):
        with pytest.raises(UsageError):
            read_command(wrong)


def test_merging() -> None:
    """Containers and variables are merged by name, other lists replaced, None removes."""
    old = {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}], "args": ["p", "q"]}]}
    new = {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}], "args": ["r"]}]}
    env = [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]
    assert merged(old, new) == {"containers": [{"name": "a", "env": env, "args": ["r"]}]}
    assert merged({"a": 1, "b": 2}, {"b": None}) == {"a": 1}
