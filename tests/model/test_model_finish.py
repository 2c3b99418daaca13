"""Telling of an end: a webhook at a real HTTP server, a command, and what is kept of it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.finish_contracts import FinishNotice, FinishTold
from activities.finishing import FinishActivities
from runtime.archive.failure_groups import untold
from runtime.archive.forms import NewEnd
from runtime.archive.job import JobArchive
from runtime.archive.notices import find_notice
from runtime.archive.stores import MemoryStore
from runtime.base.spec.finish import FinishEvent, OnFinish
from runtime.base.values import JobKey
from tests.eventually import SECONDS, alive, eventually

ROOT = Path(__file__).parents[2]
KEY = JobKey(batch="night", job="a")


class Hook:
    """An HTTP server that answers with ``answers``, the last one for ever."""

    def __init__(self) -> None:
        self.answers = [200]
        self.got: list[tuple[str, str, Any]] = []
        self.says = 0
        """Bytes behind the headers."""
        self.said: Queue[int] = Queue()
        """How many of them the client took, or had on the way to it."""
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                hook.got.append((self.path, self.headers["idempotency-key"], body))
                self.send_response(
                    hook.answers.pop(0) if len(hook.answers) > 1 else hook.answers[0]
                )
                self.send_header("content-length", str(hook.says))
                self.end_headers()
                said = 0
                with suppress(ConnectionError):
                    while said < hook.says:
                        said += self.wfile.write(bytes(1 << 20))
                hook.said.put(said)

            def log_message(self, format: str, *args: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/T0/h0tsecret"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    JobArchive.of(made, KEY).write_end(
        NewEnd(run="r", turn=1, parent=None, status="succeeded", result={"n": 1})
    )
    return made


def notice(order: OnFinish, last: int = 3) -> FinishNotice:
    told = {"status": "succeeded", "turns": 1}
    return FinishNotice(
        order=order,
        event=FinishEvent.JOB,
        key="night/a/r",
        batch="night",
        job=KEY,
        run="r",
        told=told,
        last=last,
    )


async def tell(store: MemoryStore, one: FinishNotice, attempt: int = 1) -> FinishTold:
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, attempt=attempt)
    return await environment.run(FinishActivities(store).tell_finish, one)


async def test_a_webhook_gets_the_end_and_is_told_once(store: MemoryStore, hook: Hook) -> None:
    """The result, what it took and the idempotency key; a try that follows finds what is kept."""
    one = notice(OnFinish(webhook=hook.url))
    assert await tell(store, one) == FinishTold(heard=True)
    assert await tell(store, one, attempt=2) == FinishTold(heard=True)
    assert hook.got == [
        (
            "/T0/h0tsecret",
            "night/a/r",
            {
                "event": "job",
                "key": "night/a/r",
                "batch": "night",
                "job": "a",
                "run": "r",
                "result": {"n": 1},
                "result_told": True,
                "status": "succeeded",
                "turns": 1,
            },
        )
    ]
    kept = find_notice(store, "night", "night/a/r")
    assert kept is not None
    assert (kept.heard, kept.tries, "h0tsecret" in kept.model_dump_json()) == (True, 1, False)


async def test_what_a_webhook_says_beside_its_status_is_not_read(
    store: MemoryStore, hook: Hook
) -> None:
    """It may be without end, and a worker has to keep nothing of it."""
    hook.says = 1 << 28
    assert await tell(store, notice(OnFinish(webhook=hook.url))) == FinishTold(heard=True)
    assert await asyncio.to_thread(hook.said.get) < hook.says


async def test_a_receiver_that_is_down_is_tried_again_and_then_given_up(
    store: MemoryStore, hook: Hook
) -> None:
    """Each try fails but the last, which is kept, and grouped with what went wrong."""
    hook.answers = [503]
    one = notice(OnFinish(webhook=hook.url), last=2)
    with pytest.raises(ApplicationError, match="answered 503") as error:
        await tell(store, one)
    assert (error.value.type, "h0tsecret" in str(error.value)) == ("NotHeard", False)
    assert find_notice(store, "night", one.key) is None
    told = await tell(store, one, attempt=2)
    assert (told.heard, told.tries) == (False, 2)
    (failing,) = untold(store, "night", [])
    where = hook.url.removesuffix("/T0/h0tsecret")
    assert failing.reason == (
        f"on_finish was not told after 2 tries: webhook {where}/[masked]: {where}/[masked] answered"
        " 503 Service Unavailable"
    )


@pytest.mark.parametrize(("answer", "final"), [(404, True), (429, False), (500, False)])
async def test_what_trying_again_does_not_mend_is_not_tried_again(
    store: MemoryStore, hook: Hook, answer: int, final: bool
) -> None:
    """A refusal is kept at once; what may pass is raised for the next try."""
    hook.answers = [answer]
    one = notice(OnFinish(webhook=hook.url))
    if final:
        assert not (await tell(store, one)).heard
    else:
        with pytest.raises(ApplicationError):
            await tell(store, one)
    assert (find_notice(store, "night", one.key) is not None) is final


@pytest.mark.parametrize(
    ("head", "heard"), [(b"HTTP/1.1 200 OK\r\n\r\n", True), (b"HTTP/1.1 200 OK\r\n", False)]
)
async def test_a_webhook_that_answers_without_end(
    store: MemoryStore, head: bytes, heard: bool
) -> None:
    """Its status is an answer, whatever follows is not waited for; nor is one that never comes,
    however much comes of it.
    """
    # One that is heard may take as long as it takes on a busy machine.
    seconds = 60.0 if heard else 0.2

    async def answers(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        with suppress(ConnectionError):
            while True:
                writer.write(b"more: x\r\n")
                await writer.drain()
                await asyncio.sleep(0.05)

    async with await asyncio.start_server(answers, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        hook = OnFinish(webhook=f"http://127.0.0.1:{port}/", timeout=seconds)
        async with asyncio.timeout(SECONDS):
            told = await tell(store, notice(hook, last=1))
    assert told.heard is heard
    assert told.error.endswith("" if heard else "did not answer within 0.2 s")


async def test_a_webhook_of_the_workers_environment(
    store: MemoryStore, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is all that is known; a worker that does not have it says so."""
    one = notice(OnFinish(webhook="$HOOK"), last=1)
    monkeypatch.setenv("HOOK", hook.url)
    assert (await tell(store, one)).heard
    monkeypatch.delenv("HOOK")
    told = await tell(MemoryStore(), one)
    assert told.error == "this worker's environment has no URL in HOOK"


async def test_a_command_gets_the_end_on_stdin(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the jobs file's directory, with the key in its environment and no key of a provider."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-h0tsecret")
    names = ("EVENT", "KEY", "BATCH", "JOB", "STATUS")
    told = " ".join(f"$HOLDFAST_FINISH_{name}" for name in names)
    command = f"cat > got.json; echo {told}; env > env"
    one = notice(OnFinish(command=f"{{ {command}; }} > said", directory=str(tmp_path)))
    assert (await tell(store, one)).heard
    assert json.loads((tmp_path / "got.json").read_text())["result"] == {"n": 1}
    assert (tmp_path / "said").read_text() == "job night/a/r night a succeeded\n"
    assert "h0tsecret" not in (tmp_path / "env").read_text()


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("echo no >&2; echo broke >&2; exit 3", "the command exited with 3: broke"),
        ("sleep 1000", "the command took more than 0.5 s and was ended"),
    ],
)
async def test_a_command_that_fails(
    store: MemoryStore, tmp_path: Path, command: str, error: str
) -> None:
    """Its exit code and last words, or that it was ended."""
    order = OnFinish(command=command, directory=str(tmp_path), timeout=0.5)
    if "exit" in command:
        order = order.model_copy(update={"timeout": 120.0})
    told = await tell(store, notice(order, last=1))
    assert (told.heard, told.error) == (False, error)


_WORKER = """
import asyncio, sys
from activities import finishing
from tests.model.test_model_finish import notice
from runtime.base.spec.finish import OnFinish

command = "sleep 1000 & echo $$ $! > new; mv new ids; wait"
asyncio.run(finishing._run(notice(OnFinish(command=command, directory=sys.argv[1])), b""))
"""


@pytest.mark.slow
async def test_a_command_ends_with_its_worker(tmp_path: Path) -> None:
    """However that ends, and with what it has started: another worker gives it again."""
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _WORKER, str(tmp_path), cwd=ROOT
    )
    ids = tmp_path / "ids"
    await eventually(ids.exists, "the command")
    worker.kill()
    await worker.wait()
    for one in map(int, ids.read_text().split()):
        await eventually(lambda one=one: not alive(one), "its end")


_KILLED_AT_ONCE = """
import asyncio, os, signal, sys
from activities import finishing
from tests.model.test_model_finish import notice
from runtime.base.spec.finish import OnFinish

start = asyncio.create_subprocess_exec

async def killed(*words, **options):
    process = await start(*words, **options)
    print(process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.create_subprocess_exec = killed
command = OnFinish(command="sleep 1000 & wait", directory=sys.argv[1])
asyncio.run(finishing._run(notice(command), b""))
"""


async def test_a_command_whose_worker_is_killed_as_it_begins_ends(tmp_path: Path) -> None:
    """Whether it has begun by then or not."""
    command = [sys.executable, "-c", _KILLED_AT_ONCE, str(tmp_path)]
    worker = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await worker.communicate()
    assert worker.returncode == -signal.SIGKILL
    pid = int(said)
    await eventually(lambda: not alive(pid), "its end")
