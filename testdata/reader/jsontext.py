"""JSON as the runner writes it: strict parsing, and the one canonical byte form.

Implements the part of the archive contract that defines the JSON byte form: compact,
decimal integers from -2^63 to 2^64-1, no floats but in intents, no repeated keys, valid UTF-8, and
of all characters only the quote, the backslash and those below 0x20 escaped.
"""

import json
import re

MAX_NESTING = 16
MIN_INT, MAX_INT = -(1 << 63), (1 << 64) - 1

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"?|[][{}]', re.DOTALL)
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


class BadJSON(Exception):
    """The text is not JSON that this contract allows."""


class TooDeep(Exception):
    """The text nests deeper than the limit."""


def _pairs(items):
    out = dict(items)
    if len(out) != len(items):
        raise BadJSON("a key is there twice")
    return out


def _number(text):
    value = int(text)
    if not MIN_INT <= value <= MAX_INT:
        raise BadJSON("the integer %s is out of range" % text)
    if text == "-0":
        raise BadJSON("minus zero")
    return value


class Number(float):
    """A number that is not a plain integer, with the text that spells it."""

    def __new__(cls, text):
        self = super().__new__(cls, text)
        self.text = text
        if self in (float("inf"), float("-inf")):
            raise BadJSON("the number %s is beyond a 64-bit float" % text)
        return self


def _free_int(text):
    number = Number(text)
    return number if text == "-0" else int(text)


def _no_float(text):
    raise BadJSON("the number %s is not a plain integer" % text)


_decoder = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=_number,
                            parse_float=_no_float, parse_constant=_no_float)
_free = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=_free_int, parse_float=Number, parse_constant=_no_float)
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def depth(data):
    """The nesting of brackets outside of strings, without parsing."""
    opening = data.count(b"{") + data.count(b"[")
    if opening <= 2:
        return opening
    deepest = level = 0
    for m in _TOKEN.finditer(data):
        if m.group()[0] in b"{[":
            level += 1
            deepest = max(deepest, level)
        elif m.group()[0] in b"}]":
            level -= 1
    return deepest


def parse(data, free=False):
    """The value that the bytes spell. Raises BadJSON or TooDeep. In a free one numbers may have any form."""
    if depth(data) > MAX_NESTING:
        raise TooDeep("nesting deeper than %d" % MAX_NESTING)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise BadJSON("not valid UTF-8") from None
    if text.startswith("\ufeff"):
        raise BadJSON("a byte order mark")
    try:
        value = (_free if free else _decoder).decode(text)
    except (ValueError, RecursionError) as e:
        raise BadJSON(str(e)) from None
    if "\\u" in text and _has_surrogate(value):
        raise BadJSON("half a surrogate pair")
    return value


def _has_surrogate(value):
    if isinstance(value, str):
        return any(0xD800 <= ord(c) <= 0xDFFF for c in value)
    if isinstance(value, dict):
        return any(_has_surrogate(k) or _has_surrogate(v) for k, v in value.items())
    if isinstance(value, list):
        return any(_has_surrogate(v) for v in value)
    return False


def canonical(value):
    """The canonical bytes of a value, keys in the order that it has them."""
    if isinstance(value, dict) and "payload" in value:
        return _spell(value).encode("utf-8")
    return _encoder.encode(value).encode("utf-8")


def _spell(value):
    if isinstance(value, Number):
        return value.text
    if isinstance(value, dict):
        return "{%s}" % ",".join("%s:%s" % (_encoder.encode(k), _spell(v)) for k, v in value.items())
    if isinstance(value, list):
        return "[%s]" % ",".join(map(_spell, value))
    return _encoder.encode(value)


def is_compact(data):
    """Whether a JSON text has no blanks between its tokens."""
    return not re.search(rb"[ \t\r\n]", _STRING.sub(b"", data))


def parse_any(data):
    """A JSON text of our own files, where blanks, nesting and numbers are free."""
    return _free.decode(data.decode("utf-8"))
