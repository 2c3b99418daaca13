"""``holdfast run`` checks models, prices and the archive before anything is started, and tells all
that is wrong.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import holdfast
from runtime.archive.stores.directory import DirectoryStore
from runtime.base.errors import InputError
from runtime.base.quoted import shown
from runtime.base.roles import Role
from runtime.base.spec.models import Budget, ModelSettings
from runtime.client.preflight import check, check_model
from runtime.jobsfile.load import load
from tests.cli.command_line import ROOT, CommandLine, Done, script

ENDPOINT = "name: hosted_vllm/my-model, api_base: 'http://127.0.0.1:9/v1'"
PRICE = (
    "'price: {input: 1.25, output: 10}' in the model's mapping (dollars per million tokens), or"
    " 'price: free'"
)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No provider's key is in the environment."""
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_TOKEN")):
            monkeypatch.delenv(name)


@pytest.mark.parametrize("dry", [True, False], ids=["dry-run", "run"])
def test_every_problem_is_told_before_anything_starts(own_cli: CommandLine, dry: bool) -> None:
    """Provider, mode, key, package, tools, price and store: a line each, exit code 2, and no
    server, archive or job.
    """
    own_cli.write("plain", "a file where the archive should be")
    file = own_cli.jobs(
        "id: key, model: openai/gpt-5",
        "id: provider, model: opanai/gpt-5",
        "id: mode, model: openai/text-embedding-3-small",
        "id: voice, model: openai/gpt-realtime",
        "id: package, model: vertex_ai/gemini-2.5-pro",
        "id: tools, model: sagemaker/some-endpoint",
        f"id: price, model: {{{ENDPOINT}}}, budget: {{usd: 2}}",
        f"id: sum, model: {{{ENDPOINT}, price: 0}}, budget: {{usd: 2}}, condenser: {{kind: summary,"
        " model: groq/x}",
        batch="preflight",
        head="store: ./plain",
    )
    done = own_cli("run", file, *(["--dry-run"] if dry else []))
    assert done.code == 2
    assert done.out == ""
    assert done.err.replace(f"{file}", "jobs.yaml").splitlines() == [
        (
            "error: jobs.yaml:2: store: cannot create the archive directory"
            f" {file.parent / 'plain'}: File exists"
        ),
        (
            "jobs.yaml:5: jobs[0].model: no key for openai: set OPENAI_API_KEY in the environment"
            " of this command"
        ),
        (
            "jobs.yaml:6: jobs[1].model: litellm knows no provider of the model 'opanai/gpt-5': did"
            " you mean openai/gpt-5? An endpoint of your own that speaks OpenAI's protocol is"
            " {name: openai/NAME, api_base: https://...}"
        ),
        (
            "jobs.yaml:7: jobs[2].model: openai/text-embedding-3-small is a model for embedding,"
            " which no job can be run with; name one for chat"
        ),
        (
            "jobs.yaml:8: jobs[3].model: openai/gpt-realtime is a model for realtime, which no job"
            " can be run with; name one for chat"
        ),
        (
            "jobs.yaml:9: jobs[4].model: vertex_ai/gemini-2.5-pro needs the package google-auth,"
            " which is not installed"
        ),
        (
            "jobs.yaml:10: jobs[5].model: sagemaker/some-endpoint takes no tools: give the job"
            " 'form: script'"
        ),
        (
            "jobs.yaml:11: jobs[6].model: no price is known of hosted_vllm/my-model, so the"
            f" budget's usd would not hold: write {PRICE}"
        ),
        (
            "jobs.yaml:12: jobs[7].condenser.model: no key for groq: set GROQ_API_KEY in the"
            " environment of this command"
        ),
    ]
    assert not own_cli.home.exists()


def test_a_model_of_the_defaults_is_named_there(own_cli: CommandLine) -> None:
    """What all jobs inherit is wrong once, on its own line."""
    (own_cli.path / "ws").mkdir()
    file = own_cli.write(
        "jobs.yaml",
        "defaults:\n  workspace: ws\n  model: openai/gpt-5\njobs:\n  - {id: a, goal: g}\n  - {id:"
        " b, goal: g}\n",
    )
    done = own_cli("run", file)
    assert (done.code, done.err) == (
        2,
        (
            f"error: {file}:3: defaults.model: no key for openai: set OPENAI_API_KEY in the"
            " environment of this command\n"
        ),
    )


@pytest.mark.parametrize(
    ("head", "defaults"),
    [
        ("budget: {usd: 200}", ""),
        ("", "budget: {usd: 2}, "),
        ("", "spawn: {max: 2, usd: 1}, "),
    ],
    ids=["all jobs", "a job", "sub-jobs"],
)
def test_no_budget_in_dollars_is_of_calls_without_a_price(
    tmp_path: Path, head: str, defaults: str
) -> None:
    """Whoever it bounds: what counts as nothing would be bounded by none."""
    file = tmp_path / "jobs.yaml"
    file.write_text(
        f"{head}\ndefaults: {{workspace: ., {defaults}model: {{{ENDPOINT}}}}}\n"
        "jobs: [{id: a, goal: g}]\n"
    )
    with pytest.raises(InputError) as told:
        check(load(file), None)
    assert "no price is known of hosted_vllm/my-model, so the budget's usd" in str(told.value)


def test_the_model_of_sub_jobs_is_checked_too(own_cli: CommandLine) -> None:
    """Where the job names it, or the defaults: each sub-job would fail by it."""
    own_cli.write("a.yaml", script("finish(1)"))
    own_cli.write("none.yaml", "no: list")
    jobs = "jobs: [{id: a, goal: g}, {id: b, goal: g, spawn: {model: scripted/none.yaml}}]\n"
    head = "defaults:\n  workspace: .\n  model: scripted/a.yaml\n  spawn: {model: openai/gpt-5}\n"
    file = own_cli.write("jobs.yaml", head + jobs)
    done = own_cli("run", file)
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines() == [
        (
            f"error: {file}:4: defaults.spawn.model: no key for openai: set OPENAI_API_KEY in the"
            " environment of this command"
        ),
        (
            f"{file}:5: jobs[1].spawn.model: scripted model {own_cli.path / 'none.yaml'}: a list of"
            " replies is expected"
        ),
    ]
    assert not own_cli.home.exists()


def test_what_a_header_names_is_missed_before_anything_starts(
    own_cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway's variable that is not set is told as a key is; its calls would fail one by one."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.delenv("GATEWAY_WORD", raising=False)
    model = "name: openai/gpt-5, extra_headers: {X-Gateway: $GATEWAY_WORD}"
    file = own_cli.jobs(f"id: a, model: {{{model}}}", batch="gateway")
    done = own_cli("run", file)
    line = "its headers name GATEWAY_WORD: set that in the environment of this command"
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(f": jobs[0].model: {line}\n")
    assert not own_cli.home.exists()
    monkeypatch.setenv("GATEWAY_WORD", "word")
    assert own_cli("run", file, "--dry-run").code == 0


@pytest.fixture
def no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing tells a bucket's server who asks."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))


BUCKET = "s3://bucket/p?endpoint_url=http://127.0.0.1:9"
NO_BUCKET = "cannot write _holdfast/archive to s3://bucket/p/: Unable to locate credentials"


@pytest.mark.slow
@pytest.mark.usefixtures("no_credentials")
@pytest.mark.parametrize("named", ["file", "option"])
def test_a_bucket_that_cannot_be_written_is_no_bad_input(own_cli: CommandLine, named: str) -> None:
    """It is told as what it is, with the exit code of an archive that cannot be reached."""
    own_cli.write("a.yaml", "- {code: finish(1)}")
    head = f"store: '{BUCKET}'" if named == "file" else ""
    file = own_cli.jobs("id: a, model: scripted/a.yaml", batch="bucket", head=head)
    done = own_cli("run", file, *([] if head else ["--store", BUCKET]))
    assert (done.code, done.out, done.err) == (1, "", f"error: {NO_BUCKET}\n")


@pytest.mark.slow
@pytest.mark.usefixtures("no_credentials")
def test_what_is_wrong_with_the_file_is_told_before_its_bucket(own_cli: CommandLine) -> None:
    """So is a store that is none, by its line; one that an option names is told without."""
    file = own_cli.jobs("id: a, model: openai/gpt-5", batch="bucket", head=f"store: '{BUCKET}'")
    done = own_cli("run", file)
    assert (done.code, done.err.count("\n"), "no key for openai" in done.err) == (2, 1, True)
    own_cli.write("plain", "a file where the archive should be")
    own_cli.write("a.yaml", "- {code: finish(1)}")
    file = own_cli.jobs("id: a, model: scripted/a.yaml", batch="bucket", head="store: ./plain")
    told = f"cannot create the archive directory {own_cli.path / 'plain'}: File exists\n"
    assert own_cli("run", file) == Done(2, "", f"error: {file}:2: store: {told}")
    file = own_cli.jobs("id: a, model: scripted/a.yaml", batch="bucket")
    done = own_cli("run", file, "--store", str(own_cli.path / "plain"))
    assert (done.code, done.err) == (1, f"error: {told}")


@pytest.mark.parametrize(
    ("model", "written"),
    [
        ("replies.yaml", "scripted/replies.yaml"),
        ("replies.json", "scripted/replies.json"),
        ("scripted", "scripted/FILE"),
    ],
)
def test_a_script_that_is_not_written_as_one_is_told(
    own_cli: CommandLine, model: str, written: str
) -> None:
    """``model: replies.yaml`` is a mistake about files, not about providers."""
    own_cli.write("replies.yaml", "- {code: finish(1)}")
    file = own_cli.jobs(f"id: a, model: {model}", batch="script")
    done = own_cli("run", file, "--dry-run")
    told = f"jobs[0].model: a model that is a file is written {written}"
    assert (done.code, done.err) == (2, f"error: {file}:4: {told}\n")


@pytest.mark.server
def test_a_price_that_nobody_knows_is_worth_a_note(cli: CommandLine) -> None:
    """Without a budget in dollars the job may run, and its calls count as free."""
    done = cli("run", cli.jobs(f"id: a, model: {{{ENDPOINT}}}", batch="noprice"), "--dry-run")
    assert done.code == 0
    assert (
        done.err.splitlines()[0]
        == f"no price is known of hosted_vllm/my-model: its calls count as $0 (write {PRICE})"
    )


@pytest.mark.server
@pytest.mark.parametrize(
    ("name", "usd", "elsewhere", "said"),
    [
        ("opanai/gpt-5", 5.0, True, "--model: litellm knows no provider of the model"),
        ("openai/", 5.0, True, "--model: 'openai/' names a provider and no model: write PROVIDER"),
        ("openai/text-embedding-3-small", 5.0, True, "is a model for embedding"),
        ("openai/gpt-5", 5.0, False, "--model: no key for openai: set OPENAI_API_KEY"),
        ("hosted_vllm/my-model", 2.0, True, "--model: no price is known of hosted_vllm/my-model"),
    ],
)
def test_the_model_of_a_replay_is_checked_too(
    name: str, usd: float, elsewhere: bool, said: str
) -> None:
    """Before the job's open run ends for it: provider, mode, key and price."""
    with pytest.raises(InputError) as error:
        check_model(ModelSettings(name=name), "tool", Budget(usd=usd), elsewhere=elsewhere)
    assert said in str(error.value)


def test_a_replay_may_have_a_model_whose_key_is_elsewhere() -> None:
    """With --detach its key is the workers'; that it has no price is worth a note."""
    there, own = ModelSettings(name="openai/gpt-5"), ModelSettings(name="hosted_vllm/my-model")
    assert check_model(there, "tool", Budget(), elsewhere=True) == []
    assert check_model(ModelSettings(name="scripted//a.py"), "tool", Budget()) == []
    assert check_model(own, "tool", Budget(), elsewhere=True) == [
        f"no price is known of hosted_vllm/my-model: its calls count as $0 (write {PRICE})"
    ]


def test_scripted_models_need_no_litellm(cli: CommandLine) -> None:
    """A dry run of scripted models does not import litellm, which takes seconds."""
    cli.write("a.yaml", script("finish(1)"))
    file = cli.jobs("id: a, model: scripted/a.yaml", batch="quick")
    probe = (
        "import sys\nfrom runtime.cli.main import main\n"
        f"code = main(['run', {str(file)!r}, '--dry-run'])\n"
        "print(code, 'litellm' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", probe],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.splitlines()[-1] == "0 False"


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.yaml", "- code: x = 1\n- code: [\n", "while parsing a flow node"),
        ("b.json", '[{"cod": "x = 1"}]', "b.json, reply 1: cod: Extra inputs are not permitted"),
        ("c.yaml", "code: x = 1", "c.yaml: a list of replies is expected"),
        ("d.py", "def respond(messages)\n    return 1\n", "d.py, line 1: SyntaxError: expected"),
        ("e.yaml", f"- {'[' * 5_000}", "e.yaml: RecursionError"),
        ("f.yaml", "[]", "f.yaml: it has no reply"),
        ("g.py", "import json\ndef answer(messages): ...\n", "g.py: it has no function respond("),
    ],
)
def test_a_script_that_says_nothing_is_a_problem_of_the_file(
    own_cli: CommandLine, name: str, text: str, told: str
) -> None:
    """Once for each job that names it, in one line; nothing is started. A file that was put right
    is read anew.
    """
    own_cli.write(name, text)
    models = (f"id: one, model: scripted/{name}", f"id: two, model: scripted/{name}")
    file = own_cli.jobs(*models, batch="scripts")
    done = own_cli("run", file)
    assert (done.code, done.out) == (2, "")
    first, second = done.err.splitlines()
    assert "jobs[0].model: scripted model " in first
    assert told in first
    assert "jobs[1].model: scripted model " in second
    with pytest.raises(InputError, match="--model: scripted model"):
        check_model(ModelSettings(name=f"scripted/{own_cli.path / name}"), "tool", Budget())
    own_cli.write(name, "respond = print" if name.endswith(".py") else "[x]")
    assert own_cli("run", file, "--dry-run").code == 0


@pytest.mark.parametrize(
    "text",
    [
        "def respond(messages): ...",
        "if True:\n    from json import dumps as respond",
        "from json import *",
        "for respond in [print]: pass",
        "def make():\n    global respond\n    respond = print\nmake()",
        "globals()['respond'] = print",
    ],
)
def test_a_script_may_come_by_its_function_in_any_way(tmp_path: Path, text: str) -> None:
    """Only one that cannot get it, however it runs, is a problem before it has run."""
    script = tmp_path / "script.py"
    script.write_text(text)
    model = ModelSettings(name=f"scripted/{script}")
    assert check_model(model, "tool", Budget()) == []


def test_whoever_is_told_of_ends_has_an_address(
    own_cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A webhook whose variable is not set would hear of none of them."""
    own_cli.write("a.yaml", script("finish(1)"))
    head = "on_finish: {webhook: '${NIGHTLY_HOOK}'}"
    file = own_cli.jobs("id: a, model: scripted/a.yaml", batch="hook", head=head)
    told = "on_finish.webhook: set NIGHTLY_HOOK to a URL in the environment of this command"
    for unset in (None, "", "hook.test/ended"):
        if unset is not None:
            monkeypatch.setenv("NIGHTLY_HOOK", unset)
        assert own_cli("run", file) == Done(2, "", f"error: {file}:2: {told}\n")
    assert check(load(file), None, frozenset({Role.MODELS})) == []
    monkeypatch.setenv("NIGHTLY_HOOK", "http://127.0.0.1:9/")
    assert own_cli("run", file, "--dry-run").code == 0


def test_a_secret_that_is_missing_is_told_where_it_is_named(
    own_cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a job that stands for several: once, and not at the defaults, which name none."""
    monkeypatch.delenv("SEARCH_KEY", raising=False)
    own_cli.write("a.yaml", script("finish(1)"))
    jobs = 'jobs:\n  - {id: a, goal: g}\n  - id: "b-{n}"\n    goal: g\n    count: 3\n'
    own = "    secrets: [SEARCH_KEY]\n"
    head = "defaults: {workspace: ., model: scripted/a.yaml}\n"
    file = own_cli.write("jobs.yaml", head + jobs + own)
    told = "the secret SEARCH_KEY is not in the worker's environment"
    assert own_cli("run", file) == Done(2, "", f"error: {file}:7: jobs[1].secrets: {told}\n")
    head = "defaults: {workspace: ., model: scripted/a.yaml, secrets: [SEARCH_KEY]}\n"
    file = own_cli.write("jobs.yaml", head + jobs)
    assert own_cli("run", file) == Done(2, "", f"error: {file}:1: defaults.secrets: {told}\n")


def test_a_variable_that_masks_nothing_is_worth_a_note(
    own_cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for all jobs: where its name is misspelt, the value goes to a provider."""
    own_cli.write("a.yaml", script("finish(1)"))
    redact = "model: scripted/a.yaml, redact: {env: [LOGIN_PIN]}"
    loaded = load(own_cli.jobs(f"id: a, {redact}", f"id: b, {redact}", batch="masked"))
    monkeypatch.delenv("LOGIN_PIN", raising=False)
    told = "redact: LOGIN_PIN is not set in the environment of this command: it masks nothing"
    assert check(loaded, None) == [told]
    assert check(loaded, None, frozenset({Role.MODELS})) == []
    monkeypatch.setenv("LOGIN_PIN", "1234")
    assert check(loaded, None) == []


def test_a_deadline_that_has_passed_is_worth_a_note(own_cli: CommandLine) -> None:
    """Once for all jobs that have it. It is no mistake: the same file may be given again to hear
    how its jobs ended.
    """
    own_cli.write("a.yaml", script("finish(1)"))
    past, coming = "2020-01-01T09:00:00+01:00", "2120-01-01T09:00:00+01:00"
    lines = [
        f"id: j{n}, model: scripted/a.yaml, budget: {{deadline: {deadline}}}"
        for n, deadline in enumerate((past, past, coming, "1s"))
    ]
    told = (
        "the deadline 2020-01-01T08:00:00+00:00 has passed: jobs that have it, and have not ended,"
        " begin no other turn"
    )
    assert check(load(own_cli.jobs(*lines, batch="late")), None) == [told]


def test_no_archive_begins_in_the_midst_of_something_else(
    own_cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folders would be jobs. What an archive has lost of its own is made again."""
    own_cli.write("a.yaml", script("finish(1)"))
    own_cli.write("project/src/package/x.py", "")
    project = own_cli.path / "project"
    told = (
        "holds something else than an archive, and src/package would be one of its jobs: name an"
        " empty place\n"
    )
    plain = own_cli.jobs("id: a, model: scripted/a.yaml", batch="midst")
    done = own_cli("run", plain, "--store", project)
    assert done == Done(2, "", f"error: {project} {told}")
    with monkeypatch.context() as patch:
        patch.setenv("HOLDFAST_STORE", str(project))
        assert own_cli("run", plain) == done
        with pytest.raises(InputError, match="holds something else"):
            holdfast.run(plain)
    file = own_cli.jobs("id: a, model: scripted/a.yaml", batch="midst", head="store: ./project")
    assert own_cli("run", file) == Done(2, "", f"error: {file}:2: store: {project} {told}")
    create = own_cli("archive", "create", project)
    assert (create.code, create.err) == (2, done.err)
    assert [one.name for one in project.iterdir()] == ["src"]
    DirectoryStore(project).put_if_absent("_holdfast/id", b"left")
    assert own_cli("run", file, "--dry-run").code == 0


def test_a_server_that_cannot_be_started_is_told(
    own_cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its program, its directory and its variables, each on its line, for all jobs that have it of
    the defaults once; nothing is started. Where others do the work of tools, they have them.
    """
    monkeypatch.setenv("PRESENT", "x")
    own_cli.write("a.yaml", script("finish(1)"))
    own_cli.write("plain", "no program")
    own_cli.write("bin/server", "#!/bin/sh\n").chmod(0o700)
    servers = "\n".join(
        [
            "    none: {command: [/no/such/program]}",
            "    nowhere: {command: [no-such-program]}",
            "    plain: {command: [./plain]}",
            "    below: {command: [server], directory: bin}",
            "    lost: {command: [cat], directory: lost}",
            "    unset: {command: [cat], env: [PRESENT, ABSENT]}",
            "    token: {url: 'http://127.0.0.1:9/', token: ABSENT}",
            "    good: {command: [./server], directory: bin, env: [PRESENT]}",
        ]
    )
    head = "defaults:\n  workspace: .\n  model: scripted/a.yaml\n  mcp:\n"
    jobs = "\njobs:\n  - {id: a, goal: g}\n  - {id: b, goal: g, mcp: {own: {command: [nil]}}}\n"
    file = own_cli.write("jobs.yaml", head + servers + jobs)
    done = own_cli("run", file)
    lost = shown(str(own_cli.path / "lost"))
    absent = "set ABSENT in the environment of this command"
    assert (done.code, done.out) == (2, "")
    assert done.err.replace(f"{file}", "jobs.yaml").splitlines() == [
        (
            "error: jobs.yaml:5: defaults.mcp.none.command[0]: expected a program, got"
            " '/no/such/program', which is none"
        ),
        (
            "jobs.yaml:6: defaults.mcp.nowhere.command[0]: expected a program, got"
            " 'no-such-program', which is in no directory of PATH"
        ),
        (
            "jobs.yaml:7: defaults.mcp.plain.command[0]: expected a program, got './plain', which"
            " may not be run"
        ),
        (
            "jobs.yaml:8: defaults.mcp.below.command[0]: expected a program, got 'server', which is"
            " in no directory of PATH"
        ),
        f"jobs.yaml:9: defaults.mcp.lost.directory: no such directory: {lost}",
        f"jobs.yaml:10: defaults.mcp.unset.env[1]: {absent}",
        f"jobs.yaml:11: defaults.mcp.token.token: {absent}",
        (
            "jobs.yaml:15: jobs[1].mcp.own.command[0]: expected a program, got 'nil', which is in"
            " no directory of PATH"
        ),
    ]
    assert not own_cli.home.exists()
    assert own_cli("run", file, "--dry-run") == done
    assert check(load(file), None, frozenset({Role.MODELS})) == []


def test_a_workspace_must_be_readable(own_cli: CommandLine) -> None:
    """A directory that may not be listed is a problem of the file, not of the first turn."""
    if os.getuid() != 0:
        own_cli.path.joinpath("ws").mkdir(mode=0o000)
        done = own_cli("run", own_cli.jobs("id: a, model: openai/gpt-5", batch="closed"))
        assert "got './ws', which may not be read (Permission denied)" in done.err
        return
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        code = (
            "import json, os\n"
            "from runtime.jobsfile.resolve.disk import workspace_fault\n"
            "os.setgid(65534); os.setuid(65534)\n"
            f"print(json.dumps([workspace_fault({folder!r}), workspace_fault('/tmp')]))"
        )
        run = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
        )
    assert json.loads(run.stdout) == ["which may not be read (Permission denied)", None]
