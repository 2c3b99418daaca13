"""The JSON Schemas that results must satisfy: what is wrong with one, and with a value by it.

A model writes them too, and values are checked in workflow code. So a check reaches nothing
outside the schema, ends after a counted amount of work, and gives the same answer in each process.
``faults``: whether a schema is one that can be so checked. ``reachable``: its parts, and where its
references lead. ``bounded``: the check. ``matching``: its regular expressions. These are pure.
"""
