"""The Temporal server: the embedded one, connections to any, and signed payloads."""
