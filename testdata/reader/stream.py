"""The form of a sealed stream: header, records, trailer.

Implements "Form of a stream" of the streams document. A fault is one of the classes
that the vectors name: not_stream, form, truncated, mixed_run, count, digest, trailing.
"""

import hashlib
import re

import intents
import jsontext
import records
import schema
from findings import Findings

MAX_LINE = 1 << 20
NAMES = ("kernel.raw", "kernel.normalized", "intent.log", "policy.log", "sdk.log", "run.joined")
HEADER_KEYS = ["schema", "stream", "run_id", "tool", "version"]


def _crc32c_of(byte):
    for _ in range(8):
        byte = byte >> 1 ^ 0x82F63B78 * (byte & 1)
    return byte


_CRC32C = [_crc32c_of(byte) for byte in range(256)]


def _crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC32C[(crc ^ byte) & 0xFF]
    return "%08x" % (crc ^ 0xFFFFFFFF)


# The checksums of a trailer: what it is, and its number of digits. The first is never named.
CHECKSUMS = {"sha256": (lambda data: hashlib.sha256(data).hexdigest(), 64), "crc32c": (_crc32c, 8)}
_RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,128}\Z")
_SCHEMA = b'{"schema":"'
_TRAILER = b'{"schema":"runner.stream_trailer.v0",'


class Fault(Exception):
    """The stream is refused: its class, and the 1-based line."""

    def __init__(self, kind, message, line):
        super().__init__(message)
        self.kind, self.line = kind, line


def check(data, name, form_only=False):
    """Every finding about a stream that should be of the name."""
    found = Findings(whole_only=True)
    try:
        header, rows, trailer = read(data, name)
    except Fault as e:
        found.add("stream." + e.kind, str(e), "", e.line)
        return found
    if not form_only:
        records.check(name, header, rows, trailer, found)
    return found


def read(data, name):
    """Header, records as (line, bytes, value), and trailer. Raises Fault at the first fault."""
    if not data:
        raise Fault("truncated", "zero bytes are not a stream", 1)
    if not data.startswith(_SCHEMA + b"runner.stream_header.v0\""):
        raise Fault("not_stream", "the first line is not a stream header", 1)
    raw, at = _line(data, 0, 1)
    header = _header(raw, name)
    rows, number = [], 1
    while True:
        number += 1
        if at == len(data):
            raise Fault("truncated", "no trailer before the end of input", number)
        before = at
        raw, at = _line(data, at, number)
        value = _object(raw, number)
        if raw.startswith(_TRAILER):
            trailer = _trailer(raw, value, header, number)
            break
        if list(value)[1:2] != ["run_id"] or value["run_id"] != header["run_id"]:
            raise Fault("mixed_run", "a record of another run", number)
        rows.append((number, raw, value))
    if trailer["records"] != len(rows):
        raise Fault("count", "%d records, the trailer says %d" % (len(rows), trailer["records"]), number)
    checksum = header.get("checksum", "sha256")
    if trailer[checksum] != CHECKSUMS[checksum][0](data[:before]):
        raise Fault("digest", "the digest is not that of the bytes before the trailer", number)
    if at != len(data):
        raise Fault("trailing", "data after the trailer", number + 1)
    return header, rows, trailer


def _line(data, at, number):
    end = data.find(b"\n", at, at + MAX_LINE)
    if end < 0:
        if len(data) - at >= MAX_LINE:
            raise Fault("form", "a line longer than %d bytes" % MAX_LINE, number)
        raise Fault("truncated", "the last line has no line feed", number)
    return data[at:end], end + 1


def _object(raw, number):
    if not raw.startswith(_SCHEMA):
        raise Fault("form", "a line that does not begin with its schema", number)
    try:
        value = jsontext.parse(raw, free=intents.is_intent(raw))
    except (jsontext.BadJSON, jsontext.TooDeep) as e:
        raise Fault("form", str(e), number) from None
    if not raw.endswith(b"}"):
        raise Fault("form", "blanks after the object", number)
    return value


def _header(raw, name):
    header = _object(raw, 1)
    if set(header) - set(HEADER_KEYS) - {"checksum"}:
        raise Fault("not_stream", "a header with other keys", 1)
    keys = HEADER_KEYS + ["checksum"] * ("checksum" in header)
    if list(header) != keys or not all(isinstance(v, str) for v in header.values()):
        raise Fault("form", "a header without all its keys in order", 1)
    if jsontext.canonical(header) != raw or not _RUN_ID.match(header["run_id"]):
        raise Fault("form", "a header that is not canonical, or a bad run_id", 1)
    if header.get("checksum", "crc32c") != "crc32c":
        raise Fault("form", "a header with a checksum other than crc32c", 1)
    if header["stream"] != name:
        raise Fault("not_stream", "a stream %s, expected %s" % (header["stream"], name), 1)
    return header


def _trailer(raw, trailer, header, number):
    checksum = header.get("checksum", "sha256")
    if list(trailer) != ["schema", "stream", "run_id", "records", checksum, "status"] or jsontext.canonical(trailer) != raw:
        raise Fault("form", "a trailer that is not canonical", number)
    if schema.load("stream-trailer-v0")(dict(trailer, stream="kernel.raw", **{checksum: "0" * CHECKSUMS[checksum][1]})):
        raise Fault("form", "a trailer with other values", number)
    if trailer["run_id"] != header["run_id"]:
        raise Fault("mixed_run", "a trailer of another run", number)
    if trailer["stream"] != header["stream"]:
        raise Fault("form", "a trailer of another stream", number)
    return trailer
