"""What a source's outline consists of, by kind of file: symbols, headings or keys, each with its line.

A first form (issue 6 widens it): Python through ``ast``, headings of Markdown and reStructuredText, keys of JSON, YAML,
TOML and INI, and for everything else lines that look like definitions. Broken sources are read by their lines;
nothing here raises on any input.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

MAX_ITEMS = 5_000
"""The most items of one outline."""

MAX_LEVEL = 4
"""Items deeper than this stand at this depth."""

ITEM_CHARS = 200
"""The most characters of one item's text or doc."""

_DEFINITION = re.compile(
    r"\s{0,12}(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\([a-z]{1,9}\))?"
    r"|unsafe|extern|virtual|override|sealed|partial|declare|inline|const)\s+){0,6}"
    r"(?:class|interface|struct|enum|trait|impl|fn|func|function|def|module|namespace|type|record|protocol|object"
    r"|macro_rules!|package|union)\b\s*[\w$(<*]"
)
_C_FUNCTION = re.compile(r"[A-Za-z_][\w:<>,*&~\[\] ]{0,120}\([^;]{0,160}$")
_CONTROL = re.compile(r"\s*(?:if|for|while|switch|return|else|catch|do|elif|except|with|print)\b")
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(\S.*)")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_SETEXT = re.compile(r" {0,3}(=+|-+)\s*$")
_UNDERLINE = re.compile(r"([=\-`:.'\"~^_*+#<>!$%&(),/;?@\[\\\]{|}])\1{2,}\s*$")
_KEY = re.compile(r"( {0,8})(?:- )?([\w.\-/]{1,80}|\"[^\"]{1,80}\"|'[^']{1,80}')\s*[:=](?:\s|$)")
_SECTION = re.compile(r"\[{1,2}[^\[\]]{1,120}\]{1,2}\s*(?:[#;].*)?$")
_JSON_KEY = re.compile(r"(\s{0,8})\"([^\"]{1,80})\"\s*:\s*(.*)$")


@dataclass(frozen=True)
class Item:
    """One entry: its 0-based line, its depth from 0, its text on one line, and the first line of its documentation."""

    line: int
    level: int
    text: str
    doc: str = ""


def outline(text: str, suffix: str) -> tuple[Item, ...]:
    """The items of ``text``, whose lines end with ``\\n``, in order of their lines."""
    finder = _FINDERS.get(suffix, _definitions)
    try:
        found = _first(finder(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        found = ()
    return found or _first(_definitions(text))


def _first(items: Iterator[Item]) -> tuple[Item, ...]:
    taken = []
    for item in items:
        level = min(item.level, MAX_LEVEL)
        taken.append(Item(item.line, level, _one_line(item.text), _one_line(item.doc)))
        if len(taken) == MAX_ITEMS:
            break
    return tuple(taken)


def _one_line(text: str) -> str:
    flat = " ".join(text[: 4 * ITEM_CHARS].split())
    return flat if len(flat) <= ITEM_CHARS else flat[: ITEM_CHARS - 1] + "…"


def _python(text: str) -> Iterator[Item]:
    tree = ast.parse(text, filename="<workspace>")
    module_doc = _doc(tree)
    if module_doc:
        yield Item(0, 0, '"""module"""', module_doc)
    yield from _symbols(tree.body, 0)


def _symbols(body: Sequence[ast.stmt], level: int) -> Iterator[Item]:
    for node in body:
        match node:
            case ast.ClassDef():
                bases = ", ".join(ast.unparse(base) for base in (*node.bases, *node.keywords))
                yield Item(node.lineno - 1, level, f"class {node.name}{f'({bases})' if bases else ''}", _doc(node))
                yield from _symbols(node.body, level + 1)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                start = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
                returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
                signature = f"{start} {node.name}({ast.unparse(node.args)}){returns}"
                yield Item(node.lineno - 1, level, signature, _doc(node))
                yield from _symbols(node.body, level + 1)
            case ast.Assign(targets=[ast.Name(id=name)]) if level == 0:
                yield Item(node.lineno - 1, level, f"{name} = …")
            case ast.AnnAssign(target=ast.Name(id=name)) if level <= 1:
                yield Item(node.lineno - 1, level, f"{name}: {ast.unparse(node.annotation)}")
            case ast.If() | ast.Try():
                handlers = [stmt for handler in getattr(node, "handlers", ()) for stmt in handler.body]
                yield from _symbols([*node.body, *handlers, *node.orelse], level)
            case ast.With() | ast.AsyncWith():
                yield from _symbols(node.body, level)


def _doc(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    doc = ast.get_docstring(node, clean=False) or ""
    return doc.strip().split("\n", 1)[0]


def _markdown(text: str) -> Iterator[Item]:
    fence, before = "", ""
    for number, line in _lines(text):
        marker = _FENCE.match(line)
        if marker and (not fence or marker[1] == fence):
            fence = "" if fence else marker[1]
        elif not fence:
            heading, rule = _HEADING.match(line), _SETEXT.match(line)
            if heading:
                yield Item(number, len(heading[1]) - 1, heading[2].rstrip().rstrip("#"))
            elif rule and before.strip() and not before.lstrip().startswith(("-", "*", "+", ">", "|", "#")):
                yield Item(number - 1, 0 if rule[1][0] == "=" else 1, before)
        before = line


def _restructured(text: str) -> Iterator[Item]:
    levels: list[str] = []
    before = ""
    for number, line in _lines(text):
        title = before.strip()
        mark = _UNDERLINE.match(line)
        if mark and title and not _UNDERLINE.match(before) and len(line.rstrip()) >= len(title):
            if mark[1] not in levels:
                levels.append(mark[1])
            yield Item(number - 1, levels.index(mark[1]), title)
        before = line


def _json(text: str) -> Iterator[Item]:
    shallow = [match for _, line in _lines(text) if (match := _JSON_KEY.match(line))]
    indents = sorted({len(match[1]) for match in shallow})[:2]
    if len(shallow) > 1:
        for number, line in _lines(text):
            match = _JSON_KEY.match(line)
            if match and len(match[1]) in indents:
                yield Item(number, indents.index(len(match[1])), f"{match[2]}: {_abridged(match[3])}")
        return
    value = json.loads(text)
    if isinstance(value, dict):
        for key, member in value.items():
            yield Item(0, 0, f"{key}: {_shape(member)}")
    elif isinstance(value, list):
        yield Item(0, 0, _shape(value))


def _abridged(value: str) -> str:
    value = value.rstrip().rstrip(",")
    return value if len(value) <= 60 else value[:59] + "…"


def _shape(value: object) -> str:
    match value:
        case dict():
            return f"object with {len(value)} keys"
        case list():
            return f"array of {len(value)}"
        case _:
            return _abridged(json.dumps(value, ensure_ascii=False))


def _keys(text: str) -> Iterator[Item]:
    in_section = 0
    for number, line in _lines(text):
        if _SECTION.match(line):
            in_section = 1
            yield Item(number, 0, line)
            continue
        match = _KEY.match(line)
        if match and len(match[1]) <= 4:
            yield Item(number, in_section + len(match[1]) // 2, _abridged(line))


def _definitions(text: str) -> Iterator[Item]:
    for number, line in _lines(text):
        indent = len(line) - len(line.lstrip())
        if _DEFINITION.match(line) or (
            indent == 0 and _C_FUNCTION.match(line) and line.rstrip().endswith(("{", ")")) and not _CONTROL.match(line)
        ):
            yield Item(number, min(indent // 2, 3), line.rstrip().rstrip("{").rstrip())


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines, each short enough for the patterns here."""
    for number, line in enumerate(text.split("\n")):
        yield number, line[:300]


_FINDERS: dict[str, Callable[[str], Iterator[Item]]] = {
    ".py": _python,
    ".pyi": _python,
    ".md": _markdown,
    ".markdown": _markdown,
    ".rst": _restructured,
    ".json": _json,
    ".yaml": _keys,
    ".yml": _keys,
    ".toml": _keys,
    ".ini": _keys,
    ".cfg": _keys,
}
