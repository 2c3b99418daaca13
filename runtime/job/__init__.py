"""A job as a plain state machine: ingest, tick, project, receive, execute, record.

Pure; the workflow drives it.
"""
