"""Functions of the standard library as Python 3.11 computes them, on every Python.

Later ones sum otherwise, or take what that refuses: a job's record must not depend on which Python
its worker runs on.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from math import exp, fsum, log, sqrt
from operator import mul
from statistics import StatisticsError
from typing import Any
from urllib.parse import urlparse, uses_netloc, uses_relative

_USES_NETLOC = frozenset(uses_netloc) - {"itms-services"}
"""Schemes of URLs with a host. Python 3.12 has added one."""


def fmean(data: Sequence[Any], weights: Sequence[Any] | None = None) -> float:
    """The mean as a float."""
    if weights is None:
        total = fsum(data)
        if not data:
            raise StatisticsError("fmean requires at least one data point")
        return total / len(data)
    numerator = fsum(map(mul, data, weights))
    if len(data) != len(weights):
        raise StatisticsError("data and weights must be the same length")
    denominator = fsum(weights)
    if not denominator:
        raise StatisticsError("sum of weights must be non-zero")
    return numerator / denominator


def geometric_mean(data: Iterable[Any]) -> float:
    """The geometric mean of positive numbers."""
    try:
        return exp(fmean([log(one) for one in data]))
    except ValueError:
        raise StatisticsError(
            "geometric mean requires a non-empty dataset containing positive numbers"
        ) from None


def covariance(x: Sequence[Any], y: Sequence[Any], /) -> float:
    """The sample's covariance of two inputs."""
    _paired("covariance", x, y)
    x_off, y_off = _offsets(x), _offsets(y)
    return fsum(map(mul, x_off, y_off)) / (len(x) - 1)


def correlation(x: Sequence[Any], y: Sequence[Any], /) -> float:
    """Pearson's coefficient for two inputs."""
    _paired("correlation", x, y)
    x_off, y_off = _offsets(x), _offsets(y)
    both = fsum(map(mul, x_off, y_off))
    try:
        return both / sqrt(fsum(map(mul, x_off, x_off)) * fsum(map(mul, y_off, y_off)))
    except ZeroDivisionError:
        raise StatisticsError("at least one of the inputs is constant") from None


def _paired(name: str, x: Sequence[Any], y: Sequence[Any]) -> None:
    if len(y) != len(x):
        raise StatisticsError(f"{name} requires that both inputs have same number of data points")
    if len(x) < 2:
        raise StatisticsError(f"{name} requires at least two data points")


def _offsets(data: Sequence[Any]) -> list[float]:
    mean = fsum(data) / len(data)
    return [one - mean for one in data]


def quantiles(data: Iterable[Any], *, n: int = 4, method: str = "exclusive") -> list[Any]:
    """The cut points of ``n`` intervals of equal probability."""
    if n < 1:
        raise StatisticsError("n must be at least 1")
    ordered = sorted(data)
    size = len(ordered)
    if size < 2:
        raise StatisticsError("must have at least two data points")
    if method == "inclusive":
        places: Iterator[tuple[int, int]] = (divmod(i * (size - 1), n) for i in range(1, n))
        return [(ordered[j] * (n - d) + ordered[j + 1] * d) / n for j, d in places]
    if method == "exclusive":
        cuts = []
        for i in range(1, n):
            j = min(max(i * (size + 1) // n, 1), size - 1)
            d = i * (size + 1) - j * n
            cuts.append((ordered[j - 1] * (n - d) + ordered[j] * d) / n)
        return cuts
    raise ValueError(f"Unknown method: {method!r}")


def urlunparse(parts: Sequence[str]) -> str:
    """A URL of its six parts."""
    scheme, netloc, url, params, query, fragment = parts
    if params:
        url = f"{url};{params}"
    if netloc or (scheme and scheme in _USES_NETLOC and url[:2] != "//"):
        url = f"//{netloc or ''}{'/' if url and url[:1] != '/' else ''}{url}"
    url = f"{scheme}:{url}" if scheme else url
    url = f"{url}?{query}" if query else url
    return f"{url}#{fragment}" if fragment else url


def urljoin(base: str, url: str) -> str:
    """``url`` as it reads in a document at ``base``."""
    if not base or not url:
        return base or url
    within = urlparse(base)
    scheme, netloc, path, params, query, fragment = urlparse(url, within.scheme)
    if scheme != within.scheme or scheme not in uses_relative:
        return url
    if scheme in _USES_NETLOC:
        if netloc:
            return urlunparse((scheme, netloc, path, params, query, fragment))
        netloc = within.netloc
    if not path and not params:
        query = query or within.query
        return urlunparse((scheme, netloc, within.path, within.params, query, fragment))
    path = _joined(within.path, path)
    return urlunparse((scheme, netloc, path, params, query, fragment))


def _joined(base: str, path: str) -> str:
    segments = path.split("/")
    if path[:1] != "/":
        before = base.split("/")
        if before[-1] != "":
            del before[-1]
        segments = before + segments
        segments[1:-1] = filter(None, segments[1:-1])
    resolved: list[str] = []
    for segment in segments:
        if segment == "..":
            del resolved[-1:]
        elif segment != ".":
            resolved.append(segment)
    if segments[-1] in (".", ".."):
        resolved.append("")
    return "/".join(resolved) or "/"


def uuid3(namespace: str, name: str) -> str:
    """A UUID of a name, by MD5."""
    return str(uuid.uuid3(uuid.UUID(namespace), _text(name)))


def uuid5(namespace: str, name: str) -> str:
    """A UUID of a name, by SHA-1."""
    return str(uuid.uuid5(uuid.UUID(namespace), _text(name)))


def _text(name: str) -> str:
    # With the words of 3.11 for what is no text: later ones take bytes.
    return bytes(name, "utf-8").decode()
