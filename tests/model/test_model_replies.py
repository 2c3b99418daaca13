"""The model's answer: a statement, a text, both, or a problem that is named exactly."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.base.values import ToolCall
from runtime.projection.replies import ParsedReply, parse_reply

DIGITS = "9" * 5_000
"""More than Python reads as a number."""

OPEN, CLOSE = '<script type="text/x-python">', "</script>"


def call(code: object = "x = 1", *, id: str = "call_1", name: str = "python") -> ToolCall:
    return ToolCall(id=id, name=name, arguments=json.dumps({"code": code}))


def parse(
    text: str = "",
    *calls: ToolCall,
    reason: str = "stop",
    refusal: str | None = None,
    form: str = "tool",
) -> ParsedReply:
    return parse_reply(text, calls, reason, refusal, form)


def test_a_native_call_is_a_statement() -> None:
    """One call of `python` with `code` gives the statement, its id, and the text beside it."""
    assert parse("Looking.", call()) == ParsedReply("x = 1", "call_1", "Looking.", None)


@pytest.mark.parametrize("form", ["tool", "script"])
def test_a_script_block_is_a_statement(form: str) -> None:
    """One block gives the statement in either form, and the text around it."""
    reply = parse(f"Before.\n{OPEN}\nx = 1\ny = 2\n{CLOSE}\nAfter.", form=form)
    assert reply == ParsedReply("x = 1\ny = 2", None, "Before.\n\nAfter.", None)


def test_a_block_on_one_line() -> None:
    """Tags and source may share a line."""
    assert parse(f"{OPEN}x = 1{CLOSE}").statement == "x = 1"


def test_a_block_may_hold_its_closing_tag_in_a_string() -> None:
    """The closing tag on a line of its own ends the block, not one within a line."""
    source = 'html = "<b></script>"\nprint(html)'
    assert parse(f"{OPEN}\n{source}\n{CLOSE}").statement == source


def test_an_indented_block_is_dedented() -> None:
    """An indentation that all lines of a block share is no part of the statement."""
    assert parse(f"{OPEN}\n    if a:\n        b()\n    {CLOSE}").statement == "if a:\n    b()"


def test_a_text_alone_is_a_user_facing_reply() -> None:
    """A text without a statement is no problem here; the caller decides whether the job goes on."""
    assert parse("All done.") == ParsedReply(None, None, "All done.", None)


def test_an_unrelated_mention_of_the_tag_beside_a_native_call_is_text() -> None:
    """With a native call, a tag that is only spoken of does not matter."""
    assert parse(f"I removed the <script> tag; no `{OPEN}` left.", call()).statement == "x = 1"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (parse(""), "Your reply was empty."),
        (parse(" \n"), "Your reply was empty."),
        (parse(f"Hm {OPEN}\nx = 1"), "Your script block is not closed by </script>"),
        (parse(f"x = 1\n{CLOSE}"), "Your script block is broken: the tag is </script>."),
        (parse(f"<script>\nx\n{CLOSE}"), "Your script block is broken: the tag is <script>."),
        (parse(f"{OPEN}\n\n{CLOSE}"), "Your script block is empty"),
        (parse(f"{OPEN}a{CLOSE}{OPEN}b{CLOSE}"), "Your reply has 2 script blocks"),
        (parse(f"{OPEN}a{CLOSE}\n{OPEN}b"), "Your script block is not closed"),
        (parse("", call(), call(id="call_2")), "Your reply has 2 tool calls"),
        (parse(f"{OPEN}a{CLOSE}", call()), "Your reply has 1 tool call and 1 script block"),
        (parse("", call(name="bash")), "There is no tool `bash` to call natively."),
        (
            parse("", ToolCall(id="c", name="python", arguments='{"code": "x')),
            "are not valid JSON (Unterminated",
        ),
        (
            parse("", ToolCall(id="c", name="python", arguments="[" * 100_000)),
            "are not valid JSON (it is nested",
        ),
        (
            parse("", ToolCall(id="c", name="python", arguments=f'{{"code": {DIGITS}}}')),
            "are not valid JSON (a number in it has more digits",
        ),
        (
            parse("", ToolCall(id="c", name="python", arguments='{"src": "x"}')),
            "Your call's arguments are `src`",
        ),
        (
            parse("", ToolCall(id="c", name="python", arguments="[1]")),
            "are not an object with one key",
        ),
        (parse("", call(7)), "argument `code` is not a string"),
        (parse("", call(" \n")), "argument `code` is empty"),
        (parse("", call(), reason="length"), "cut off by the token limit"),
        (parse(f"{OPEN}x = 1", reason="length", form="script"), "cut off by the token limit"),
        (parse("", refusal="I cannot help with that."), "You refused: I cannot help with that."),
        (parse("", reason="content_filter"), "stopped by the provider (content_filter)"),
    ],
)
def test_a_problem_is_named(reply: ParsedReply, words: str) -> None:
    """Each thing that can be wrong with a reply gets its own words, and nothing is executed."""
    assert reply.statement is None
    assert reply.problem is not None
    assert words in reply.problem


@pytest.mark.parametrize("depth", [900, 5_000, 20_000])
def test_how_deep_arguments_may_nest_depends_on_no_python(depth: int) -> None:
    """Pythons read from less than 1,000 levels to tens of thousands, and a replay by another has to
    come to the same.
    """
    arguments = f'{{"code": "1", "a": {"[" * depth}1{"]" * depth}}}'
    problem = parse("", ToolCall(id="c", name="python", arguments=arguments)).problem
    assert problem is not None
    assert "are not valid JSON (it is nested too deeply)" in problem


def test_brackets_in_a_statement_are_no_nesting() -> None:
    """Nor are those of lists beside each other."""
    source = 'x = "' + "[{" * 5_000 + '\\"[" * 2 + "['
    assert parse("", call(source)).statement == source
    beside = '{"code": "1", "a": [' + "[], " * 5_000 + "1]}"
    problem = parse("", ToolCall(id="c", name="python", arguments=beside)).problem
    assert problem is not None
    assert problem.startswith("Your call's arguments are `code`, `a`,")


def test_what_is_wrong_with_a_long_call_is_told_at_once() -> None:
    """Brackets in a text that is no JSON are no nesting either, and it is not looked through."""
    source = "[" * 900 + '\\"' * 100_000 + "\\d"
    arguments = f'{{"code": "{source}"}}'
    problem = parse("", ToolCall(id="c", name="python", arguments=arguments)).problem
    assert problem is not None
    assert f"(Invalid \\escape at character {len(arguments) - 4})" in problem


def test_a_problem_keeps_the_call_id() -> None:
    """The result that providers demand for every call can carry the problem."""
    assert parse("", call(name="bash", id="call_9")).tool_call_id == "call_9"


def test_the_problem_tells_how_in_the_form_that_was_asked_for() -> None:
    """What to do is said in the job's form."""
    assert "Call the tool `python` once" in (parse("").problem or "")
    assert OPEN in (parse("", form="script").problem or "")


@given(st.text(max_size=60), st.text(alphabet='<>/script type="text/x-python"\n`a', max_size=80))
def test_any_text_is_read(head: str, tail: str) -> None:
    """No text raises, and a reply is a statement, a text or a problem."""
    reply = parse(head + OPEN + tail)
    assert reply.statement or reply.problem or reply.user_text
