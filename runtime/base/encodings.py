"""The encodings of tiktoken that count tokens, by name: whoever reads an order need not import
tiktoken.
"""

from __future__ import annotations

DEFAULT_ENCODING = "cl100k_base"
"""The encoding of a job that names none; litellm ships it."""

FILES = {
    "cl100k_base": "cl100k_base",
    "o200k_base": "o200k_base",
    "o200k_harmony": "o200k_base",
    "p50k_base": "p50k_base",
    "p50k_edit": "p50k_base",
    "r50k_base": "r50k_base",
}
"""The file that each is made from."""
