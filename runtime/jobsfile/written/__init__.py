"""A jobs file as it is written: the pydantic models that check it and give its JSON Schema.

What needs the disk (workspaces, scripts, tools) is checked later, in ``resolve``; these models see
plain values.

``file``: a jobs file, with its jobs and without. ``job``: a job, and what makes it stand for many.
``settings``: the keys of a job and of the defaults. Keys that hold a mapping have a module each:
``approvals``, ``budgets``, ``condensers``, ``finish``, ``limits``, ``models``, ``redaction``,
``retry``, ``sections``, ``servers``, ``spawn``, ``workspace``. ``base``: what all mappings have in
common. ``values``: the types of single values. ``bounds``: the most of everything. ``names`` of
batches and jobs, ``secret_names``, and ``patterns`` of other texts say what is one. ``wrong``: the
errors of validators.
"""
