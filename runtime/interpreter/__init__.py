"""Statements, executions, namespace diffs and the Monty session that runs them."""
