"""How a job stands that has not ended, where jobs are listed."""

OPEN = "open"
