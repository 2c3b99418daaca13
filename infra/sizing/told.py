"""The report for people, in Markdown: it is also what ``docs/capacity.md`` shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from infra.sizing.dollars import month
from infra.sizing.limits import Limit, limits
from infra.sizing.model import Need
from infra.sizing.prices import DEFAULTS

_UNITS = ("", "k", "M", "G", "T", "P")


def amount(value: float) -> str:
    """A number with three digits that count, such as ``1.23 M``."""
    size = 0
    # What three digits would round up to 1,000 is told as 1.00 of the next unit.
    while abs(value) >= 999.5 and size < len(_UNITS) - 1:
        value, size = value / 1000, size + 1
    digits = 0 if value >= 99.95 or value == int(value) else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f} {_UNITS[size]}".strip()


def report(need: Need, prices: Mapping[str, float], tokens: float | None) -> str:
    """All three tables of one load."""
    return "\n\n".join(
        [needs([need]), costs([need], prices), breaking(need, tokens), sources(prices)]
    )


def needs(several: Sequence[Need]) -> str:
    """What each load needs, side by side."""
    rows = [
        ("jobs a day", [one.load.jobs_per_day for one in several]),
        ("turns a day", [one.turns_a_day for one in several]),
        ("tokens of prompts a day", [one.prompt_tokens_a_day for one in several]),
        ("Temporal Actions of a job", [one.job.actions for one in several]),
        ("of them heartbeats", [one.job.heartbeats for one in several]),
        ("Temporal Actions a day", [one.actions_a_day for one in several]),
        ("Actions a second, busiest hour", [one.actions_a_second for one in several]),
        ("bytes of histories of a job", [one.job.history_bytes for one in several]),
        ("bytes of histories that are kept", [one.database_bytes for one in several]),
        ("S3 PUT and LIST a day", [one.s3_writes_a_day for one in several]),
        ("S3 GET a day", [one.s3_reads_a_day for one in several]),
        ("bytes in the archive of a job", [one.job.archive_bytes for one in several]),
        ("bytes in the archive, in the end", [one.archive_bytes for one in several]),
        ("jobs open, busiest hour", [one.open_jobs for one in several]),
        ("model calls at a time", [one.calls_at_a_time for one in several]),
        ("cores that workers keep busy", [one.worker_cores for one in several]),
        ("worker processes", [one.worker_processes for one in several]),
        ("bytes of their memory", [one.worker_bytes for one in several]),
    ]
    heads = ["", *(f"{one.load.jobs_per_day:,.0f} jobs a day" for one in several)]
    return _table(heads, [[name, *map(amount, values)] for name, values in rows])


def costs(several: Sequence[Need], prices: Mapping[str, float]) -> str:
    """Dollars a month, side by side; what has no price says so."""
    months = [month(need, prices) for need in several]
    heads = ["dollars a month", *(f"{one.load.jobs_per_day:,.0f} jobs a day" for one in several)]
    told = [
        [items[0].name, *("not counted" if i.usd is None else f"${i.usd:,.0f}" for i in items)]
        for items in zip(*months, strict=True)
    ]
    return _table(heads, told)


def breaking(need: Need, tokens: float | None = None) -> str:
    """What breaks, the first in front."""
    told = [
        [one.name, amount(one.needed), _there(one), _used(one), one.then]
        for one in limits(need, tokens)
    ]
    heads = ["limit", "needed", "there is", "used", "when it is reached"]
    return _table(heads, told)


def sources(prices: Mapping[str, float]) -> str:
    """Each price, and where it is from."""
    told = []
    for name, price in DEFAULTS.items():
        usd = prices.get(name, price.usd)
        source = "given" if name in prices else price.source
        shown = f"${usd:.7f}".rstrip("0").rstrip(".") if usd is not None else ""
        told.append([f"`{name}`", shown, price.unit, source])
    return _table(["price", "dollars", "for one", "source"], told)


def _there(one: Limit) -> str:
    return "yours" if one.there_is is None else amount(one.there_is)


def _used(one: Limit) -> str:
    if one.used is None:
        return "?"
    return f"{one.used:.0%}" if one.used < 10 else f"{one.used:,.0f} times"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] + ["--:"] * (len(heads) - 1), *rows]
    if len(heads) > 3:
        lines[1] = ["---"] * len(heads)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
