"""A scripted model: it opens views, groups them, lets them run, and raises a summary's detail before it reports."""

import re

FILES = ["job.py", "statement.py", "surface.py", "fitting.py", "ledger.py", "stops.py"]


def respond(messages):
    """The next statement: what to do depends on which handles the prompt shows."""
    prompt = "\n".join(str(message["content"]) for message in messages if message["role"] != "system")
    handles = prompt[prompt.rfind("[handles]") :] if "[handles]" in prompt else ""
    if "job = view" not in handles:
        views = "\n".join(f"{name[:-3]} = view('runtime/job/{name}', tokens=900, lod=1)" for name in FILES)
        return {"text": "I open the files at the level of their structure.", "code": views}
    if "machine = group" not in handles:
        names = ", ".join(name[:-3] for name in FILES)
        return {
            "text": "One group over all of them is easier to keep in view.",
            "code": f"machine = group({names}, tokens=1500).Run(freq='Sync')\npin(machine, reason='the subject')",
        }
    shown = prompt[prompt.rfind("[machine: group") :]
    classes = re.findall(r"class (\w+)", shown)
    if len(set(classes)) < len(FILES) and "lod 1" not in handles.split("machine = group", 1)[1].splitlines()[0]:
        return {
            "text": "The summary names too few classes: I ask the group for more detail.",
            "code": "machine.SetLod(1).SetTokens(3000)\njob.Run(freq='Sync')",
        }
    return {
        "text": "Now each file's classes can be read off its structure.",
        "code": (
            "import re\n"
            "classes = {}\n"
            "for handle in machine.members:\n"
            "    classes[handle.path] = re.findall(r'^ *(?:[0-9]+[: ]+)?class (\\w+)', handle.text, re.MULTILINE)\n"
            "finish({'classes': classes})"
        ),
    }
