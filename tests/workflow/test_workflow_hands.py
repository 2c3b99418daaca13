"""Jobs that change a workspace of their own: versions, what statements see, and other hosts."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage import Stage, activities_of

from runtime.archive.job import JobArchive
from runtime.archive.recorded import recorded_stream
from runtime.archive.stores import MemoryStore
from runtime.archive.trees import Trees
from runtime.archive.verify import damage, verify_job
from runtime.archive.workspaces import opening_of, workspace_after
from runtime.base.redaction.rules import Redaction
from runtime.base.spec.models import SETUP_SECONDS, JobSpec, Writable
from runtime.base.values import JobKey
from runtime.client.control import Control
from runtime.job.stops import JobStatus
from tests.eventually import eventually

both_ways = pytest.mark.usefixtures("tracking")
"""Of finding what a command changed."""

pytestmark = [
    pytest.mark.server,
    pytest.mark.sandbox,
    pytest.mark.asyncio(loop_scope="session"),
]

STATEMENTS = [
    "r = sh('cat a.txt; echo err >&2; exit 3')\nprint(r.exit_code, r.stdout, r.stderr)",
    "v = view('a.txt').Run()\nwrite('new/b.txt', 'one\\n')\nedit('a.txt', 'alpha', 'beta')",
    "with open('a.txt', 'a') as f:\n    n = f.write('more\\n')\nprint(n, open('a.txt').read())",
    "sh('rm new/b.txt && ln -s ../a.txt new/link && chmod 755 a.txt && mkdir empty')",
    "move('a.txt', 'c.txt')\ntry:\n    edit('c.txt', 'nothing', '')\nexcept ValueError as e:\n"
    "    print('edit says', str(e)[:30])",
    "w = view(r.stdout)\nimport os\nprint(sorted(os.listdir('.')))",
    "finish([open('c.txt').read(), os.path.exists('new/link')])",
]
"""By the second, a view is of a file that the job itself changes."""

WAYS = {"linked", "own"}
"""The folders of a worker's disk for the files of jobs that are tracked in an overlay, and not."""

AFTER = [
    {"a.txt": "alpha\n"},
    {"a.txt": "alpha\n"},
    {"a.txt": "beta\n", "new/b.txt": "one\n"},
    {"a.txt": "beta\nmore\n", "new/b.txt": "one\n"},
    {"a.txt": "beta\nmore\n", "new/link": "-> ../a.txt", "empty": "/"},
    {"c.txt": "beta\nmore\n", "new/link": "-> ../a.txt", "empty": "/"},
    {"c.txt": "beta\nmore\n", "new/link": "-> ../a.txt", "empty": "/"},
]
"""The files after each turn, from before the first."""


def files(stage: Stage, version: str) -> dict[str, str]:
    """What a version holds: texts, links, and directories that are empty."""
    trees = Trees(stage.store)
    tree = trees.tree(version)
    found = {}
    for path, entry in tree.under():
        if entry.is_file:
            found[path] = trees.content(entry).decode()
        elif entry.content:
            found[path] = f"-> {entry.content}"
        elif not tree.names(path):
            found[path] = "/"
    return found


def hands(stage: Stage, replies: list[str], **options: object) -> JobSpec:
    """A job whose workspace begins with one file."""
    (stage.workspace / "a.txt").write_text("alpha\n")
    return stage.spec(replies, **{"writable": Writable(), **options})


@pytest.mark.parametrize(
    "tracking", [pytest.param("found", marks=pytest.mark.smoke), "copied"], indirect=True
)
async def test_each_effect_makes_a_version(stage: Stage, tracking: str) -> None:
    """Statements, commands and what ``open`` writes; each turn's version is in its step, and the
    directory that the job began with is not touched.
    """
    spec = hands(stage, STATEMENTS)
    outcome = await (await stage.start(spec)).result()
    archive = stage.archive(spec)
    end = archive.end(outcome.run)
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, len(STATEMENTS))
    assert WAYS & {path.name for path in (stage.path / "host").iterdir()} == {tracking}
    assert end is not None
    assert end.result == ["beta\nmore\n", False]
    for turn, expected in enumerate(AFTER):
        assert files(stage, workspace_after(archive, outcome.run, turn)) == expected, turn
    assert {path.name: path.read_text() for path in stage.workspace.iterdir()} == {
        "a.txt": "alpha\n"
    }
    prompts = ["\n".join(s.text for s in archive.layout(step.ref)) for step in archive.steps()]
    assert "3 alpha\n err" in prompts[1]
    assert "beta" in prompts[2].partition("view of a.txt")[2]
    assert "edit says edit(): old is not in 'c.txt'" in prompts[5]
    assert "view of holdfast://self@1/effect/0/stdout" in prompts[6]
    assert damage(verify_job(archive, [end.ref])) == []
    # An effect is one activity, and nothing else is.
    done = activities_of(await stage.history())
    assert [name for name in done if "effect" in name and name.startswith("turn-2-")] == [
        "turn-2-effect-0",
        "turn-2-effect-1",
        "turn-2-effect-2",
    ]


@both_ways
async def test_an_effect_is_two_writes(stage: Stage) -> None:
    """Whatever it changes; one that changes nothing makes no version."""
    code = [
        "sh('for i in $(seq 200); do echo $i > f$i; done')",
        "sh('cat f1; touch f2')",
        "finish(1)",
    ]
    spec = hands(stage, code)
    outcome = await (await stage.start(spec)).result()
    archive = stage.archive(spec)
    versions = [workspace_after(archive, outcome.run, turn) for turn in range(3)]
    assert versions[1] == versions[2] != versions[0]
    assert len(files(stage, versions[1])) == 201
    trees = list(stage.store.list("_holdfast/trees/"))
    assert len(trees) == 2
    first = archive.effect(outcome.run, 1, 0)
    assert first is not None
    assert (first["count"], len(first["changed"])) == (200, 50)
    second = archive.effect(outcome.run, 2, 0)
    assert second is not None
    assert "changed" not in second


async def test_verify_covers_versions_and_their_bytes(stage: Stage) -> None:
    """Of what the job began with and of what it made: each object that is lost, or another, is
    found. The record says that there was no sandbox, and a turn without an effect adds no activity.
    """
    code = ["write('b.txt', 'new')", "print(1)", "finish(open('b.txt').read())"]
    spec = hands(stage, code, writable=Writable(sandbox="none"))
    outcome = await (await stage.start(spec)).result()
    archive = stage.archive(spec)
    begun = opening_of(archive, outcome.run)
    assert begun is not None
    assert begun["sandbox"] == "none"
    ran = activities_of(await stage.history())
    assert [name for name in ran if name.startswith("turn-2")] == ["turn-2"]
    whole = {key: stage.store.get(key) for key in stage.store.list("")}
    held = [key for key in whole if key.startswith(("_holdfast/trees/", "_holdfast/packs/"))]
    assert len(held) == 3
    assert damage(verify_job(archive)) == []
    for key in held:
        for data in (None, whole[key][:-1] + bytes([whole[key][-1] ^ 1])):
            store = MemoryStore()
            for name, kept in {**whole, key: data}.items():
                if kept is not None:
                    store.put_if_absent(name, kept)
            found = damage(verify_job(JobArchive(store, stage.batch, spec.id)))
            assert key in {finding.key for finding in found}


@both_ways
async def test_a_statement_that_is_taken_back_leaves_the_files_too(stage: Stage) -> None:
    """One that raises keeps what it did; one that exceeds a limit is taken back whole."""
    code = [
        "write('kept.txt', '1')\n1 / 0",
        "write('lost.txt', '1')\nwhile True: pass",
        "finish(1)",
    ]
    spec = hands(stage, code)
    outcome = await (await stage.start(spec)).result()
    archive = stage.archive(spec)
    for turn in (1, 2):
        found = files(stage, workspace_after(archive, outcome.run, turn))
        assert found == {"a.txt": "alpha\n", "kept.txt": "1"}


@both_ways
async def test_a_job_begins_empty_or_as_another_left_it(stage: Stage) -> None:
    """With no directory, and with ``holdfast://JOB@N``."""
    first = hands(stage, ["write('x', '1')", "write('x', '2')", "finish(1)"], workspace="")
    outcome = await (await stage.start(first)).result()
    assert files(stage, workspace_after(stage.archive(first), outcome.run, 0)) == {}
    second = stage.spec(
        ["finish(open('x').read())"], workspace=f"holdfast://{first.id}@1", writable=Writable()
    )
    done = await (await stage.start(second)).result()
    end = stage.archive(second).end(done.run)
    assert end is not None
    assert end.result == "1"


async def test_a_job_leaves_out_of_anothers_files_what_it_leaves_out_of_any(stage: Stage) -> None:
    """Its commands would find it there, and what they make of it would not stay."""
    code = ["write('logs/a/b', '1')\nwrite('logs/c', '1')\nwrite('x.tmp', '1')\nfinish(1)"]
    first = hands(stage, code)
    await (await stage.start(first)).result()
    second = stage.spec(
        ["r = sh('ls; echo 1 > logs')\nprint(r.stdout)\nfinish(r.stdout)"],
        workspace=f"holdfast://{first.id}@1",
        writable=Writable(exclude=("logs/", "*.tmp")),
    )
    done = await (await stage.start(second)).result()
    archive = stage.archive(second)
    end = archive.end(done.run)
    assert end is not None
    assert end.result == "a.txt\n"
    assert files(stage, workspace_after(archive, done.run, 0)) == {"a.txt": "alpha\n"}
    assert files(stage, workspace_after(archive, done.run, 1)) == {
        "a.txt": "alpha\n",
        "logs": "1\n",
    }


async def test_what_cannot_be_opened_ends_its_job_with_the_reason(stage: Stage) -> None:
    """A directory that has gone; what a job left that made no call."""
    spec = hands(stage, ["finish(1)"], workspace=str(stage.path / "nowhere"))
    outcome = await (await stage.start(spec)).result()
    assert outcome.status is JobStatus.FAILED
    assert "the workspace cannot be opened" in outcome.reason
    assert "nowhere" in outcome.reason
    after = stage.spec(["finish(1)"], workspace=f"holdfast://{spec.id}@0", writable=Writable())
    outcome = await (await stage.start(after)).result()
    assert outcome.status is JobStatus.FAILED
    assert f"{spec.id} has no version of a workspace: it made no call" in outcome.reason


@both_ways
async def test_left_out_is_neither_copied_nor_kept(stage: Stage) -> None:
    """By commands, and by statements, which are told."""
    (stage.workspace / "logs").mkdir()
    (stage.workspace / "logs/old.log").write_text("x")
    code = [
        "sh('mkdir -p logs; echo 1 > logs/new.log; echo 2 > kept')",
        "try:\n    write('logs/a', '1')\nexcept PermissionError as e:\n    print('told:', e)",
        "finish(sh('ls logs').exit_code)",
    ]
    spec = hands(stage, code, writable=Writable(exclude=("logs/",)))
    outcome = await (await stage.start(spec)).result()
    archive = stage.archive(spec)
    version = workspace_after(archive, outcome.run, 3)
    assert files(stage, version) == {"a.txt": "alpha\n", "kept": "2\n"}
    assert "told: [Errno 13] The workspace leaves such files out" in "\n".join(
        s.text for s in archive.turn_layout(outcome.run, 3)
    )
    end = archive.end(outcome.run)
    assert end is not None
    assert end.result == 2


@pytest.mark.parametrize("sandbox", ["auto", "none"])
async def test_another_host_goes_on_with_the_same_files(
    stage: Stage, sandbox: str, tmp_path: Path
) -> None:
    """A host vanishes in the middle of a command, with its disk; another one has the files of the
    version before, and carries the command out.
    """
    gate = tmp_path / "gate"
    wait = f"while ! test -e {gate}; do sleep 0.05; done; " if sandbox == "none" else "sleep 600; "
    code = [
        "sh('echo 1 > log; mkdir d; echo 2 > d/e; chmod 700 d')",
        f'r = sh("echo half >> log; test -e again || {{ {wait} }}; echo whole >> log", timeout=900)',
        "finish([open('log').read(), sh('stat -c %a d; cat d/e').stdout])",
    ]
    spec = hands(stage, code, writable=Writable(sandbox=sandbox))  # type: ignore[arg-type]
    queue, stage.queue = stage.queue, f"{stage.queue}-hosts"
    archive = JobArchive.of(stage.store, JobKey(batch=stage.batch, job=spec.id))

    def running() -> bool:
        return bool(list((stage.path / "one" / "running").glob("*/stdout")))

    async with stage.open(host="one"):
        handle = await stage.start(spec)
        await eventually(running, "the command runs")
        await eventually(lambda: len(list(archive.steps())) == 2, "its turn's step is archived")
    gate.touch()
    async with stage.open(host="two"):
        # The first host is gone with its files: nothing of the half command is there.
        await handle.cancel() if sandbox == "auto" else None
        outcome = await handle.result()
    stage.queue = queue
    if sandbox == "auto":
        assert outcome.status is JobStatus.CANCELLED
        version = workspace_after(archive, outcome.run, 1)
        assert files(stage, version)["log"] == "1\n"
        return
    end = archive.end(outcome.run)
    assert end is not None
    assert end.result == ["1\nhalf\nwhole\n", "700\n2\n"]


@both_ways
async def test_a_set_up_runs_once_and_is_read(stage: Stage) -> None:
    """For two jobs with equal files, before their first turns; its log is archived."""
    setup = "echo making; mkdir -p /env/bin; cp a.txt /env/found; date +%N > /env/when; echo changed > a.txt"
    code = ["finish(sh('cat /env/found a.txt /env/when; touch /env/x').stdout)"]
    results = []
    for name in ("one", "two"):
        spec = hands(stage, code, id=name, writable=Writable(setup=setup))
        outcome = await (await stage.start(spec)).result()
        archive = stage.archive(spec)
        end = archive.end(outcome.run)
        assert end is not None
        results.append(end.result)
        assert recorded_stream(archive, outcome.run, 0, 0, "setup") == b"making\n"
    assert results[0] == results[1]
    assert results[0].startswith("alpha\nalpha\n")
    (command,) = [
        event.activity_task_scheduled_event_attributes
        for event in (await stage.history(0)).events
        if event.activity_task_scheduled_event_attributes.activity_type.name == "change_workspace"
    ]
    # A host that has not the set-up makes it within the command's attempt.
    assert command.start_to_close_timeout.ToTimedelta().total_seconds() > SETUP_SECONDS
    for way in WAYS:
        assert not list((stage.path / "host" / way).glob("*/*")), "ended jobs leave no files"


async def test_a_set_up_that_fails_ends_its_job_with_what_it_printed(stage: Stage) -> None:
    """Before the first turn, so no model was called."""
    spec = hands(stage, ["finish(1)"], writable=Writable(setup="echo no such thing >&2; false; :"))
    outcome = await (await stage.start(spec)).result()
    assert (outcome.status, outcome.turns) == (JobStatus.FAILED, 0)
    assert "the set-up failed: it ended with exit code 1" in outcome.reason
    assert "no such thing" in outcome.reason


async def test_a_secret_that_a_set_up_printed_stands_in_no_reason_and_no_history(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of an index that repeats the key with which it was asked."""
    monkeypatch.setenv("TEAM_PIN", "pin-8812-7733")
    spec = hands(
        stage,
        ["finish(1)"],
        writable=Writable(setup="echo refused: $TEAM_PIN; false", secrets=("TEAM_PIN",)),
        redact=Redaction(env=("TEAM_PIN",)),
    )
    handle = await stage.start(spec)
    outcome = await handle.result()
    assert "refused: [masked:TEAM_PIN:" in outcome.reason
    assert "pin-8812-7733" not in (await handle.fetch_history()).to_json()


@both_ways
async def test_secrets_reach_commands_and_come_back_masked(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By name; nothing else of the worker's environment does."""
    monkeypatch.setenv("TEAM_PIN", "pin-8812-7733")
    monkeypatch.setenv("OTHER_PIN", "pin-0000-1111")
    code = [
        "r = sh('echo $TEAM_PIN; echo $TEAM_PIN | wc -c; echo [$OTHER_PIN]')\nprint(r.stdout)",
        "finish(r.stdout)",
    ]
    spec = hands(
        stage,
        code,
        writable=Writable(secrets=("TEAM_PIN",)),
        redact=Redaction(env=("TEAM_PIN",)),
    )
    outcome = await (await stage.start(spec)).result()
    archive = stage.archive(spec)
    end = archive.end(outcome.run)
    assert end is not None
    first, second, third = end.result.splitlines()
    assert (second, third) == ("14", "[]")
    assert "8812" not in first
    for key in stage.store.list(""):
        assert b"pin-8812-7733" not in stage.store.get(key)
    assert b"8812" not in recorded_stream(archive, outcome.run, 1, 0, "stdout")


async def test_a_command_that_runs_tells_its_last_line(stage: Stage, tmp_path: Path) -> None:
    """To whoever asks how the job stands; a key in it is masked."""
    gate = tmp_path / "gate"
    key = "ghp_" + "a1B2" * 9
    command = f"while ! test -e {gate}; do echo waits {key}; sleep 0.05; done; echo over"
    spec = hands(
        stage,
        [f"finish(sh({command!r}).stdout[-5:])"],
        writable=Writable(sandbox="none"),
    )
    control = Control(stage.client, stage.store)
    name = JobKey(batch=stage.batch, job=spec.id)

    async def line() -> str:
        standing = await control.standing(name)
        return standing.running.line if standing and standing.running else ""

    handle = await stage.start(spec)

    async def waits() -> bool:
        return (await line()).startswith("waits [")

    await eventually(waits, "the last line is told")
    assert key not in await line()
    gate.touch()
    outcome = await handle.result()
    assert outcome.status is JobStatus.SUCCEEDED
    standing = await control.standing(name)
    assert standing is not None
    assert standing.running is None
