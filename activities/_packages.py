"""Packages that some providers need and litellm does not bring along: a call that lacks one is not
made again.
"""

from __future__ import annotations

from activities._causes import causes_of

_PACKAGES = {
    "google": "google-auth",
    "vertexai": "google-cloud-aiplatform",
    "azure": "azure-identity",
    "ibm_watsonx_ai": "ibm-watsonx-ai",
    "yaml": "pyyaml",
}
"""Packages that are not called as their modules are."""


def package_of(module: str) -> str:
    """What to install for ``module``."""
    top = module.partition(".")[0]
    return _PACKAGES.get(top, top)


def package_missing(error: BaseException) -> str | None:
    """What to install, if ``error`` comes of a module that is not there; else None."""
    for cause in causes_of(error):
        if isinstance(cause, ImportError):
            module = (cause.name or "").partition(".")[0]
            if not module:
                return f"a package that this model needs is not installed: {cause}"
            return (
                f"this model needs the package {package_of(module)}, which is not installed where"
                f" the worker runs ({cause})"
            )
    return None
