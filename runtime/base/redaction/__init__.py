"""Secrets are masked where text enters a job, so what the model sees and what is archived are the
same (docs/design.md section 8).

``rules``: what a jobs file says of it. ``marks``: what stands in place of a masked value.
``shapes``: keys that are known by their form. ``looking``: one look at all texts of a value.
``computed``: masks what a statement computes. These are pure. ``variables``: which ones of an
environment hold a secret. ``redactor``: the masking. ``key``: the key of the marks' HMACs, in a
file.
"""
