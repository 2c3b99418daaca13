"""The value of a statement's last expression, as text."""

from runtime.interpreter.echo import text_of


class Newer:
    """A value of which a newer Python's ``repr`` shows a character that 3.11 does not know."""

    def __repr__(self) -> str:
        return "'\U0001fae8 é'"


def test_a_newer_character_is_shown_as_on_the_oldest_python() -> None:
    """Within other values too."""
    assert text_of({"é": [Newer(), ("\U0001fae8",)]}) == (
        "{'é': ['\\U0001fae8 é', ('\\U0001fae8',)]}"
    )
