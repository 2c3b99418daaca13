"""The most that a jobs file may hold of each thing: jobs, bytes, items of lists."""

from __future__ import annotations

# What a job is goes through a workflow's input, where a payload may have 2 MiB: all is bounded.
MAX_GOAL_BYTES = 256 * 1024
MAX_JOBS = 1_000_000
MAX_TOOLS = 64
# More than anybody needs, and less than the 2**53 up to which every reader of JSON is exact.
MAX_COUNT = 10**12
# A call in a hundred minutes. What is far less would be none for ever.
LEAST_RATE = 0.01
MAX_REDACTIONS = 64
MAX_PATTERNS = 256
MAX_SETUP = 16 * 1024
MAX_URLS = 64
MAX_LIMITS = 64
MAX_OPTION_BYTES = 64 * 1024
