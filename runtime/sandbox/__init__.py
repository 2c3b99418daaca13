"""One shell command in a sandbox, and what it left behind.

``command`` has the words: what is run, where, within which limits, and the ``Sandbox`` protocol.
``choice`` gives the sandbox that works on this host: ``bubblewrap`` (with ``system``, what a
command sees of the host) or ``bare``, with ``supervise``. ``orphans`` ends what a bubblewrap that
was killed has left. ``following`` takes a command's output and ends it where it must, ``watching``
counts what it uses, ``layers`` reads an overlay's upper layer.
"""
