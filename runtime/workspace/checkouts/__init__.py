"""Versions of workspaces as directories of this host: taken in, laid out, and taken back in."""
