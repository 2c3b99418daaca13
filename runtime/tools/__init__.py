"""A job's tools: what they look like to a statement, and the processes that they run in.

``functions`` loads and describes them, ``stubs`` writes their signatures, ``calls`` and ``results``
make JSON of what they return; all that in the process of ``child``, which ``host`` starts and talks
to. ``session``, ``stdio`` and ``schemas`` are for the tools of an MCP server, in the process of
``server_child``.
"""
