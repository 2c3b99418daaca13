"""What commands write: text for people, JSON for programs, raw bytes.

JSON is written in ASCII with escapes: exact for a program, and harmless on a terminal whatever a model wrote.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import typer

from runtime.cli.text import clean


def say(text: str) -> None:
    """Writes one or more lines to stdout, without terminal control sequences."""
    typer.echo(clean(text))


def note(text: str) -> None:
    """Writes one or more lines to stderr, without terminal control sequences."""
    typer.echo(clean(text), err=True)


def json_document(value: Any) -> None:
    """Writes ``value``, a JSON value, to stdout as one indented document."""
    typer.echo(json.dumps(value, indent=2))


def json_line(value: Any) -> None:
    """Writes ``value``, a JSON value, to stdout as one line, at once."""
    typer.echo(json.dumps(value))


def pretty(value: Any) -> str:
    """``value``, a JSON value, as indented text for people."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def raw(data: bytes) -> None:
    """Writes ``data`` to stdout as it is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
