"""Variable-length integers (LEB128, little end first; zigzag for signed ones), as in protocol
buffers.
"""

from __future__ import annotations

_BITS = 63
_TOO_LONG = f"an integer of more than {_BITS} bits"


def varint(value: int) -> bytes:
    """``value`` (not negative) in seven bits a byte."""
    if value <= 0x7F:
        return bytes((value,))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value: int) -> int:
    """A signed integer as one that is not negative; small stays small."""
    return value * 2 if value >= 0 else -value * 2 - 1


def unzigzag(value: int) -> int:
    """The inverse of ``zigzag``."""
    return value // 2 if value % 2 == 0 else -(value // 2) - 1


def read_varint(data: bytes | memoryview, start: int) -> tuple[int, int]:
    """The integer at ``start`` and where the next one begins.

    Raises:
        IndexError: if the data ends first.
        ValueError: if it has more than 63 bits.
    """
    value = shift = 0
    while shift < _BITS:
        byte = data[start]
        start += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, start
        shift += 7
    raise ValueError(_TOO_LONG)


def read_varints(data: bytes | memoryview) -> list[int]:
    """All the integers in ``data``.

    Raises:
        IndexError: if the data ends in the middle of one.
        ValueError: if one has more than 63 bits.
    """
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            values.append(value)
            value = shift = 0
        else:
            shift += 7
            if shift >= _BITS:
                raise ValueError(_TOO_LONG)
    if shift:
        raise IndexError("the data ends in the middle of an integer")
    return values
