"""A database that the embedded server cannot read: the error says which file, and what to do with
it.
"""

import pytest

from runtime.base.errors import ServerError
from runtime.base.home import Home
from runtime.server.embedded import ensure_server, stop_server

pytestmark = pytest.mark.server


@pytest.mark.parametrize("damage", ["garbage", "truncated"])
async def test_a_damaged_database_is_named(damage: str, home: Home) -> None:
    """Garbage in its place and half of a file: no start, and a way to go on.

    With the file moved away it starts.
    """
    await ensure_server(home)
    assert await stop_server(home)
    files = [home.database.with_name(home.database.name + end) for end in ("", "-wal", "-shm")]
    for file in files[1:]:
        file.unlink(missing_ok=True)
    whole = home.database.read_bytes()
    home.database.write_bytes(
        b"no database " * 5000 if damage == "garbage" else whole[: len(whole) // 2]
    )
    with pytest.raises(ServerError) as refused:
        await ensure_server(home)
    assert f"cannot read its database {home.database}: it is damaged. Move it away" in str(
        refused.value
    )
    assert "holdfast run JOBS_FILE --from-archive" in str(refused.value)
    for file in files:
        file.unlink(missing_ok=True)
    await ensure_server(home)
    assert await stop_server(home)
