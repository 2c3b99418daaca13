"""The charset in which a response says that it is written, as far as that is believed.

Python has codecs that take the square of a text's length (punycode), and some that read no text at
all. A server that names one would hold up a worker with a megabyte.
"""

from __future__ import annotations

import re

MARK = b"\xef\xbb\xbf"
"""A byte order mark, by which litellm does not see what stands behind it."""

_BELIEVED = frozenset(
    {
        *("utf-8", "utf8", "us-ascii", "ascii", "utf-16", "utf-16le", "utf-16be"),
        *("iso-8859-1", "latin-1", "latin1", "iso-8859-15", "cp1252", "windows-1252"),
        *("windows-1251", "koi8-r", "gb2312", "gbk", "gb18030", "big5"),
        *("shift_jis", "euc-jp", "euc-kr"),
    }
)
_CHARSET = re.compile(r"\s*charset\s*=\s*\"?([\w.-]+)\"?\s*", re.IGNORECASE)


def plain_type(content_type: str) -> str:
    """``content_type`` without what is not ASCII, which no header takes, and without parameters, if
    they name another charset than those that texts are written in: then it is read as UTF-8.
    """
    content_type = content_type.encode("ascii", "ignore").decode()
    kind, _, parameters = content_type.partition(";")
    if "charset" not in parameters.lower():
        return content_type
    named = _CHARSET.fullmatch(parameters)
    believed = named is not None and named[1].lower() in _BELIEVED
    return content_type if believed else kind.strip()
