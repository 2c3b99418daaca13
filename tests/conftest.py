"""Settings of all tests."""

from hypothesis import settings

# Tests assert behaviour and never seconds.
settings.register_profile("holdfast", deadline=None)
settings.load_profile("holdfast")
