"""Whether all that a worker needs is there: each thing is tried, and told of in one line."""
