"""Tools run in a process of their own, which lives no longer than the worker."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.cli.command_line import CommandLine, script, wait_for
from tests.eventually import alive

TOOLS = """
import os, re, subprocess, sys, time
from pathlib import Path
import activities

def where() -> dict[str, str]:
    return {"activities": activities.WHOSE, "key": os.environ.get("OPENAI_API_KEY", "none"), "pid": str(os.getpid())}

def crash() -> None:
    os._exit(9)

def work(seconds: float) -> None:
    time.sleep(seconds)
    raise ValueError("in vain")

def hold() -> bool:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (Path(__file__).parent / f"held-{os.getpid()}-{child.pid}").touch()
    # Holds the interpreter's lock, for longer than anybody waits.
    return bool(re.match(r"(a+)+$", "a" * 60 + "b"))
"""


def test_a_tool_has_its_own_modules_and_no_keys(cli: CommandLine) -> None:
    """It imports its own ``activities``, has no provider's key, and when it crashes the statement
    gets an error and goes on.
    """
    cli.write("mine.py", TOOLS)
    cli.write("activities.py", "WHOSE = 'mine'\n")
    code = (
        'found = where()\ntry:\n    crash()\nexcept RuntimeError as e:\n    found["crash"] ='
        " str(e)\nafter = where()"
    )
    cli.write("a.json", script(code, 'finish([found, found["pid"] != after["pid"]])'))
    jobs = cli.jobs(
        "id: a, model: scripted/a.json, tools: ['mine:where', 'mine:crash']", batch="own-tools"
    )
    done = cli.finished(cli.start("run", jobs, "--json", OPENAI_API_KEY="a-secret-of-some-length"))
    assert (done.code, done.err) == (0, "")
    found, another = done.summary()["a"]["result"]
    assert another
    assert int(found.pop("pid")) > 0
    assert found == {
        "activities": "mine",
        "key": "none",
        "crash": "the process of the tool ended with exit code 9",
    }


def test_log_and_cost_tell_how_long_a_tool_took(cli: CommandLine) -> None:
    """Also where it failed; a replay that calls nothing took no time for it."""
    cli.write("mine.py", TOOLS)
    cli.write("activities.py", "")
    code = "try:\n    work(0.3)\nexcept ValueError:\n    finish(os.path.exists('x'))"
    cli.write("a.json", script(f"import os\n{code}"))
    jobs = cli.jobs("id: a, model: scripted/a.json, tools: ['mine:work']", batch="timed")
    assert cli("run", jobs).code == 0
    (work, file) = cli("log", "timed/a", "--effects", "--json").json()["effects"]
    assert (work["name"], work["error"], file["kind"]) == ("work", "ValueError", "file")
    assert work["seconds"] >= 0.3
    lines = cli("log", "timed/a", "--effects").out.splitlines()
    assert f"1.0  work  ValueError  {work['seconds']:.1f} s" in map(str.strip, lines)
    (cost,) = cli("cost", "timed/a", "--json").json()["jobs"]
    told = round(work["seconds"] + file["seconds"], 3)
    assert (cost["effects"], cost["effect_seconds"]) == (2, told)
    frozen = cli("replay", "timed/a", "--from", "1", "--mode", "reexecute", "--frozen")
    assert frozen.code == 0, frozen.err
    again = cli("log", "timed/a", "--effects", "--json").json()["effects"]
    assert [(row["error"], row["seconds"]) for row in again] == [("ValueError", None), (None, None)]


def test_a_killed_worker_leaves_no_tool_behind(cli: CommandLine) -> None:
    """``kill -9`` ends the tool's process too, though the tool holds the interpreter's lock, and
    what the tool started.
    """
    cli.write("mine.py", TOOLS)
    cli.write("activities.py", "")
    cli.write("a.json", script("hold()"))
    jobs = cli.jobs("id: a, model: scripted/a.json, tools: ['mine:hold']", batch="held-tools")
    process = cli.start("run", jobs)

    def held() -> list[Path]:
        return sorted(cli.path.glob("held-*"))

    wait_for(lambda: bool(held()), "the tool runs", process)
    _, tool, started = held()[0].name.split("-")
    assert alive(int(tool))
    assert alive(int(started))
    os.kill(process.pid, signal.SIGKILL)
    wait_for(lambda: not alive(int(tool)) and not alive(int(started)), "the tool's processes end")
