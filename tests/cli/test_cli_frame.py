"""The frame around the commands: what is imported, what errors look like, how the process ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from runtime.base.errors import DefinitionChanged, HoldfastError, NotFound, ObjectCorrupt
from runtime.cli import main as frame
from runtime.cli.main import main

ROOT = Path(__file__).parents[2]
COMMANDS = [
    *(
        "run",
        "worker",
        "up",
        "down",
        "status",
        "ls",
        "watch",
        "results",
        "errors",
        "log",
        "show",
        "diff",
        "blame",
        "why",
        "nodes",
        "cost",
    ),
    *("replay", "fork", "divergences", "compare"),
    *("export", "verify", "codec", "send", "condense"),
    *("pause", "resume", "cancel", "retry", "limits", "schema"),
    *("approvals", "approve", "reject", "init", "doctor", "keys", "workspace", "archive"),
]


def holdfast(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    code = (
        "import sys; from runtime.cli.main import entry; sys.argv = ['holdfast', *sys.argv[1:]];"
        " entry()"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> "list[BaseException]":
    """A command ``fail`` that raises the one exception of the list."""
    errors: list[BaseException] = []
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)

    @app.callback()
    def root() -> None: ...

    @app.command()
    def fail() -> None:
        raise errors[0]

    monkeypatch.setattr(frame, "app", app)
    monkeypatch.delenv("HOLDFAST_DEBUG", raising=False)
    return errors


def test_the_options_of_the_connection_come_together(capsys: pytest.CaptureFixture[str]) -> None:
    """A command that reaches a server takes all three options that name it; the others take none of
    them.
    """
    taking = {}
    for name in COMMANDS:
        assert main([name, "--help"]) == 0
        told = capsys.readouterr().out
        taking[name] = [
            option for option in ("--address", "--namespace", "--profile") if f"  {option} " in told
        ]
    reaching = {
        "run",
        "worker",
        "ls",
        "log",
        "watch",
        "results",
        "replay",
        "fork",
        "verify",
        "send",
        "condense",
        "pause",
        "resume",
        "cancel",
        "retry",
        "limits",
    }
    reaching |= {"approvals", "approve", "reject", "init", "doctor"}
    assert {name for name, options in taking.items() if options} == reaching
    assert {tuple(options) for options in taking.values()} == {
        (),
        ("--address", "--namespace", "--profile"),
    }


def test_help_imports_nothing_heavy() -> None:
    """Help, of the whole and of every command, imports neither litellm nor temporalio nor
    tiktoken.
    """
    code = f"""
import sys
from runtime.cli.main import main
for arguments in [["--help"], *([name, "--help"] for name in {COMMANDS})]:
    assert main(arguments) == 0, arguments
heavy = {{"litellm", "temporalio", "tiktoken", "boto3", "httpx", "ruamel"}} & set(sys.modules)
sys.exit(", ".join(heavy) or 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Help names the commands in the order of their use, each summary whole."""
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out.split("Commands:\n")[1]
    assert [line.split()[0] for line in listed.splitlines()] == COMMANDS
    assert "..." not in listed


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """The version is the distribution's, after the program's name."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"holdfast {frame.version()}\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (HoldfastError("it failed"), 1),
        (DefinitionChanged("it changed"), 2),
        (NotFound("no job 'x'"), 2),
        (ObjectCorrupt("it is corrupt"), 4),
    ],
)
def test_expected_error_is_one_line(
    failing: list[BaseException],
    capsys: pytest.CaptureFixture[str],
    error: HoldfastError,
    code: int,
) -> None:
    """An error of Holdfast's own tree is its message on stderr, and its exit code."""
    failing.append(error)
    assert main(["fail"]) == code
    advice = ": 'holdfast verify' tells what is damaged" if code == 4 else ""
    assert capsys.readouterr() == ("", f"error: {error}{advice}\n")


def test_unexpected_error_is_one_line(
    failing: list[BaseException],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Any other exception is one line that tells how to see the traceback; then it is shown."""
    failing.append(ValueError("two\nlines \x1b[31m"))
    line = "error: unexpected ValueError: two lines (HOLDFAST_DEBUG=1 shows the traceback)\n"
    assert main(["fail"]) == 1
    assert capsys.readouterr().err == line
    monkeypatch.setenv("HOLDFAST_DEBUG", "0")
    assert main(["fail"]) == 1
    assert capsys.readouterr().err == line
    monkeypatch.setenv("HOLDFAST_DEBUG", "1")
    assert main(["fail"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("Traceback (most recent call last):")
    assert err.endswith(line)


def test_what_is_no_text_is_told_as_that(
    failing: list[BaseException],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where a path or a name that becomes a part of a job is no UTF-8."""
    with pytest.raises(UnicodeEncodeError) as error:
        "/a\udcff".encode()
    failing.append(error.value)
    monkeypatch.setenv("PWD", "/a\udcff")
    assert main(["fail"]) == 2
    assert capsys.readouterr().err == "error: expected Unicode text, got '/a\\udcff'\n"
    monkeypatch.setenv("PWD", "/a")
    assert main(["fail"]) == 1


def test_interrupt(failing: list[BaseException]) -> None:
    """Ctrl-C ends a command with exit code 130."""
    failing.append(KeyboardInterrupt())
    assert main(["fail"]) == 130


def test_interrupt_within_an_error(
    failing: list[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    """What Python makes of one that comes while a class is made ends the command likewise."""
    error = RuntimeError("Error calling __set_name__")
    error.__cause__ = KeyboardInterrupt()
    failing.append(error)
    assert main(["fail"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "arguments", [["nope"], ["show"], ["show", "--nope", "x"], ["show", "x", "y"], []]
)
def test_usage_errors(arguments: list[str]) -> None:
    """A wrong command, option or number of arguments exits with 2."""
    assert main(arguments) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["show", "j@1", "--part", "bytes"],
            "Invalid value for '--part': 'bytes' is not one of 'prompt', 'request', 'response'",
        ),
        (
            ["show", "j@1", "--part", "wire", "--json"],
            "--part wire prints exact bytes: it does not go with --json",
        ),
        (["show", "j@one"], "'j@one' is no JOB@N"),
        (
            ["run", "jobs.yaml", "--print-config", "--json"],
            "--print-config prints a jobs file: it does not go with --json",
        ),
    ],
)
def test_contradicting_options(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    """Options that contradict each other, or name nothing, are input errors."""
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


NO_HOME = "no user has the home directory '~nosuchuser'"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ls", "--store", "http://["], "'http://[' is no archive store"),
        (["ls", "--store", "file:///a%00b"], "'file:///a%00b' is no archive store"),
        (["ls", "--store", "~nosuchuser/x"], NO_HOME),
        (["ls", "--store", "l" * 300], "there is no archive at lll"),
        (["verify", "--against", "~nosuchuser/x"], NO_HOME),
    ],
)
def test_places_that_lead_nowhere(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: list[str],
    message: str,
) -> None:
    """A path or a URL that is none is an input error."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_a_state_directory_of_nobody(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``HOLDFAST_HOME`` may begin with a user's home directory, if there is the user."""
    monkeypatch.setenv("HOLDFAST_HOME", "~nosuchuser/x")
    assert main(["ls"]) == 2
    assert capsys.readouterr().err == f"error: {NO_HOME}; set HOLDFAST_HOME\n"


@pytest.mark.slow
def test_process_ends_with_the_code_and_all_output() -> None:
    """The console script ends with the command's exit code, and everything it wrote has arrived."""
    good = holdfast("schema")
    assert good.returncode == 0
    assert good.stdout.endswith("}\n")
    bad = holdfast("status", HOLDFAST_HOME="/dev/null/x")
    assert (bad.returncode, bad.stdout, bad.stderr.count("\n")) == (2, "", 1)
    assert bad.stderr.startswith("error: the state directory /dev/null/x cannot be made")


UNREAD = [("--help", 141), ("run --help", 141), ("--version", 141), ("ls", 141), ("log no", 2)]


@pytest.mark.parametrize(
    ("words", "code"),
    [("schema", 141), *(pytest.param(*case, marks=pytest.mark.slow) for case in UNREAD)],
)
def test_reader_that_goes_away(words: str, code: int, tmp_path: Path) -> None:
    """A pipe whose reader has gone ends the command without a traceback, and not with the code of
    a failure; an error that nobody reads ends it with its own.
    """
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [sys.executable, "-m", "holdfast", *words.split()],
        cwd=ROOT,
        env={**os.environ, "HOLDFAST_HOME": str(tmp_path)},
        stdout=write,
        stderr=write if code == 2 else subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (process.returncode, process.stderr or b"") == (code, b"")


@pytest.mark.slow
@pytest.mark.parametrize("words", ["schema", "--help", "--version"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full disk is Linux's /dev/full")
def test_output_on_a_full_disk_is_one_line_of_error(words: str) -> None:
    """``holdfast schema > FILE`` where no room is left: nothing unexpected, and no success."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", words],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    told = "error: what is printed cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr.decode()) == (1, told)


def test_completion_completes_commands() -> None:
    """Shell completion offers the commands, from the same quick imports."""
    done = holdfast(_HOLDFAST_COMPLETE="complete_bash", COMP_WORDS="holdfast s", COMP_CWORD="1")
    assert (done.returncode, sorted(done.stdout.split())) == (
        0,
        ["schema", "send", "show", "status"],
    )


@pytest.mark.slow
@pytest.mark.parametrize("closed", [1, 2])
def test_a_stream_that_was_closed(closed: int, tmp_path: Path) -> None:
    """A command that begins without stdout or stderr does its work, and no file gets what it
    prints.
    """
    code = "from runtime.cli.main import entry; import sys; sys.argv = ['holdfast', 'ls']; entry()"
    process = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {closed}>&-', sys.executable, code],
        cwd=ROOT,
        env={**os.environ, "HOLDFAST_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = "no jobs yet: start some with 'holdfast run JOBS_FILE'\n"
    assert (process.returncode, process.stdout, process.stderr) == (
        0,
        said if closed == 2 else "",
        "",
    )
    assert not [
        path for path in tmp_path.rglob("*") if path.is_file() and "no jobs" in path.read_text()
    ]


@pytest.mark.slow
def test_completion_knows_jobs_and_batches(tmp_path: Path) -> None:
    """Names come from the archive, from imports as quick as those of the commands; where there is
    none, nothing is said.
    """
    for job in ("nightly/licences", "nightly/links", "weekly/links", "weekly/list"):
        (tmp_path / "archive" / job).mkdir(parents=True)
    (tmp_path / "archive" / "_holdfast" / "licences").mkdir(parents=True)

    def offered(*words: str, home: Path = tmp_path) -> list[str]:
        typed = " ".join(["holdfast", *words])
        place = str(len(words))
        done = holdfast(
            _HOLDFAST_COMPLETE="complete_bash",
            COMP_WORDS=typed,
            COMP_CWORD=place,
            HOLDFAST_HOME=str(home),
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    assert offered("log", "nightly/li") == ["nightly/licences", "nightly/links"]
    assert offered("show", "li") == ["licences", "list"]
    assert offered("fork", "w") == ["weekly/links", "weekly/list"]
    assert offered("ls", "we") == ["weekly"]
    assert offered("log", "x", home=Path("/dev/null/x")) == []
    code = (
        "import sys; from runtime.cli.completion import job_names; job_names('x');sys.exit(',"
        " '.join({'litellm', 'temporalio', 'pydantic', 'boto3', 'httpx'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
