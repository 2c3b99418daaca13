"""What is wrong with a jobs file is one error: file, line, key, and what was expected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from activities._options import ModelOptions
from runtime.base.errors import InputError
from runtime.base.spec.models import Budget
from runtime.jobsfile.load import load_jobs_file
from runtime.jobsfile.overrides import budget_override
from runtime.jobsfile.resolve.options import _TIMES

Refuse = Callable[..., str]
NAMES = "letters, digits, '.', '_' and '-', a letter or digit first, at most 100"
GOOD = "id: a, goal: g, workspace: src, model: x"
LONG = "l" * 256
NO_HOME = "no user has the home directory '~nosuchuser'"
NO_HOST = "expected a URL, got one whose host cannot be read"
HUGE = "0x" + "F" * 4_000
VARIABLE = (
    "expected the name of an environment variable (letters, digits and '_', no digit first),"
    " without '$'"
)
TOO_MANY_DIGITS = "expected a whole number of at most 300 digits"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "budget: {wall: soon}",
            "jobs[0].budget.wall: expected a duration such as 6h or 90m, at most ten years,"
            " got 'soon'",
        ),
        (
            "budget: {deadline: 2026-05-31}",
            (
                "jobs[0].budget.deadline: expected a duration such as 8h, or a time with its zone"
                " such as 2026-05-31T08:00:00+02:00, got '2026-05-31'"
            ),
        ),
        (
            "budget: {wall: 0}",
            "jobs[0].budget.wall: expected a duration such as 6h or 90m, at most ten years, got 0",
        ),
        (
            "budget: {wall: 3651d}",
            "jobs[0].budget.wall: expected a duration such as 6h or 90m, at most ten years,"
            " got '3651d'",
        ),
        ("budget: {turns: 4.5}", "jobs[0].budget.turns: expected a whole number, got 4.5"),
        ("budget: {turns: '4'}", "jobs[0].budget.turns: expected a whole number, got '4'"),
        ("budget: {turns: true}", "jobs[0].budget.turns: expected a whole number, got true"),
        ("budget: {turns: 0}", "jobs[0].budget.turns: expected a number of at least 1, got 0"),
        ("budget: {usd: .inf}", "jobs[0].budget.usd: expected a finite number, got inf"),
        ("budget: {usd: 0}", "jobs[0].budget.usd: expected a number above 0, got 0"),
        (
            "budget: {usd: 1.0e+308}",
            "jobs[0].budget.usd: expected a number of at most 1000000000000, got 1e+308",
        ),
        ("budget: {tuns: 4}", "jobs[0].budget.tuns: unknown key; did you mean 'turns'?"),
        (
            "budget: {zzz: 4}",
            "jobs[0].budget.zzz: unknown key; expected one of turns, tokens, usd, wall, deadline",
        ),
        ("sections: {views: 9}", "jobs[0].sections.views: expected a number of at least 64, got 9"),
        ("sections: {feed: many}", "jobs[0].sections.feed: expected a whole number, got 'many'"),
        ("sections: {view: 900}", "jobs[0].sections.view: unknown key; did you mean 'views'?"),
        *(
            (f"{key}: {{{inner}: {HUGE}}}", f"jobs[0].{key}.{inner}: {TOO_MANY_DIGITS}")
            for key, inner in (
                ("budget", "turns"),
                ("budget", "usd"),
                ("budget", "wall"),
                ("result", "maximum"),
            )
        ),
        (f"result: {HUGE}", f"jobs[0].result: {TOO_MANY_DIGITS}"),
        (
            f"budget: {{turns: {10**299}}}",
            (
                "jobs[0].budget.turns: expected a number of at most 1000000000000, got a number of more"
                " than 60 digits"
            ),
        ),
        ("history: 900", "jobs[0].history: unknown key here; it belongs in 'sections'"),
        (
            "retry: {attemps: 3}",
            "jobs[0].retry.attemps: unknown key; did you mean 'attempts'?",
        ),
        ("retry: {wall: 3}", "jobs[0].retry.wall: unknown key; did you mean 'stall'?"),
        (
            "retry: {zzz: 3}",
            (
                "jobs[0].retry.zzz: unknown key; expected one of on, times, attempts, time,"
                " first_byte, stall"
            ),
        ),
        (
            "spawn: {wall: 1h}",
            (
                "jobs[0].spawn.wall: unknown key; expected one of max, depth, turns, tokens, usd,"
                " model"
            ),
        ),
        (
            "mcp: {d: {commnd: [x]}}",
            "jobs[0].mcp.d.commnd: unknown key; did you mean 'command'?",
        ),
        (
            "mcp: {budget: {zzz: 1}}",
            (
                "jobs[0].mcp.budget.zzz: unknown key; expected one of command, directory, url, env,"
                " token, timeout, effects"
            ),
        ),
        ("redact: {zzz: 1}", "jobs[0].redact.zzz: unknown key; expected one of env, patterns"),
        (
            "approvals: {zzz: 1}",
            "jobs[0].approvals.zzz: unknown key; expected one of tools, sh, wait, otherwise",
        ),
        (
            "summary_model: {name: y, price: {input: 1, output: 1, zzz: 1}}",
            (
                "jobs[0].summary_model.price.zzz: unknown key; expected one of input, output,"
                " cache_read, cache_write"
            ),
        ),
        (
            "condenser: {kind: summary, model: {name: y, price: {input: 1, output: 1, kind: 1}}}",
            ("jobs[0].condenser.model.price.kind: unknown key here; it belongs in 'condenser'"),
        ),
        (
            "budget: {summary_model: y}",
            (
                "jobs[0].budget.summary_model: unknown key here; it belongs in a job or in"
                " 'defaults'"
            ),
        ),
        (
            "budget: {store: y}",
            "jobs[0].budget.store: unknown key here; it belongs at the top of the file",
        ),
        ("budget: 4", "jobs[0].budget: expected a mapping, got 4"),
        ("budget:", "jobs[0].budget: expected a value, got nothing; leave the key out instead"),
        ("turns: 4", "jobs[0].turns: unknown key here; it belongs in 'budget'"),
        ("batch: b", "jobs[0].batch: unknown key here; it belongs at the top of the file"),
        (
            "context_tokens: 10",
            "jobs[0].context_tokens: expected a number of at least 1000, got 10",
        ),
        ("form: tol", "jobs[0].form: expected 'auto', 'tool' or 'script', got 'tol'"),
        ("tools: mytools:search", "jobs[0].tools: expected a list, got 'mytools:search'"),
        ("tools: [4]", "jobs[0].tools[0]: expected a text, got 4"),
        ("tools: [search]", "jobs[0].tools[0]: expected a tool as 'module:function', got 'search'"),
        (
            "tools: ['mytools:nope']",
            "jobs[0].tools[0]: the module 'mytools' has no function 'nope'",
        ),
        (
            "tools: ['mytools:search', 'mytools:search']",
            (
                "jobs[0].tools[1]: expected tools of different names, got 'search' from"
                " 'mytools:search' again"
            ),
        ),
        ("check: mod.f", "jobs[0].check: expected a tool as 'module:function', got 'mod.f'"),
        ("secrets: [$FOO]", f"jobs[0].secrets[0]: {VARIABLE}, got '$FOO'"),
        ("redact: {env: [MY-KEY]}", f"jobs[0].redact.env[0]: {VARIABLE}, got 'MY-KEY'"),
        (
            "mcp: {docs: {url: 'http://a/', token: $DOCS}}",
            f"jobs[0].mcp.docs.token: {VARIABLE}, got '$DOCS'",
        ),
        (
            "mcp: {docs: {url: 'http://a/', token: sk-a1B2c3D4e5F6g7H8i9J0a1B2c3D4}}",
            f"jobs[0].mcp.docs.token: {VARIABLE}, got '[masked:api-key]'",
        ),
        (
            "mcp: {my-docs: {command: [x]}}",
            (
                "jobs[0].mcp.my-docs: expected a server's name (letters, digits and '_', a letter"
                " first, at most 40), got 'my-docs'"
            ),
        ),
        (
            "mcp: {docs: {url: x.com/mcp}}",
            (
                "jobs[0].mcp.docs.url: expected a URL that begins with http:// or https://, got"
                " 'x.com/mcp'"
            ),
        ),
        (
            f"mcp: {{{', '.join(f's{n}: {{command: [x]}}' for n in range(9))}}}",
            "jobs[0].mcp: expected a mapping no longer than 8, got 9 items",
        ),
        ("retry: {on: []}", "jobs[0].retry.on: expected a list no shorter than 1, got 0 items"),
        ("pin_user_messages: 1", "jobs[0].pin_user_messages: expected true or false, got 1"),
        ("result: [a]", "jobs[0].result: expected a mapping, got a list"),
        ("store: x", "jobs[0].store: unknown key here; it belongs at the top of the file"),
        ("? [a]\n    : 1", "jobs[0]: expected text keys, got a list or mapping as a key"),
        ("form: !form tool", "jobs[0].form: expected plain YAML, got 'tool' with the tag '!form'"),
        (
            "pin_user_messages: !!bool maybe",
            "jobs[0].pin_user_messages: expected plain YAML, got 'maybe' with the tag"
            " 'tag:yaml.org,2002:bool'",
        ),
        (
            "context_tokens: !!int ''",
            "jobs[0].context_tokens: expected plain YAML, got '' with the tag"
            " 'tag:yaml.org,2002:int'",
        ),
        ("!key form: tool", "jobs[0].form: expected plain YAML, got the tag '!key'"),
        ("<<: 4", "jobs[0]: expected '<<' to name a mapping"),
    ],
)
def test_a_wrong_line_of_a_job(refuse: Refuse, line: str, message: str) -> None:
    """A job's wrong value or key is named with its line and what was expected."""
    where = 3 if message.startswith("jobs[0]: ") else 4
    block = "jobs:\n\n  - id: a\n    " + line + "\n    goal: g\n    workspace: src\n    model: x\n"
    assert refuse(block) == f"jobs.yaml:{where}: {message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1: expected a mapping with 'jobs', got nothing"),
        ("# nothing\n", "1: expected a mapping with 'jobs', got nothing"),
        ("- id: a\n", "1: expected a mapping with 'jobs', got a list"),
        ("batch: b\n", "1: jobs: required key is missing"),
        ("batch: b\njobs: []\n", "2: jobs: expected at least one job, got none"),
        ("batch: b\njobs:\n", "2: jobs: expected a list of jobs, got nothing"),
        ("jobs: {a: 1}\n", "1: jobs: expected a list of jobs, got a mapping"),
        ("jobs:\n- a\n", "2: jobs[0]: expected a mapping, got 'a'"),
        ("jobs:\n- {goal: g, workspace: src, model: x}\n", "2: jobs[0].id: required key is missing"),
        (f"jobs:\n- {{{GOOD}}}\nbatch: a/b\n", f"3: batch: expected a name ({NAMES}), got 'a/b'"),
        (f"jobs:\n- {{{GOOD}}}\nbatch: ..\n", f"3: batch: expected a name ({NAMES}), got '..'"),
        ("jobs:\n- {id: 5, goal: g, workspace: src, model: x}\n", f"2: jobs[0].id: expected a name ({NAMES}), got 5; put it in quotes"),
        (f"jobs:\n- {{{GOOD}}}\nbatch: true\n", f"3: batch: expected a name ({NAMES}), got true; put it in quotes"),
        ("jobs:\n- {id: a b, goal: g, workspace: src, model: x}\n", f"2: jobs[0].id: expected a name ({NAMES}), got 'a b'"),
        (f"concurrency: 0\njobs:\n- {{{GOOD}}}\n", "1: concurrency: expected a number of at least 1, got 0"),
        (f"concurency: 1\njobs:\n- {{{GOOD}}}\n", "1: concurency: unknown key; did you mean 'concurrency'?"),
        (f"model: x\njobs:\n- {{{GOOD}}}\n", "1: model: unknown key here; it belongs in a job or in 'defaults'"),
        (f"history: 900\njobs:\n- {{{GOOD}}}\n", "1: history: unknown key here; it belongs in 'sections' of a job or of 'defaults'"),
        (f"turns: 9\njobs:\n- {{{GOOD}}}\n", "1: turns: unknown key here; it belongs in 'budget'"),
        (f"budget: {{deadline: 8h}}\njobs:\n- {{{GOOD}}}\n", "1: budget.deadline: unknown key here; it belongs in 'budget' of a job or of 'defaults'"),
        (f"budget: {{zzz: 8}}\njobs:\n- {{{GOOD}}}\n", "1: budget.zzz: unknown key; expected one of turns, tokens, usd, wall"),
        (f"on_finish: {{foo: 1}}\njobs:\n- {{{GOOD}}}\n", "1: on_finish.foo: unknown key; expected one of command, webhook, events, timeout"),
        (f"limits: {{foo: {{}}}}\njobs:\n- {{{GOOD}}}\n", "1: limits.foo: unknown key; expected one of models, tools"),
        (f"limits: {{model: {{}}}}\njobs:\n- {{{GOOD}}}\n", "1: limits.model: unknown key; did you mean 'models'?"),
        (f"limits: {{models: {{x: {{requests_per_minute: 0}}}}}}\njobs:\n- {{{GOOD}}}\n", "1: limits.models.x.requests_per_minute: expected a number of at least 0.01, got 0"),
        (f"limits: {{models: {{x: {{requests_per_minute: 1.0e+13}}}}}}\njobs:\n- {{{GOOD}}}\n", "1: limits.models.x.requests_per_minute: expected a number of at most 1000000000000, got 10000000000000.0"),
        (f"budget: {{usd: 1.0e+13}}\njobs:\n- {{{GOOD}}}\n", "1: budget.usd: expected a number of at most 1000000000000, got 10000000000000.0"),
        (f"limits: {{models: {{x: {{zzz: 1}}}}}}\njobs:\n- {{{GOOD}}}\n", "1: limits.models.x.zzz: unknown key; expected one of requests_per_minute, tokens_per_minute, concurrent"),
        (f"limits: {{models: {{x: {{concurrency: 1}}}}}}\njobs:\n- {{{GOOD}}}\n", "1: limits.models.x.concurrency: unknown key; did you mean 'concurrent'?"),
        (f"limits: {{models: {{x: {{tools: 1}}}}}}\njobs:\n- {{{GOOD}}}\n", "1: limits.models.x.tools: unknown key here; it belongs in 'limits'"),
        (f"defaults: {{retry: {{zzz: 1}}}}\njobs:\n- {{{GOOD}}}\n", "1: defaults.retry.zzz: unknown key; expected one of on, times, attempts, time, first_byte, stall"),
        (f"defaults: {{workspace: {{form: a}}}}\njobs:\n- {{{GOOD}}}\n", "1: defaults.workspace.form: unknown key; did you mean 'from'?"),
        (f"defaults: {{jobs: []}}\njobs:\n- {{{GOOD}}}\n", "1: defaults.jobs: unknown key here; it belongs at the top of the file"),
        (f"defaults: {{goal: g}}\njobs:\n- {{{GOOD}}}\n", "1: defaults.goal: unknown key here; it belongs in a job"),
        (f'"a\\tb": 1\njobs:\n- {{{GOOD}}}\n', "1: ['a\\tb']: unknown key; expected one of batch, concurrency, store, budget, limits, priority, on_finish, tools_path, defaults, jobs"),
        ("jobs:\n- {id: a, goal: '  ', workspace: src, model: x}\n", "2: jobs[0].goal: expected a text that says what to do, got an empty one"),
        ("jobs:\n- id: a\n  goals: g\n  workspace: src\n  model: x\n", "3: jobs[0].goals: unknown key; did you mean 'goal'?"),
        ("jobs:\n- {id: a, goal: g, model: x}\n", "2: jobs[0].workspace: required key is missing, here and in 'defaults'"),
        ("jobs:\n- {id: a, goal: g, workspace: src}\n", "2: jobs[0].model: required key is missing, here and in 'defaults'"),
        ("jobs:\n- {id: a, goal: g, workspace: nope, model: x}\n", "2: jobs[0].workspace: expected a directory, got 'nope', which is none"),
        ("jobs:\n- {id: a, goal: g, workspace: policy.py, model: x}\n", "2: jobs[0].workspace: expected a directory, got 'policy.py', which is none"),
        (f"store: ftp://x/y\njobs:\n- {{{GOOD}}}\n", "1: store: expected a directory or a URL of file or s3, got 'ftp://x/y'"),
        (f"store: 's3://['\njobs:\n- {{{GOOD}}}\n", f"1: store: {NO_HOST}"),
        (f'store: "a\\0b"\njobs:\n- {{{GOOD}}}\n', "1: store: expected a path, got 'a\\x00b'"),
        (f"store: ~nosuchuser/x\njobs:\n- {{{GOOD}}}\n", f"1: store: {NO_HOME}"),
        (f"tools_path: ~nosuchuser/x\njobs:\n- {{{GOOD}}}\n", f"1: tools_path: {NO_HOME}"),
        (f"jobs:\n- {{id: a, goal: g, workspace: {LONG}, model: x}}\n", f"2: jobs[0].workspace: expected a directory, got '{LONG[:60]}'..., which may not be read (File name too long)"),
        (f"concurrency: {HUGE}\njobs:\n- {{{GOOD}}}\n", f"1: concurrency: {TOO_MANY_DIGITS}"),
        (f"jobs:\n- {{id: {HUGE}, goal: g, workspace: src, model: x}}\n", f"2: jobs[0].id: {TOO_MANY_DIGITS}"),
        (f"jobs:\n- {{id: a, goal: {HUGE}, workspace: src, model: x}}\n", f"2: jobs[0].goal: {TOO_MANY_DIGITS}"),
        ("jobs:\n- {id: a, goal: g, workspace: ~nosuchuser/x, model: x}\n", f"2: jobs[0].workspace: {NO_HOME}"),
        ("jobs:\n- {id: a, goal: g, workspace: {from: ~nosuchuser/x}, model: x}\n", f"2: jobs[0].workspace: {NO_HOME}"),
        ("jobs:\n- {id: a, goal: g, workspace: src, model: scripted/~nosuchuser/x}\n", f"2: jobs[0].model: {NO_HOME}"),
        (f"jobs:\n- {{id: a, goal: g, workspace: src, model: scripted/{LONG}}}\n", f"2: jobs[0].model: expected the file of a script, got '{LONG[:60]}'..., which is none"),
        (f"jobs:\n- {{{GOOD}, for_each: ~nosuchuser/x.csv}}\n", f"2: jobs[0].for_each: {NO_HOME}"),
        (f"jobs:\n- {{{GOOD}, mcp: {{docs: {{command: [x], directory: ~nosuchuser/x}}}}}}\n", f"2: jobs[0].mcp.docs.directory: {NO_HOME}"),
        (f"store: s3://me:pw@b/p\njobs:\n- {{{GOOD}}}\n", "1: store: expected no credentials in the URL; set AWS_ACCESS_KEY_ID and its like"),
    ],
)  # fmt: skip
def test_a_wrong_file(refuse: Refuse, text: str, message: str) -> None:
    """What is wrong with the file as a whole is named in the same way."""
    assert refuse(text) == f"jobs.yaml:{message}"


@pytest.mark.parametrize("key", ["store", "model", "zzz"])
def test_a_budget_of_an_option_is_part_of_no_file(key: str) -> None:
    """What its unknown keys are in a file helps nobody."""
    with pytest.raises(InputError, match="expected one of turns, tokens, usd, wall, deadline"):
        budget_override(f"{key}=3", Budget())


def test_a_directory_of_tools_of_a_name_too_long_for_one(refuse: Refuse) -> None:
    """It is not there, as others."""
    told = refuse(f"tools_path: {LONG}\njobs:\n- {{{GOOD}}}\n")
    assert told.startswith("jobs.yaml:1: tools_path: no such directory: '")


def test_limits_that_no_job_is_under(refuse: Refuse) -> None:
    """They would bound nothing: each is named, with what there is."""
    assert refuse(
        "limits:\n"
        "  models:\n"
        "    'opnai/*': {concurrent: 1}\n"
        "    'openai/*': {concurrent: 1}\n"
        "  tools:\n"
        "    'mytools:serch': {concurrent: 1}\n"
        "    'mytools:fetch': {concurrent: 1}\n"
        "jobs:\n"
        "- {id: a, goal: g, workspace: src, model: openai/x, tools: ['mytools:search']}\n"
        "- {id: b, goal: g, workspace: src, model: other, tools: ['mytools:fetch']}\n"
    ) == (
        "jobs.yaml:3: limits.models['opnai/*']: matches no model of the jobs; they have"
        " 'openai/x', 'other'\n"
        "jobs.yaml:6: limits.tools['mytools:serch']: no job has this tool; they have"
        " 'mytools:search', 'mytools:fetch'"
    )


def test_a_limit_of_no_model_bounds_nothing(refuse: Refuse) -> None:
    """'none' in place of a model of summaries is no model of the job."""
    assert refuse(
        "limits: {models: {none: {concurrent: 1}, cheap: {concurrent: 1}}}\n"
        "defaults: {workspace: src, model: openai/x}\n"
        "jobs:\n"
        "- {id: a, goal: g, summary_model: none}\n"
        "- {id: b, goal: g, summary_model: cheap}\n"
    ) == (
        "jobs.yaml:1: limits.models.none: matches no model of the jobs; they have 'openai/x',"
        " 'cheap'"
    )


def test_limits_that_no_job_is_under_among_many(refuse: Refuse) -> None:
    """Of many models the first are named; without tools there are none."""
    jobs = [f"- {{id: j{n}, goal: g, workspace: src, model: m{n}}}\n" for n in range(30)]
    head = "limits: {models: {x: {concurrent: 1}}, tools: {'a:b': {concurrent: 1}}}\njobs:\n"
    models = ", ".join(f"'m{n}'" for n in range(8))
    assert refuse(head + "".join(jobs)).splitlines() == [
        f"jobs.yaml:1: limits.models.x: matches no model of the jobs; they have {models}, others",
        "jobs.yaml:1: limits.tools['a:b']: no job has this tool; they have none",
    ]


def test_no_command_has_a_nul_character(refuse: Refuse) -> None:
    """The system takes none: a job would begin, and nobody be told of an end."""
    text = (
        'on_finish: {command: "a\\0b"}\njobs:\n- id: a\n  goal: g\n  model: x\n'
        '  workspace: {setup: "a\\0b"}\n  mcp: {docs: {command: [cat, "\\0"]}}\n'
    )
    told = "expected a command without NUL characters, got"
    assert refuse(text).splitlines() == [
        f"jobs.yaml:1: on_finish.command: {told} 'a\\x00b'",
        f"jobs.yaml:6: jobs[0].workspace.setup: {told} 'a\\x00b'",
        f"jobs.yaml:7: jobs[0].mcp.docs.command[1]: {told} '\\x00'",
    ]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("4", "model: expected a model's name or a mapping with its name, got 4"),
        ("{api_base: 'http://x'}", "model.name: required key is missing"),
        (
            "{name: x, price: {input: 1.0e+308, output: 1}}",
            "model.price.input: expected a number of at most 1000000000000, got 1e+308",
        ),
        (
            "{name: x, price: }",
            "model.price: expected a value, got nothing; leave the key out instead",
        ),
        ("{nam: x}", "model.name: required key is missing"),
        ("{name: x, timeout: -1}", "model.timeout: expected seconds above 0, got -1"),
        ("{name: x, timeout: 10m}", "model.timeout: expected seconds above 0, got '10m'"),
        ("{name: x, connect: null}", "model.connect: expected seconds above 0, got nothing"),
        ("{name: x, stall: true}", "model.stall: expected seconds above 0, got true"),
        ("{name: ' x'}", "model.name: expected a model's name without spaces around it, got ' x'"),
        (
            "{name: x, messages: []}",
            "model.messages: not an option of a jobs file; Holdfast sets it",
        ),
        (
            "{name: x, extra_body: {n: 8}}",
            "model.extra_body.n: not for the body of a request; Holdfast sets it",
        ),
        (
            "{name: x, extra_body: {max_tokens: 9000}}",
            (
                "model.extra_body.max_tokens: not for the body of a request; write it beside"
                " 'extra_body'"
            ),
        ),
        (
            "{name: x, model: y}",
            "model.model: not an option of a jobs file; it is called 'name' here",
        ),
        (
            "{name: x, api_base: localhost}",
            "model.api_base: expected an http(s) URL, got 'localhost'",
        ),
        (
            "{name: x, api_base: 'http://me:pw@h/'}",
            "model.api_base: expected no credentials in the URL",
        ),
        (
            "{name: x, api_base: 'https://h/v1?token=0123'}",
            (
                "model.api_base: expected no secret in the URL; set the provider's environment"
                " variable instead, such as OPENAI_API_KEY"
            ),
        ),
        (
            "{name: x, extra_headers: {X-Own: sk-proj-0aA1bB2cC3dD4eE5fF6g}}",
            (
                "model.extra_headers.X-Own: this looks like a key: set the provider's environment"
                " variable instead, such as OPENAI_API_KEY"
            ),
        ),
        (
            "{name: x, extra_headers: {X-Corp-Pass: hunter2hunter2}}",
            (
                "model.extra_headers.X-Corp-Pass: the value may be a secret: put it into an"
                " environment variable of the worker, and write X-Corp-Pass: $NAME"
            ),
        ),
        *(
            (
                f"{{name: x, extra_headers: {{X-Corp: '{value}'}}}}",
                "model.extra_headers.X-Corp: the value may be a secret: put it into an"
                " environment variable of the worker, and write X-Corp: $NAME",
            )
            for value in ("$CORP}", "${CORP")
        ),
        *(
            (
                f"{{name: x, extra_headers: {{{header}: '{value}'}}}}",
                f"model.extra_headers.{header}: no header takes {value}: variables of Holdfast and"
                " AWS stay with the worker",
            )
            for header, value in (("X-Own", "$HOLDFAST_KEY"), ("X-Title", "${AWS_SESSION_TOKEN}"))
        ),
        ("{name: x, api_base: 'http://[::1'}", f"model.api_base: {NO_HOST}"),
        (f"{{name: x, seed: {HUGE}}}", f"model.seed: {TOO_MANY_DIGITS}"),
        ("{name: x, base_url: 'me:pw@h'}", "model.base_url: expected no credentials in the URL"),
        ("{name: x, top_p: .nan}", "model: expected JSON values, got a number that is not finite"),
    ],
)
def test_a_wrong_model(refuse: Refuse, model: str, message: str) -> None:
    """A model is a name, or a mapping with a name and options for litellm."""
    told = refuse(f"jobs:\n- id: a\n  goal: g\n  workspace: src\n  model: {model}\n")
    assert told == f"jobs.yaml:5: jobs[0].{message}"


def test_a_models_times_are_those_that_a_call_has() -> None:
    """They are bounded in both places, and null in one is null in the other."""
    bounded = {name: field for name, field in ModelOptions.model_fields.items() if field.metadata}
    taken = {name: type(None) in get_args(field.annotation) for name, field in bounded.items()}
    assert taken == _TIMES


def test_a_missing_script(refuse: Refuse, place: Path) -> None:
    """The script of a scripted model has to be there."""
    told = refuse("jobs:\n- {id: a, goal: g, workspace: src, model: scripted/no.py}\n")
    assert (
        told
        == "jobs.yaml:2: jobs[0].model: expected the file of a script, got 'no.py', which is none"
    )


@pytest.mark.parametrize(
    "key",
    [
        "api_key",
        "API-KEY",
        "aws_secret_access_key",
        "azure_ad_token",
        "password",
        "vertex_credentials",
    ],
)
@pytest.mark.parametrize(
    "inside", ["{{name: x, {key}: S3CRET}}", "{{name: x, extra_headers: {{{key}: S3CRET}}}}"]
)
def test_a_secret_is_refused_and_not_repeated(refuse: Refuse, key: str, inside: str) -> None:
    """A secret in a model's options, also one that no job uses, is an error that names the way out,
    not the value.
    """
    text = f"defaults:\n  model: {inside.format(key=key)}\njobs:\n- {{{GOOD}}}\n"
    told = refuse(text)
    assert told.startswith("jobs.yaml:2: defaults.model.")
    assert told.endswith(
        "secrets do not belong in a jobs file; set the provider's environment variable instead,"
        " such as OPENAI_API_KEY"
    )
    assert "S3CRET" not in told


@pytest.mark.parametrize(
    "header",
    [
        "X-Corp-Pass: $CORP_PASS",
        "Authorization: '${CORP_PASS}'",
        "X-Title: A title",
        "User-Agent: us",
    ],
)
def test_headers_that_may_stand_in_a_file(load: Callable[..., object], header: str) -> None:
    """The name of a variable, whatever the header's own, and headers that hold no secret."""
    load(
        "jobs: [{id: a, goal: g, workspace: src, model: {name: x, extra_headers: {"
        f"{header}}}}}}}]"
    )


def test_counts_of_tokens_are_no_secrets(load: Callable[..., object]) -> None:
    """``max_tokens`` and its like are ordinary options."""
    load(
        "jobs: [{id: a, goal: g, workspace: src, model: {name: x, max_tokens: 5,"
        " max_completion_tokens: 6}}]"
    )


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{type: objet}", "expected a JSON Schema: type: 'objet' is not valid under any of the given schemas"),
        ("{required: files}", "expected a JSON Schema: required: 'files' is not of type 'array'"),
        ("{properties: {a: {minimum: x}}}", "expected a JSON Schema: properties.a.minimum: 'x' is not of type 'number'"),
        ("{pattern: '('}", "expected a JSON Schema: pattern: '(' is not a 'regex'"),
        ("{$ref: '#/$defs/no'}", "expected a JSON Schema: $ref '#/$defs/no' leads to nothing in the schema itself"),
        ("{$ref: 'http://x/y'}", "expected a JSON Schema: $ref 'http://x/y' leads to nothing in the schema itself"),
        ("{$ref: '#'}", "expected a JSON Schema: it leads back to itself by $ref '#', with no step into the value"),
        ("{properties: {const: {$ref: 'file:///x'}}}", "expected a JSON Schema: $ref 'file:///x' leads to nothing in the schema itself"),
        ("{unevaluatedItems: false}", "expected a JSON Schema without unevaluatedItems: use items"),
    ],
)  # fmt: skip
def test_a_schema_that_is_none(refuse: Refuse, schema: str, message: str) -> None:
    """A result schema is checked against its dialect, and may not need a network."""
    told = refuse(f"jobs:\n- id: a\n  goal: g\n  workspace: src\n  model: x\n  result: {schema}\n")
    assert told == f"jobs.yaml:6: jobs[0].result: {message}"


def test_schemas_that_refer_to_themselves_are_fine(load: Callable[..., object]) -> None:
    """Pointers, anchors and older dialects work; a property called ``enum`` hides nothing."""
    for schema in (
        "{$defs: {n: {type: object, properties: {next: {$ref: '#/$defs/n'}}}}, $ref: '#/$defs/n'}",
        "{$defs: {n: {$anchor: here}}, $ref: '#here'}",
        (
            "{$schema: 'http://json-schema.org/draft-07/schema#', definitions: {n: {}}, $ref:"
            " '#/definitions/n'}"
        ),
        "{enum: [{$ref: 'plain data'}]}",
    ):
        load(f"jobs: [{{id: a, goal: g, workspace: src, model: x, result: {schema}}}]")


def test_duplicate_ids(refuse: Refuse) -> None:
    """The second use of an id is the wrong one, and says where the first is."""
    told = refuse(f"jobs:\n- {{{GOOD}}}\n- {{{GOOD}}}\n")
    assert told == "jobs.yaml:3: jobs[1].id: expected a unique id, got 'a' as on line 2"


def test_duplicate_keys(refuse: Refuse) -> None:
    """A key that comes twice in a mapping is an error, at any depth."""
    told = refuse(
        "jobs:\n- id: a\n  goal: g\n  workspace: src\n  model: x\n  budget:\n    turns: 1\n   "
        " turns: 2\n"
    )
    assert told == "jobs.yaml:8: jobs[0].budget.turns: expected each key once, got it on line 7 too"


def test_two_merged_mappings(refuse: Refuse, load: Callable[..., object]) -> None:
    """Several mappings are merged as a list, of which the earlier one wins."""
    one, other = "<<: {model: x}", "<<: {model: y, form: tool}"
    job = "jobs:\n- id: a\n  goal: g\n  workspace: src\n"
    assert (
        refuse(f"{job}  {one}\n  {other}\n")
        == "jobs.yaml:6: jobs[0]['<<']: expected each key once, got it on line 5 too"
    )
    load(f"{job}  <<: [{{model: x}}, {{model: y, form: tool}}]\n")


def test_several_problems_are_one_error(refuse: Refuse) -> None:
    """Every problem is told in full, a line each, by line."""
    told = refuse(
        "jobs:\n- id: a\n  goal: g\n  workspace: no\n  model: x\n  tools: ['no_such_module:f',"
        " 'mytools:untyped']\n  budget: {turns: x}\n- id: b\n  goal: g\n  workspace: no\n  model:"
        " {name: x, api_key: y}\n  tools: ['mytools:nope']\n"
    )
    first, *others = told.splitlines()
    assert first == "jobs.yaml:7: jobs[0].budget.turns: expected a whole number, got 'x'"
    assert [line.split(": ")[:2] for line in others] == [
        ["jobs.yaml:10", "jobs[1].workspace"],
        ["jobs.yaml:11", "jobs[1].model.api_key"],
        ["jobs.yaml:12", "jobs[1].tools[0]"],
    ]


def test_a_wrong_default_is_told_once(refuse: Refuse) -> None:
    """A default that all jobs inherit is one problem, where it is written."""
    jobs = "".join(f"- {{id: j{i}, goal: g}}\n" for i in range(5))
    told = refuse(f"defaults:\n  model: x\n  workspace: no\njobs:\n{jobs}")
    assert told == "jobs.yaml:3: defaults.workspace: expected a directory, got 'no', which is none"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "expected one JSON object a line: Expecting property name enclosed in double quotes at column 2"),
        ("null", "expected a mapping, got nothing"),
        ("[1]", "expected a mapping, got a list"),
        ('{"id": "b", "id": "c", "goal": "g", "workspace": "src", "model": "x"}', "id: expected each key once in a mapping"),
        ('{"id": NaN}', "expected one JSON object a line: NaN is no JSON number"),
        ('{"id": "b", "goal": "g", "workspace": "src", "model": "x", "budget": {"wall": "soon"}}',
         "budget.wall: expected a duration such as 6h or 90m, at most ten years, got 'soon'"),
        (f'{{"id": "b", "goal": "g", "workspace": "src", "model": {{"name": "x", "seed": {10**300}}}}}',
         f"model.seed: {TOO_MANY_DIGITS}"),
        ('{"id": "b", "goal": "\\ud800", "workspace": "src", "model": "x"}', "goal: expected Unicode text, got '\\ud800'"),
    ],
)  # fmt: skip
def test_a_wrong_line_of_jsonl(refuse: Refuse, line: str, message: str) -> None:
    """In JSONL the line says which job it is, and the key is the job's own."""
    good = '{"id": "a", "goal": "g", "workspace": "src", "model": "x"}\n'
    told = refuse(f"{good}\n{line}\n", "jobs.jsonl")
    assert told.startswith(f"jobs.jsonl:3: {message}")


def test_a_stem_that_is_no_name(refuse: Refuse) -> None:
    """A file whose name cannot be the batch's has to say what the batch is called."""
    told = refuse(f"jobs: [{{{GOOD}}}]\n", "my jobs.yaml")
    assert (
        told == f"my jobs.yaml:1: batch: expected a name ({NAMES}), got the file's stem 'my jobs'; "
        "give 'batch' or rename the file"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "jobs: [1\n",
            (
                "2: bad YAML: expected ',' or ']', but got '<stream end>' while parsing a flow"
                " sequence that begins on line 1"
            ),
        ),
        ("a: 1\njobs: b: c\n", "2: bad YAML: mapping values are not allowed here"),
        ("a: 1\nb: *q\n", "2: bad YAML: found undefined alias 'q'"),
        ("a: 1\n---\nb: 2\n", "2: bad YAML: but found another document"),
        (
            "a: 1\nb: \x00\n",
            "2: bad YAML: unacceptable character #x0000: special characters are not allowed",
        ),
        ('a: 1\nb: "\\U0001F600 \\U00110000"\n', r"2: bad YAML: there is no character \U00110000"),
        ('a: 1\nb: "\\UFFFFFFFF"\n', r"2: bad YAML: there is no character \UFFFFFFFF"),
        (b"a: 1\nb: \xff\n", "2: expected UTF-8, got the byte 0xff"),
    ],
)
def test_bad_text(refuse: Refuse, text: str | bytes, message: str) -> None:
    """What is no YAML or no UTF-8 is told with its line."""
    assert refuse(text) == f"jobs.yaml:{message}"


def test_no_file(place: Path) -> None:
    """A file that is not there, a directory, a pipe and a TOML file are no jobs files."""
    (place / "jobs.toml").write_text('[[jobs]]\nid = "a"\n')
    for path, message in (
        (place / "jobs.toml", "expected a jobs file in YAML or JSONL, got one named .toml"),
        (place / "no.yaml", "no such jobs file"),
        (place / "src", "expected a jobs file, got a directory"),
        (Path("/dev/null"), "expected a jobs file, got something that is no regular file"),
    ):
        with pytest.raises(InputError) as caught:
            load_jobs_file(path)
        assert str(caught.value) == f"{path}: {message}"
        assert caught.value.exit_code == 2
