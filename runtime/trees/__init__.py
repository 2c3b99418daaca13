"""Trees of files as values: what a writable workspace holds at one version. Pure."""
