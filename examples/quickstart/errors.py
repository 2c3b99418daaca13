"""A scripted model: it makes a mistake, is told so, and corrects it; then it calls a tool."""


def respond(messages):
    """The next statement, from the last outcome in the prompt."""
    outcomes = [str(message["content"]) for message in messages if message["role"] == "tool"]
    if not outcomes:
        return {
            "text": "The exceptions should be in runtime/base/exceptions.py.",
            "code": "source = open('runtime/base/exceptions.py').read()",
        }
    if "FileNotFoundError" in outcomes[-1]:
        return {
            "text": "There is no such file. I look what there is.",
            "code": (
                "import os\nprint([name for name in os.listdir('runtime/base') if"
                " name.endswith('.py')])"
            ),
        }
    if "errors.py" in outcomes[-1]:
        return {
            "text": "It is called errors.py.",
            "code": (
                "source = open('runtime/base/errors.py').read()\ncodes = subclasses(source,"
                " root='HoldfastError')\nprint(codes)"
            ),
        }
    if "required" in outcomes[-1] or "ValueError" in outcomes[-1]:
        return {
            "text": "The result needs the key 'exceptions'.",
            "code": "finish({'exceptions': codes})",
        }
    return {"text": "I report the codes.", "code": "finish(codes)"}
