"""A scripted model: it lists modules, reads them in the interpreter, and reports.

It reacts to what it is shown.
"""


def respond(messages):
    """The next statement, from the last outcome in the prompt."""
    seen = last_outcome(messages)
    if seen is None:
        return {
            "text": "I list the modules first.",
            "code": (
                "from pathlib import Path\nmodules = sorted(str(p) for d in ['workflows',"
                " 'activities'] for p in Path(d).rglob('*.py'))\nprint(len(modules), 'modules')"
            ),
        }
    if "modules" in seen and "missing" not in seen:
        return {
            "text": "Now I read each one and look at its first statement.",
            "code": (
                "missing = []\n"
                "for name in modules:\n"
                "    source = open(name).read().lstrip()\n"
                '    if not source.startswith(\'"""\'):\n'
                "        missing.append(name)\n"
                "print('missing:', missing)"
            ),
        }
    return {
        "text": "All modules are read.",
        "code": "finish({'modules': len(modules), 'missing': missing})",
    }


def last_outcome(messages):
    """The text of the newest statement's outcome, or None before the first."""
    for message in reversed(messages):
        if message["role"] == "tool":
            return str(message["content"])
    return None
