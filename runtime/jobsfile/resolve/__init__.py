"""Filling in what a checked jobs file leaves out, and checking what it names: directories, scripts,
tools, schemas.

``resolver``: the jobs. ``header``: what the file says beside its jobs. ``merged``: parts of a job
to which its own keys and the defaults' add up. ``approvals``, ``condensers``, ``models``,
``servers``, ``tools``, ``workspace``: parts that are the job's own, or else the defaults'.
``options`` of models, and ``urls``: what may not stand in a file, secrets above all. ``disk``: what
paths lead to.
"""
