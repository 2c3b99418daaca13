"""Tools whose calls are under way until a test lets them go on."""

TOOLS = """
import time
from pathlib import Path
from holdfast import tool
here = Path(__file__).parent

def ran(what: str) -> str:
    with (here / "ran").open("a") as file:
        file.write(what + "\\n")
    while not what.startswith("first") and not (here / "gate").exists():
        time.sleep(0.05)
    return what

@tool(effect="once")
def pay(to: str) -> str:
    return ran(to)

@tool(approval="always", effect="once")
def ask(to: str) -> str:
    return ran(to)

@tool
def look(at: str) -> str:
    return ran(at)
"""
"""Each call writes a line to the file ``ran`` beside the module, and waits for the file ``gate``;
those of what begins with "first" do not wait.
"""
