"""Characters as Unicode 14 has them, the version of Python 3.11.

Each later Python knows characters that are none to the one before, and shows them where that writes
their numbers. What a job is shown, and what its record says, must not depend on which Python its
worker runs on: it would be another after an upgrade. So to all of them the newer ones are what they
are to the oldest: code points that nobody has assigned.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right

KNOWN = 18
"""The version of Unicode up to which ``_NEWER`` is complete."""

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that nobody sees, or that break or turn a line: controls, bidirectional
and zero-width marks, separators.
"""

_NEWER = """
558 58b-58c 5c8-5c9 88f 897 b53-b54 c5c cdc cf3 ece 1acf-1af0 1b4e-1b4f 1b7f 1c89-1c8a 208f
209d-209f 20c1-20c4 2427-2429 2b96 2e60-2e63 2ffc-2fff 31e4-31e5 31ef a7cb-a7cf a7d2 a7d4
a7da-a7dd a7e2 a7f1 ab6c-ab6d fbc3-fbd2 fd90-fd91 fdc8-fdce 105c0-105f3 107bb-107bf
10940-10959 10d40-10d65 10d69-10d85 10d8e-10d8f 10ec2-10ec7 10ec9-10eee 10ef0-10eff
1123f-11241 11380-11389 1138b 1138e 11390-113b5 113b7-113c0 113c2 113c5 113c7-113ca
113cc-113d5 113d7-113d8 113e1-113e2 116d0-116e3 11b00-11b0a 11b60-11b67 11bc0-11be1
11bf0-11bf9 11db0-11ddb 11de0-11de9 11df0-11df1 11f00-11f10 11f12-11f3a 11f3e-11f5a 1246f
12475-1247f 12550-12686 1342f 13439-13455 13460-143fa 16100-16139 16d40-16d79 16ea0-16eb8
16ebb-16ed3 16ff2-16ff6 187f8-187ff 18cd6-18cda 18cff 18d09-18d20 18d80-18df2 18e00-19191
191a0-191d2 1b123-1b128 1b132 1b155 1b168 1cc00-1ccfc 1cd00-1ceb3 1ceba-1ced0 1ced2-1ced4
1cedd-1cefd 1d127-1d128 1d1eb-1d1ff 1d250-1d281 1d2c0-1d2d3 1d6a6 1db00-1db1c 1df1f-1df81
1df90-1df96 1dfcd-1dfff 1e030-1e06d 1e08f 1e4d0-1e4f9 1e5d0-1e5fa 1e5ff 1e6c0-1e6de
1e6e0-1e6f5 1e6fe-1e6ff 1f1ae 1f6d8-1f6d9 1f6dc 1f774-1f77f 1f7d9-1f7db 1f7f1-1f7ff
1f8b2-1f8bb 1f8c0-1f8c1 1f8d0-1f8d8 1fa54-1fa57 1fa75-1fa77 1fa87-1fa8f 1faad-1faaf
1fabb-1fabf 1fac6 1fac8 1facc-1facf 1fada-1fadd 1fadf 1fae8-1faeb 1faef 1faf7-1fafa
1fbcb-1fbef 1fbfa 2b739-2b73f 2b81e 2cea2-2cead 2ebf0-2ee5d 31350-33479 3d000-3fc3f
"""
"""Code points that were assigned after version 14, in hexadecimal: ``FIRST-LAST``, or one."""

_RANGES = [
    (int(first, 16), int(last or first, 16))
    for first, _, last in (piece.partition("-") for piece in _NEWER.split())
]
_FIRSTS = [first for first, _ in _RANGES]


def is_hidden(character: str) -> bool:
    """Whether a reader does not see a character, or it breaks or turns a line."""
    # Most characters are these, and a category costs a look-up.
    if " " <= character <= "~":
        return False
    category = unicodedata.category(character)
    return category in _HIDDEN or character.isspace() or is_newer(character)


def is_unicode(text: str) -> bool:
    """Whether a text has UTF-8: bytes of an argument or a variable that are none do not, nor does
    half a surrogate pair.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def as_unicode(text: str) -> str:
    """The same in text that has UTF-8, where ``is_unicode`` says that it has none: what has no
    such bytes is escaped.
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def is_newer(character: str) -> bool:
    """Whether Unicode has had it only since a later version than 14."""
    number = ord(character)
    place = bisect_right(_FIRSTS, number) - 1
    return place >= 0 and number <= _RANGES[place][1]


def as_literal(value: object) -> str:
    """As ``repr`` of Python 3.11."""
    text = repr(value)
    if text.isascii():
        return text
    return "".join(numbered(c) if is_newer(c) else c for c in text)


def numbered(character: str) -> str:
    """A character as the escape of its number."""
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
