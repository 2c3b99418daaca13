"""How large a fleet has to be: jobs, turns and tokens a day in; Actions, bytes, requests, workers
and dollars out, and what breaks first.

``python -m infra.capacity --jobs-per-day 10000 --turns 20 --prompt-tokens 20000 [--json]``

The model is fitted to counts that tests assert and to ``docs/benchmarks.md``
(``infra/sizing/counts.py``). Exit code 2 where an argument makes no sense.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import MISSING, asdict, fields
from typing import Any, NoReturn

from infra.sizing.dollars import known, month
from infra.sizing.limits import limits
from infra.sizing.load import Load, WrongLoad, option
from infra.sizing.model import Need
from infra.sizing.prices import DEFAULTS
from infra.sizing.told import report


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # One line, where argparse would print the usage in front of it.
        self.exit(2, f"error: {message}\n")


def main(arguments: Sequence[str]) -> int:
    """Print the report; the exit code."""
    parser = _parser()
    options = vars(parser.parse_args(arguments))
    prices, tokens = dict(options.pop("price") or ()), options.pop("provider_tokens_per_minute")
    as_json = options.pop("json")
    try:
        need = Need.of(Load(**options))
    except WrongLoad as error:
        parser.error(str(error))
    if as_json:
        sys.stdout.write(json.dumps(document(need, prices, tokens), indent=2) + "\n")
    else:
        sys.stdout.write(report(need, prices, tokens) + "\n")
    return 0


def document(need: Need, prices: dict[str, float], tokens: float | None) -> dict[str, Any]:
    """The report for a script."""
    return {
        **asdict(need),
        "usd_a_month": {item.name: item.usd for item in month(need, prices)},
        "limits": [{**asdict(one), "used": one.used} for one in limits(need, tokens)],
        "prices": {
            name: {
                **asdict(price),
                **({"usd": prices[name], "source": "given"} if name in prices else {}),
            }
            for name, price in DEFAULTS.items()
        },
    }


def _parser() -> argparse.ArgumentParser:
    # Neither a stack of usage lines nor an option that is meant for another.
    parser = _Parser(prog="python -m infra.capacity", allow_abbrev=False)
    for field in fields(Load):
        wanted = field.default is MISSING
        parser.add_argument(
            option(field.name),
            type=float,
            metavar="N",
            required=wanted,
            default=None if wanted else field.default,
            help="required" if wanted else f"default: {field.default:g}",
        )
    parser.add_argument("--provider-tokens-per-minute", type=_positive, metavar="N")
    parser.add_argument(
        "--price", action="append", type=_price, metavar="NAME=USD", help=f"one of {known()}"
    )
    parser.add_argument("--json", action="store_true")
    return parser


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    # "inf" and "nan" are numbers to ``float``.
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return value


def _price(text: str) -> tuple[str, float]:
    name, _, usd = text.partition("=")
    if name not in DEFAULTS:
        raise argparse.ArgumentTypeError(f"{name!r} is no price: expected one of {known()}")
    try:
        value = float(usd)
    except ValueError:
        value = -1.0
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"{name}: expected dollars, 0 or more, got {usd!r}")
    return name, value


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
