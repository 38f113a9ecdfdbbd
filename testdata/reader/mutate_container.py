"""Containers that differ from what the writer makes: what readers accept of them, and what not.

Tar header fields one by one, checksum layouts, padding, gzip headers, and limits.
"""

import zlib

FIELDS = {
    "name of another": (0, b"unknown.json\0"), "name with a slash at its end": (0, b"manifest.json/"), "name with a blank": (0, b"mani fest"),
    "mode of blanks": (100, b"        "), "mode 777": (100, b"0000777\0"), "uid with a 9": (108, b"0000009\0"),
    "uid of blanks": (108, b"        "), "uid of zeros": (108, bytes(8)), "uid with blanks first": (108, b"   12 \0\0"),
    "uid with a blank inside": (108, b"1 2\0\0\0\0\0"), "uid below zero": (108, b"-1\0\0\0\0\0\0"),
    "uid in base 256": (108, b"\x80\0\0\0\0\0\0\1"), "size of blanks": (124, b" " * 12), "size of zeros": (124, bytes(12)),
    "large size": (124, b"77777777777\0"), "full size": (124, b"7" * 12), "time": (136, b"77777777777\0"), "full time": (136, b"7" * 12),
    "type of a directory": (156, b"5"), "type 7": (156, b"7"), "type NUL": (156, b"\0"), "link name": (157, b"l"),
    "no magic": (257, b"xstar"), "GNU magic": (257, b"ustar  \0"), "another version": (257, b"ustar\x0011"), "version of zeros": (257, b"ustar\0\0\0"),
    "owner": (265, b"root\0"), "full owner": (265, b"a" * 32), "owner with a tail": (265, b"a\0b"), "owner with a control": (265, b"a\x07"),
    "owner with a high byte": (265, b"\xe9"), "owner with a blank": (265, b"a b"), "owner with DEL": (265, b"a\x7f"),
    "device": (329, b"x"), "device of blanks": (329, b"       \0"), "prefix": (345, b"p"), "unused bytes": (500, b"x"),
}
CHECKSUMS = {
    "seven digits": lambda n: b"%07o\0" % n, "blank and NUL": lambda n: b"%06o \0" % n, "blanks first": lambda n: b"  %o\0\0" % n,
    "eight digits": lambda n: b"%08o" % n, "one too high": lambda n: b"%06o\0 " % (n + 1), "empty": lambda n: bytes(8),
    "a letter": lambda n: b"%06ox " % n,
}


def mutants(tar, members, sealed):
    """What is changed of a plain tar, and a function that makes it; sealed packs members."""
    for n in (0, 3):
        at = _offset(tar, n)
        for what, (place, text) in FIELDS.items():
            yield "header %d: %s" % (n, what), lambda at=at, p=place, t=text: _header(tar, at, p, t, lambda s: b"%06o\0 " % s)
        for what, form in CHECKSUMS.items():
            yield "header %d: checksum, %s" % (n, what), lambda at=at, f=form: _header(tar, at, 0, b"", f)
    room = -len(tar) % 10240
    for n in (1, 512, 1024, room, room + 1, room + 512):
        yield "%d zeros more" % n, lambda n=n: tar + bytes(n)
    for n in (1, 512, 1024):
        yield "%d bytes less" % n, lambda n=n: tar[:-n]
    yield "a byte more", lambda: tar + b"x"
    yield "zeros only", lambda: bytes(1024)
    yield from _gzip(tar)
    for n in (56, 58):
        yield "%d members more" % n, lambda n=n: sealed(dict(members, **{"x%03d" % i: b"" for i in range(n)}))
    for name, data in members.items():
        if name == "manifest.json":
            continue
        for what, new in (("empty", b""), ("NUL at the end", data + b"\0"), ("byte order mark", b"\xef\xbb\xbf" + data)):
            yield "%s %s" % (name, what), lambda name=name, new=new: sealed(dict(members, **{name: new}))
        for size in ((1 << 20) - 1, 1 << 20) if name.endswith(".ndjson") else ():
            line = b'{"a":"' + b"x" * (size - 8) + b'"}\n'
            yield "%s a line of %d" % (name, size), lambda name=name, line=line, data=data: sealed(dict(members, **{name: data + line}))


def _offset(tar, n):
    at = 0
    for _ in range(n):
        at += 512 + (int(tar[at + 124:at + 135], 8) + 511) // 512 * 512
    return at


def _header(tar, at, place, text, checksum):
    h = bytearray(tar[at:at + 512])
    h[place:place + len(text)] = text
    h[148:156] = b" " * 8
    h[148:156] = checksum(sum(h))
    return tar[:at] + bytes(h) + tar[at + 512:]


def _gzip(tar):
    deflate = zlib.compressobj(1, zlib.DEFLATED, -15)
    body = deflate.compress(tar) + deflate.flush()
    body += zlib.crc32(tar).to_bytes(4, "little") + len(tar).to_bytes(4, "little")

    def head(flags, more=b"", time=0):
        return b"\x1f\x8b\x08" + bytes([flags]) + time.to_bytes(4, "little") + b"\0\xff" + more

    sum16 = (zlib.crc32(head(2)) & 0xFFFF).to_bytes(2, "little")
    for what, data in (("", head(0) + body), (" with a name", head(8, b"name\0") + body), (" with a comment", head(16, b"c\0") + body),
                       (" with extra fields", head(4, b"\2\0ab") + body), (" with a time", head(0, time=5) + body),
                       (" with a checksum", head(2, sum16) + body), (" with a wrong checksum", head(2, b"\0\0") + body),
                       (" with a reserved flag", head(0x20) + body), (" with the text flag", head(1) + body),
                       (" cut in its header", head(0)[:5]), (" cut in its name", head(8, b"na")), (" twice", (head(0) + body) * 2),
                       (" and zeros", head(0) + body + bytes(10))):
        yield "gzip" + what, lambda data=data: data
