"""Which of the worker's variables tools, and commands of ``on_finish``, are given."""

from __future__ import annotations

import pytest

from runtime.tools.environment import tool_environment

SECRETS = [
    "PGPASSWORD",
    "MYSQLPASSWD",
    "DBPASSWORD",
    "PASSWORDS",
    "DB_PASSWORDS",
    "DB2_PASSWORD_FILE",
    "dbPassword",
    "SSHPASS",
    "USERPASS",
    "DATABASE_PASS",
    "PASS",
    "SMTP_PASS2",
    "MYSQL_PWD",
    "DBPWD",
    "GPG_PASSPHRASE",
    "CLIENTSECRET",
    "JWTSECRET",
    "SECRETS",
    "APP_SECRETKEY",
    "SECRETKEYBASE",
    "COOKIES",
    "SESSIONCOOKIE",
    "CREDS",
    "DB_CREDS",
    "CREDENTIALS",
    "DBCREDENTIALS",
    "REFRESHTOKEN",
    "K8STOKENS",
    "GITHUB_TOKEN_FILE",
    "APIKEYS",
    "DEPLOY_KEY",
    "npm_config__authToken",
    "REDISCLI_AUTH",
    "AWS_PROFILE",
    "AZURE_TENANT_ID",
]

OTHERS = [
    "PATH",
    "HOME",
    "PWD",
    "OLDPWD",
    "KEYBOARD",
    "KEYSTONE_URL",
    "TOKENIZERS_PARALLELISM",
    "PASSENGER_ENV",
    "COMPASS",
    "COMPASS_URL",
    "HTTP_PROXY_BYPASS",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "UNDERPASS",
    "SECRETARY",
    "COOKIECUTTER_CONFIG",
    "AUTHOR",
    "GIT_AUTHOR_NAME",
    "SACRED",
    "PASSTHROUGH",
]


@pytest.mark.parametrize("name", SECRETS)
def test_a_name_that_speaks_of_a_secret_is_kept_back(name: str) -> None:
    """Also where nothing parts the word from others, and where there are several."""
    assert tool_environment({name: "hunter2-hunter2"}) == {}


@pytest.mark.parametrize("name", OTHERS)
def test_a_name_that_only_looks_like_one_is_passed_on(name: str) -> None:
    """Words that begin or end like one."""
    assert tool_environment({name: "of no interest"}) == {name: "of no interest"}


@pytest.mark.parametrize(
    "value",
    [
        "postgres://me:hidden@example.invalid/db",
        "postgresql://db/app?user=me&password=hunter2",
        "jdbc:sqlserver://db;user=sa;password=hunter2",
        "jdbc:mysql://me:hidden@db/app",
        "amqp://one,amqp://me:hidden@two",
        "http://me:hidden@[bad",
        "https://example.invalid/hook?api_key=hunter2#there",
    ],
)
def test_a_url_with_a_password_is_kept_back(value: str) -> None:
    """Before its host or as a parameter, whatever the variable is called."""
    assert tool_environment({"PLACE": value}) == {}


@pytest.mark.parametrize(
    "value",
    [
        "https://abc@example.invalid/1",
        "http://localhost:8080/a:b@c",
        "https://example.invalid/?tokenizer=cl100k&password=",
        "user=me&password=is no URL",
    ],
)
def test_a_url_without_one_is_passed_on(value: str) -> None:
    """A user, a port and other parameters are no secrets."""
    assert tool_environment({"PLACE": value}) == {"PLACE": value}
