"""zstd frames, with or without a dictionary of raw content, for inputs from bytes to many
megabytes.
"""

from __future__ import annotations

import threading
from collections import deque
from functools import lru_cache

import zstandard

_LEVEL = 9
"""For the kilobytes of a turn, level 19 takes two to fourteen times the time for a percent less
room.
"""

_LEAST_WINDOW, _MOST_WINDOW = 10, 27
_SMALL_WINDOW = 14
"""Up to this a compressor has half a megabyte or less, and is kept."""
_LEAST_DICTIONARY = 8
MOST_BYTES = 1 << 30
"""No frame of ours says more."""
_SMALL_DICTIONARY = 1 << 15


def compress(data: bytes, dictionary: bytes = b"") -> bytes:
    """``data`` as one zstd frame; ``dictionary`` may be any bytes that the reader will have.

    The window covers the dictionary and the data, else the far end of a large dictionary could not
    be referred to. Below level 9 zstd forgets the start of a dictionary of some megabytes
    (measured: 200 kB that repeat it were stored whole at levels 3 to 6, also with long-distance
    matching). No zstd checksum: every object carries a SHA-256.
    """
    size = len(data) + len(dictionary)
    window = min(max(size.bit_length(), _LEAST_WINDOW), _MOST_WINDOW)
    if window > _SMALL_WINDOW:
        return _compressor(dictionary, window, size).compress(data)
    free = _free(dictionary, window)
    try:
        compressor = free.pop()
    except IndexError:
        compressor = _compressor(dictionary, window, 1 << window)
    frame = compressor.compress(data)
    free.append(compressor)
    return frame


def _compressor(dictionary: bytes, window: int, size: int) -> zstandard.ZstdCompressor:
    parameters = zstandard.ZstdCompressionParameters.from_level(
        _LEVEL,
        source_size=size,
        dict_size=len(dictionary),
        window_log=window,
        write_checksum=False,
        write_dict_id=False,
    )
    return zstandard.ZstdCompressor(dict_data=_raw(dictionary), compression_params=parameters)


@lru_cache(maxsize=8)
def _free(dictionary: bytes, window: int) -> deque[zstandard.ZstdCompressor]:
    """Compressors that nobody uses: to make one takes three times as long as a header does. Two
    threads cannot use one at once.
    """
    return deque(maxlen=2)


def decompress(frame: bytes | memoryview, dictionary: bytes = b"", most: int = MOST_BYTES) -> bytes:
    """The data of a frame that ``compress`` made with the same dictionary.

    Raises:
        ValueError: if the bytes are no such frame, or one of more than ``most`` bytes.
    """
    make = _kept.decompressor if len(dictionary) <= _SMALL_DICTIONARY else _decompressor
    try:
        if zstandard.frame_content_size(frame) > most:
            raise ValueError(f"a frame of more than {most} bytes")
        return make(dictionary).decompress(frame)
    # A damaged frame may speak of any size, and may have had it take much memory.
    except (zstandard.ZstdError, MemoryError) as error:
        _kept.decompressor.cache_clear()
        raise ValueError(f"not a zstd frame of this dictionary: {error}") from error


def _decompressor(dictionary: bytes) -> zstandard.ZstdDecompressor:
    # A damaged frame may ask for any window: more than ``compress`` takes is refused.
    return zstandard.ZstdDecompressor(dict_data=_raw(dictionary), max_window_size=1 << _MOST_WINDOW)


class _Kept(threading.local):
    """The decompressors that a thread used last: to make one takes ten times as long as a small
    frame does, and two threads cannot use one at once.
    """

    def __init__(self) -> None:
        self.decompressor = lru_cache(maxsize=4)(_decompressor)


_kept = _Kept()


@lru_cache(maxsize=4)
def _raw(dictionary: bytes) -> zstandard.ZstdCompressionDict | None:
    # zstd takes no raw dictionary of fewer than 8 bytes; both sides leave it out alike.
    if len(dictionary) < _LEAST_DICTIONARY:
        return None
    return zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
