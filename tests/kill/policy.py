"""The model of the kill tests: a policy whose statement depends on the turn alone, so any two runs
of a job are alike.

The goal says how many turns the job takes. Together the statements make every kind of effect:
views, a group, running nodes, ``open().read()``, ``os.listdir``, a tool that changes a file, an
error after an effect, random numbers and ``finish``. The group is at level 1: a summary that a
model writes in the background is ready at another turn each time.
"""

import re

OPEN = """\
a = view('a.py', tokens=300, lod=1)
log = view('log.txt', tokens=200)
seen = []
lines = {}
roll = 0.0"""

WATCH = """\
g = group(a, log, tokens=200, lod=1).Run(freq='Sync')
log.Run(freq='Sync')
pin(log, reason='it grows')"""

TOOL = """\
lines[{turn}] = append_lines({turn})
print('lines', lines[{turn}])"""

READ = """\
text = open('a.py').read()
seen.append(({turn}, len(text)))
print(text.splitlines()[0])"""

ERROR = """\
import os
names = sorted(os.listdir('.'))
print(names)
seen.append(({turn}, len(names)))
open('missing.txt').read()"""

MOVE = """\
a.SetPos('{place}').SetTokens({tokens})
show(a, lod=0, tokens=100)"""

ADD = """\
part = view('notes.md', pos='{turn}', tokens=80, lod=0)
g.Add(part)
print(part.text[:60])"""

COMPUTE = """\
import random
roll = round(roll + random.random(), 9)
print(sum(number for _, number in seen), roll)"""

MOVE_PART = """\
part.SetPos('{place}')
print(part.text[:60])"""

FORGET = """\
seen = seen[-40:]
lines = {{turn: count for turn, count in lines.items() if turn > {turn} - 140}}
print(len(seen), len(lines))"""

GROWN = 100
"""The turn after which a job makes no new nodes, and forgets its oldest values: one of any length
takes the same room.
"""

FINISH = "finish({'seen': [list(pair) for pair in seen], 'lines': len(lines), 'roll': roll})"

FAILS_AT = 6
"""The turn whose first request is answered with an error; the answer to the next one is the
reply.
"""

SUMMARY = "Write a summary of the stretch"
"""Words of every prompt that asks for one."""

PATTERN = (COMPUTE, TOOL, ADD, READ, TOOL, ERROR, MOVE)
LATER = (f"{COMPUTE}\n{FORGET}", TOOL, MOVE_PART, READ, TOOL, ERROR, MOVE)


def respond(messages, number):
    """The reply to a prompt, by the turn that its line of budgets names; or the summary that it
    asks for.
    """
    turn = turn_of(messages)
    if turn is None:
        return {
            "text": (
                f"{len(messages)} messages of {sum(len(str(m['content'])) for m in messages)}"
                " characters."
            )
        }
    goal = next(
        text
        for message in messages
        if "turns." in (text := str(message["content"])) and "Take" in text
    )
    found = re.search(r"Take (\d+) turns\.", goal)
    failing = {"fail": {"status": 500, "message": "try again"}} if turn == FAILS_AT else {}
    return {
        **failing,
        "text": f"Turn {turn}.",
        "code": statement(turn, int(found[1])),
        "ids": [f"call_turn_{turn}"],
        "usage": {
            "prompt_tokens": 100 * turn,
            "completion_tokens": 10,
            "total_tokens": 100 * turn + 10,
        },
    }


def turn_of(messages):
    """The turn of a prompt, by its line of budgets; None of one that asks for a summary."""
    said = "\n".join(str(message.get("content")) for message in messages)
    return None if SUMMARY in said else int(re.findall(r"\[budget: turn (\d+) of", said)[-1])


def statement(turn, turns):
    """The statement of a turn in a job of so many turns."""
    if turn == turns:
        return FINISH
    if turn <= 2:
        return OPEN if turn == 1 else WATCH
    chosen = (PATTERN if turn <= GROWN else LATER)[turn % len(PATTERN)]
    return chosen.format(turn=turn, place=turn % 150, tokens=300 + turn % 100)
