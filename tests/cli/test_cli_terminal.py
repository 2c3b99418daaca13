"""What reaches a terminal: the live table, and nothing that a model wrote and a terminal would
obey.
"""

import re
import sys
from collections.abc import Callable

import pytest

from tests.cli.command_line import UNHURRIED, CommandLine
from tests.cli.terminal import on_a_terminal

pytestmark = pytest.mark.server

HOSTILE = r"""
import pathlib, time

REPLIES = [
    {"code": "x = 1  # \x1b[31mred\x1b[0m \x1b]0;title\a", "text": "say \x1b[2J"},
    {"code": "raise ValueError('\\x1b]52;c;ZXZpbA==\\x07bad')"},
    {"code": "print('\\x1b[2Jgone')"},
    {"code": "finish({'k\\x1b[31m': 'v\\x1b[2J\\x9b31m'})"},
]

def respond(messages):
    n = sum(m["role"] == "assistant" for m in messages)
    while n == 1 and not pathlib.Path(__file__).with_name("gate").exists():
        time.sleep(0.05)
    return REPLIES[n]
"""
"""Its second reply comes when the gate is there."""

REFUSING = r"""
- {refusal: "I \e[31mwill not\e[0m", finish_reason: "stop"}
- {text: "<script type='text/x-python'>\e[2J"}
- {text: "", finish_reason: "\e[31mlength"}
"""
FAILING = r"""
- {fail: {status: 400, message: "no \e]0;title\a way"}}
"""
OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\d*[AK]|\x1b\[2K|\x1b\[\?25[hl]")
"""What the live table itself uses: styles, lines up, erased lines, the cursor."""

ROW = re.compile(r"hostile +2 +[\d,]+ +\$0.0000 +model +x = 1 # red")

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


_HOLDFAST = "from holdfast.__main__ import entry; entry()"


def _on_a_terminal(
    cli: CommandLine, *arguments: str, shown: Callable[[str], None] = lambda written: None
) -> tuple[int, str]:
    return on_a_terminal([sys.executable, "-c", _HOLDFAST, *arguments], cli.path, shown=shown)


def test_the_live_table_and_all_that_is_printed_later(cli: CommandLine) -> None:
    """A row a job with its turn and statement, the ended ones as lines; the cursor comes back; no
    escape of a model's, here or in any other command, on a terminal or elsewhere.
    """
    scripts = {"hostile.py": HOSTILE, "refusing.yaml": REFUSING, "failing.yaml": FAILING}
    for name, text in scripts.items():
        cli.write(name, text)
    names = [name.partition(".")[0] for name in scripts]
    file = cli.jobs(
        *(
            f"id: {name}, model: scripted/{script}, {UNHURRIED}"
            for name, script in zip(names, scripts, strict=True)
        ),
        batch="terminal",
    )
    seen: list[str] = []

    def shown(written: str) -> None:
        if not seen and ROW.search(written) and "1 running, 2 failed of 3  0:0" in written:
            seen.append(written)
            cli.write("gate", "")

    code, written = _on_a_terminal(cli, "run", str(file), shown=shown)
    assert (code, bool(seen)) == (1, True), written
    assert "starting a worker: loading the model library and the interpreter …" in written
    assert written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l")
    plain = OURS.sub("", written).replace("\r", "")
    assert not CONTROLS.search(plain)
    last = plain.splitlines()[-5:]
    assert last[0] == r'terminal/hostile: {"k\u001b[31m": "v\u001b[2J"}'
    assert last[1].startswith("1 succeeded, 2 failed; ")
    assert (
        last[2]
        == f"2 ended without success; to start them anew: holdfast run {file} --rerun-failed"
    )
    assert [line.split(": ")[0] for line in last[3:]] == [
        "  terminal/refusing  failed",
        "  terminal/failing  failed",
    ]
    assert "BadRequestError: no 0;title way (HTTP 400)" in plain
    assert not CONTROLS.search(
        _on_a_terminal(cli, "show", "terminal/hostile@1", "--part", "wire-response")[1].replace(
            "\r", ""
        )
    )

    said = [cli("run", file), cli("ls", "terminal")]
    for name in names:
        said += [cli("log", f"terminal/{name}"), cli("show", f"terminal/{name}@1")]
    for part in ("request", "response", "statement", "nodes"):
        said += [cli("show", f"terminal/hostile@{turn}", "--part", part) for turn in (1, 2, 3, 4)]
    assert not any(CONTROLS.search(one.out + one.err) for one in said)
    assert re.search(r"^ +2  error ValueError ", said[2].out, re.MULTILINE)
