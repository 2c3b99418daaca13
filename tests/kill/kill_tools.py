"""The tool of the kill tests' jobs. It stands beside the jobs file, and its workspace too."""

from pathlib import Path

HERE = Path(__file__).parent


def append_lines(count: int) -> int:
    """Let ``log.txt`` have ``count`` lines.

    Running it twice is running it once; each run leaves a line in ``tool-runs``.
    """
    with (HERE / "tool-runs").open("a") as runs:
        runs.write(f"{count}\n")
    new = HERE / "log.txt.new"
    new.write_text("".join(f"line {number}\n" for number in range(1, count + 1)))
    new.replace(HERE / "workspace" / "log.txt")
    return count
