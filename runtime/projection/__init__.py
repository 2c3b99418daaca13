"""Segments, token budgets and the layout of one prompt. Pure: no Temporal, no I/O."""
