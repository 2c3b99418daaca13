"""``holdfast workspace``: the files of jobs that change them, version by version.

One module for each command.
"""
