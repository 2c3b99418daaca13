"""The patterns of texts in a jobs file, and what is expected of a text that does not fit one."""

from __future__ import annotations

TEMPLATE_PATTERN = r"\{[A-Za-z_]"
VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"
TARGET_PATTERN = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"
MODEL_PATTERN = r"^\S(.*\S)?$"
SERVER_PATTERN = r"^[A-Za-z][A-Za-z0-9_]{0,39}$"
URL_PATTERN = "^https?://"
COMMAND_PATTERN = r"^[^\x00]*$"
"""What the system takes for a program or an argument of one."""
RULES = {
    VARIABLE_PATTERN: (
        "the name of an environment variable (letters, digits and '_', no digit first), without '$'"
    ),
    TARGET_PATTERN: "a tool as 'module:function'",
    MODEL_PATTERN: "a model's name without spaces around it",
    SERVER_PATTERN: "a server's name (letters, digits and '_', a letter first, at most 40)",
    URL_PATTERN: "a URL that begins with http:// or https://",
    COMMAND_PATTERN: "a command without NUL characters",
}
"""What is expected of a text that does not fit a pattern."""
