"""How the benchmarks start a Temporal dev server: without the limit of its own on how fast one job goes (FACTS.md)."""

FAST = [
    *("--dynamic-config-value", "history.transferProcessorMaxPollRPS=5000"),
    *("--dynamic-config-value", "history.timerProcessorMaxPollRPS=5000"),
    *("--dynamic-config-value", "history.visibilityProcessorMaxPollRPS=5000"),
]
