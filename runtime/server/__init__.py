"""The Temporal server: the embedded one, and connections to any."""
