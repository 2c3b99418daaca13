"""Temporal workflows: deterministic orchestration of jobs and batches, with no I/O."""
