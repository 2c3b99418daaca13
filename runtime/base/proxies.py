"""Which proxy the environment names, for what is fetched by a transport of our own."""

from __future__ import annotations

import urllib.request


def proxy_of(scheme: str, host: str) -> str | None:
    """The URL of the proxy for a host, as ``HTTPS_PROXY``, ``NO_PROXY`` and their like say it."""
    proxies = urllib.request.getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    if proxy is None or urllib.request.proxy_bypass(host):
        return None
    # It may be named without a scheme, as curl takes it.
    return proxy if "://" in proxy else f"http://{proxy}"
