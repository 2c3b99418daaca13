"""The jobs file, from text to resolved values."""
