"""What every room may use: values, digests, errors, names, what a job is, what is masked.

Pure but for ``failpoints``, ``home``, ``proxies`` and the key of ``redaction``.
"""
