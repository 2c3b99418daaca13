"""A tool of the quickstart: an ordinary typed function. Each call becomes an activity."""

import ast


def subclasses(source: str, root: str) -> dict[str, int | None]:
    """The classes in a Python source that derive from ``root``, with the ``exit_code`` that each
    has.
    """
    codes: dict[str, int | None] = {root: None}
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef):
            continue
        bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
        if node.name != root and not any(base in codes for base in bases):
            continue
        inherited = next((codes[base] for base in bases if base in codes), None)
        codes[node.name] = _exit_code(node, inherited)
    return codes


def _exit_code(node: ast.ClassDef, inherited: int | None) -> int | None:
    for statement in node.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
            if names == ["exit_code"] and isinstance(statement.value.value, int):
                return statement.value.value
    return inherited
