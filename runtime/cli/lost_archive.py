"""An archive that goes while jobs run: an emptied bucket or directory takes what is written from
then on, and no write fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from runtime.archive.catalog import known_archive_id
from runtime.archive.stores import ObjectStore
from runtime.base.errors import ArchiveError, ObjectCorrupt, ObjectMissing

LOOK_SECONDS = 10.0


async def tell_of_a_lost_archive(
    store: ObjectStore, before: str, tell: Callable[[str], None]
) -> None:
    """Tell, once, when the archive in ``store`` is not the one whose id was ``before`` any more,
    until cancelled.
    """
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        try:
            await asyncio.to_thread(check_is_there, store, before)
        except (ObjectMissing, ObjectCorrupt) as error:
            tell(f"warning: {error}")
            return
        # A store that is away for a while has lost nothing.
        except ArchiveError:
            continue


def check_is_there(store: ObjectStore, before: str) -> None:
    """See that the archive in ``store`` is the one whose id was ``before``.

    Raises:
        ObjectMissing: if it is gone, or another one is there.
    """
    if known_archive_id(store) != before:
        raise ObjectMissing(
            f"the archive of these jobs was removed from {store} while they ran: what they recorded"
            " until then is not there. Put it back, and 'holdfast verify --all' tells what is"
            " missing"
        )
