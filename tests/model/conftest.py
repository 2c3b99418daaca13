"""litellm is imported once, before the tests that call it are timed or run side by side."""

import asyncio

import pytest


@pytest.fixture
async def litellm() -> None:
    """litellm, ready."""
    from activities.model import warm

    await asyncio.to_thread(warm)
