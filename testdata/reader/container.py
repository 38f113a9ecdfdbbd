"""The container of an archive: gzip and tar.

Implements "Archive" (member set, tar and gzip form) and "Limits" of the archive
contract. The archive is held in memory, which a test reader can afford.
"""

import hashlib
import re
import zlib

BLOCK, RECORD = 512, 10240
MIB = 1 << 20
MANIFEST = "manifest.json"
MAX_MEMBERS, MAX_MEMBER, MAX_TOTAL = 64 + (1 << 15), 8 << 30, 32 << 30
RATIOS = ((256 * MIB, 600), (3 << 30, 48))  # above so many bytes, at most so many times the input
SIZES = {
    MANIFEST: 8 * MIB, "run/box.json": 4 * MIB, "run/clock.json": 4 * MIB, "run/env.json": 4 * MIB, "run/net.json": 4 * MIB, "observation-health.json": MIB, "events.ndjson": 4 * MIB,
    "layers/filtered.ndjson": 256 * MIB, "layers/process.ndjson": 256 * MIB,
    "correlation-report.json": 32 * MIB, "layers/policy.ndjson": 32 * MIB, "layers/sdk.ndjson": 32 * MIB,
}
_ZERO = bytes(BLOCK)
_NAME = re.compile(rb"[A-Za-z0-9._/-]+\Z")
_OCTAL = re.compile(rb" *([0-7]*)[ \0]*\Z")
# Numeric fields that say nothing about the run: offset, width and name.
_NUMBERS = ((100, 8, "mode"), (108, 8, "user id"), (116, 8, "group id"), (124, 12, "size"),
            (136, 12, "time"), (329, 8, "device number"), (337, 8, "device number"))


class Refused(Exception):
    """The container is refused, and nothing after the place is read."""

    def __init__(self, rule, message):
        super().__init__(message)
        self.rule = rule


class Member:
    """One member: its name, length and digest, and its bytes unless it is over its limit."""

    def __init__(self, name, data, limit):
        self.name, self.size = name, len(data)
        self.digest = "sha256:" + hashlib.sha256(data).hexdigest()
        self.limit = limit
        self.data = data if self.size <= limit else None


class _Source:
    """The uncompressed bytes, and the fault that ends them, if there is one."""

    def __init__(self, data, fault=None):
        self.data, self.fault, self.at = data, fault, 0

    def read(self, n):
        out = self.data[self.at:self.at + n]
        self.at += len(out)
        if len(out) < n and self.fault:
            raise self.fault
        return out


def members(data):
    """Yields the members of an archive. Raises Refused at the first fault."""
    if not data:
        raise Refused("archive.container", "truncated: empty input")
    source = _gunzip(data) if data[:2] == b"\x1f\x8b" else _Source(data)
    names = []
    while True:
        head = source.read(BLOCK)
        if not names:
            if len(head) < BLOCK:
                raise Refused("archive.container", "not an archive: no tar header")
        elif head == _ZERO:
            return _end(source)
        elif len(head) < BLOCK:
            raise Refused("archive.container", "truncated: no two zero blocks at the end")
        name, size = _header(head)
        _order(names, name)
        names.append(name)
        limit = SIZES.get(name, MAX_MEMBER)
        if len(names) > MAX_MEMBERS:
            raise Refused("archive.limit", "more than %d members" % MAX_MEMBERS)
        if source.at + size > MAX_TOTAL:
            raise Refused("archive.limit", "more than %d bytes" % MAX_TOTAL)
        if size > limit:
            yield Oversize(name, size, limit)
        body = source.read(size)
        if len(body) < size:
            raise Refused("archive.container", "truncated: it ends inside %s" % name)
        padding = source.read(-size % BLOCK)
        if padding.strip(b"\0"):
            raise Refused("archive.member", "hidden bytes after %s" % name)
        if len(padding) < -size % BLOCK:
            raise Refused("archive.container", "truncated: it ends after %s" % name)
        yield Member(name, body, limit)


class Oversize:
    """Says that the member that comes next is declared to be over its limit."""

    def __init__(self, name, size, limit):
        self.name, self.size, self.limit = name, size, limit


def _order(names, name):
    if not names:
        if name != MANIFEST:
            raise Refused("archive.order", "first is %s, expected %s" % (name, MANIFEST))
    elif name in names:
        raise Refused("archive.order", "%s is there twice" % name)
    elif len(names) > 1 and name < names[-1]:
        raise Refused("archive.order", "%s comes after %s" % (name, names[-1]))


def _header(h):
    """Name and size of a tar header that hides nothing."""
    if h[257:265] not in (b"ustar\x0000", b"ustar  \0"):
        raise Refused("archive.container", "not an archive: no tar header")
    given = _OCTAL.match(h[148:156])
    total = sum(h) - sum(h[148:156]) + 8 * 0x20
    if not given or int(given.group(1) or b"0", 8) != total:
        raise Refused("archive.container", "corrupt: the checksum of a tar header does not match")

    def hostile(what):
        raise Refused("archive.member", what)

    name = h[:100].rstrip(b"\0")
    parts = name.split(b"/")
    if not _NAME.match(name) or b"" in parts or b"." in parts or b".." in parts:
        hostile("the name %r is not a plain relative path" % name)
    if h[156:157] not in (b"0", b"\0"):
        hostile("not a regular file")
    if h[157:257].strip(b"\0") or h[345:512].strip(b"\0"):
        hostile("a link name, a prefix, or bytes in unused fields")
    for at, width in ((265, 32), (297, 32)):
        owner, _, rest = h[at:at + width].partition(b"\0")
        if not all(0x20 <= c < 0x7F for c in owner) or rest.strip(b"\0"):
            hostile("an owner name that is not ASCII")
    for at, width, what in _NUMBERS:
        if not _OCTAL.match(h[at:at + width]):
            hostile("a %s that is not octal" % what)
    return name.decode("ascii"), int(_OCTAL.match(h[124:136]).group(1) or b"0", 8)


def _end(source):
    """Checks what follows the first zero block."""
    second = source.read(BLOCK)
    if second.strip(b"\0"):
        raise Refused("archive.trailing", "one zero block, then more data")
    if len(second) < BLOCK:
        raise Refused("archive.container", "truncated: one zero block at the end")
    room = -source.at % RECORD
    rest = source.read(len(source.data) - source.at + 1 if source.fault else len(source.data) - source.at)
    if rest.strip(b"\0"):
        raise Refused("archive.trailing", "bytes after the two zero blocks")
    if len(rest) > room:
        raise Refused("archive.trailing", "more zeros than a record holds")
    if len(rest) not in (0, room):
        raise Refused("archive.container", "truncated: the zero padding ends within a record")


def _gunzip(data):
    """The tar stream in a gzip file, up to the first fault of the gzip form."""
    at = _gzip_header(data)
    inflate, out, total, fault = zlib.decompressobj(-15), [], 0, None
    left = data[at:]
    while not inflate.eof and fault is None:
        piece, left = left[:4096], left[4096:]
        if not piece:
            fault = Refused("archive.container", "truncated: the gzip data ends early")
            break
        try:
            got = inflate.decompress(piece)
        except zlib.error:
            fault = Refused("archive.container", "corrupt: the gzip data is damaged")
            break
        out.append(got)
        total += len(got)
        for free, ratio in RATIOS:
            if total > free and total > ratio * len(data):
                fault = Refused("archive.limit", "more than %d times the size of the input" % ratio)
    if fault is None:
        fault = _gzip_footer(inflate.unused_data + left, out, total)
    return _Source(b"".join(out), fault)


def _gzip_header(data):
    """The length of a gzip header, which may hold extra fields, a name and a comment."""
    if len(data) < 10:
        raise Refused("archive.container", "truncated: the gzip header ends early")
    flags, at = data[3], 10
    if data[2] != 8 or flags & 0xE0:
        raise Refused("archive.container", "not an archive: bad gzip header")
    if flags & 4:
        at += 2 + int.from_bytes(data[at:at + 2], "little")
    for bit in (8, 16):
        if flags & bit:
            at = data.find(b"\0", at) + 1 or len(data) + 1
    if flags & 2:
        at += 2
        if at <= len(data) and data[at - 2:at] != (zlib.crc32(data[:at - 2]) & 0xFFFF).to_bytes(2, "little"):
            raise Refused("archive.container", "corrupt: the checksum of the gzip header does not match")
    if at > len(data):
        raise Refused("archive.container", "truncated: the gzip header ends early")
    return at


def _gzip_footer(footer, out, total):
    if len(footer) < 8:
        return Refused("archive.container", "truncated: the gzip data ends early")
    crc = 0
    for piece in out:
        crc = zlib.crc32(piece, crc)
    if footer[:8] != crc.to_bytes(4, "little") + (total & 0xFFFFFFFF).to_bytes(4, "little"):
        return Refused("archive.container", "corrupt: the gzip checksum or length does not match")
    if footer[8:]:
        return Refused("archive.trailing", "bytes after the gzip stream")
    return None
