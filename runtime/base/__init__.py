"""What every room may use: values, digests, errors, names.

Pure but for ``failpoints`` and ``home``.
"""
