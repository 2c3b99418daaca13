"""A scripted model: it opens views, groups them, lets them run, asks for more detail, and
reports.
"""

import re

FILES = ["job.py", "statement.py", "surface.py", "fitting.py", "ledger.py", "stops.py"]
NAMES = ", ".join(name[:-3] for name in FILES)


def respond(messages):
    """The next statement: what to do depends on the handles and summaries that the prompt shows."""
    prompt = "\n".join(
        str(message["content"]) for message in messages if message["role"] != "system"
    )
    handles = prompt[prompt.rfind("[handles]") :] if "[handles]" in prompt else ""
    if "job = view" not in handles:
        views = "\n".join(
            f"{name[:-3]} = view('runtime/job/{name}', tokens=300, lod=1)" for name in FILES
        )
        return {"text": "I open the files at the level of their structure.", "code": views}
    if "machine = group" not in handles:
        return {
            "text": (
                "One group over all of them is easier to keep in view, and it should follow the"
                " files."
            ),
            "code": (
                f"machine = group({NAMES}, tokens=900)\npin(machine, reason='the subject')\n"
                f"for handle in ({NAMES}):\n    handle.Run(freq='Sync')"
            ),
        }
    cut = re.findall(r"^(\w+) = view .*lod 1 \| (\d+)/300 tokens", handles, re.MULTILINE)
    full = [name for name, used in cut if int(used) > 240]
    if full:
        grow = "\n".join(f"{name}.SetTokens(3000)" for name in full)
        return {
            "text": f"The outlines of {', '.join(full)} may be cut short: I give them more room.",
            "code": grow,
        }
    return {
        "text": "Now each file's classes can be read off its outline.",
        "code": (
            f"import re\nclasses = {{}}\nfor handle in ({NAMES}):\n    classes[handle.path] ="
            " re.findall(r'^ *[0-9]+: class (\\w+)', handle.text,"
            " re.MULTILINE)\nfinish({'classes': classes})"
        ),
    }
