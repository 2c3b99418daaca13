"""A job's files: calls on them, listings, walks."""
