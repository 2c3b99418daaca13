"""The command line, which ``__main__`` loads when it is known where our packages are."""

from runtime.cli.main import entry

__all__ = ["entry"]
