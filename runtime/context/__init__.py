"""Live context objects: nodes, their rendering at each level of detail, ticks and payloads.

Pure.
"""
