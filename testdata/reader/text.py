"""Bytes as text, an injective escape.

Implements "Bytes to text" of the archive contract: a backslash is written as two, a
byte that is not part of valid UTF-8 as \\x and two lower-case hex digits, and
everything else stays.
"""

import re

_ESCAPE = re.compile(rb"\\(\\|x[0-9a-f]{2})")
_PIECE = re.compile(rb"\\(\\|x[0-9a-f]{2})?")


def encode(data):
    """The text form of a byte string."""
    out = []
    for c in data.decode("utf-8", "surrogateescape"):
        if c == "\\":
            out.append("\\\\")
        elif 0xDC80 <= ord(c) <= 0xDCFF:
            out.append("\\x%02x" % (ord(c) - 0xDC00))
        else:
            out.append(c)
    return "".join(out)


def decode(text):
    """The byte string of a text form. Raises ValueError where there is none."""
    raw = text.encode("utf-8")
    for m in _PIECE.finditer(raw):
        if m.group(1) is None:
            raise ValueError("a backslash that escapes nothing")
    data = _ESCAPE.sub(lambda m: b"\\" if m.group(1) == b"\\" else bytes([int(m.group(1)[1:], 16)]), raw)
    if encode(data) != text:
        raise ValueError("not the escape of its bytes")
    return data


def is_text(text):
    """Whether the text is the escape of some byte string."""
    if "\\" not in text:
        return True
    try:
        decode(text)
    except ValueError:
        return False
    return True
