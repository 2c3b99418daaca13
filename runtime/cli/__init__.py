"""The commands of ``holdfast``, one module each.

Importing them must be quick: what a command needs (temporalio, litellm, tiktoken, ...) is imported
in its function, so that ``holdfast --help`` and shell completion wait for none of it.
"""
