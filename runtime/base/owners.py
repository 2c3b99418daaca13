"""Whose a file or a directory is."""

from __future__ import annotations

import os


def is_another_users(about: os.stat_result) -> bool:
    """Whether it belongs to another user. What is root's does not count as one's: root may read and
    write everything anyway.
    """
    return about.st_uid not in {os.geteuid(), 0}
