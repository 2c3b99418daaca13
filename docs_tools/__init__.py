"""Programs that write parts of ``docs/`` from the code; a test compares what stands there with what
they print now.
"""
