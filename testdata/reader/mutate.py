#!/usr/bin/env python3
"""Makes archives and streams with one fault each, to compare checkers on.

Usage: mutate.py OUT PART [NAME<TAB>]FILE…

Of each archive, or stream NAME, it changes one byte, field or line, sets digests and
lengths right again, and writes the result to OUT. It prints the file names. Of all
mutants it takes about one in PART, always the same ones. With the PART `containers` it
makes instead every odd container of the archive.
"""

import copy
import hashlib
import os
import sys
import zlib

import container
import intents
import jsontext
import mutate_container
import mutate_report
import wrapped


def variants(value):
    """Other values in place of one: what it does, and the value."""
    if isinstance(value, bool):
        yield "flip", not value
    elif isinstance(value, int):
        yield "plus", value + 1
        yield "minus", value - 1
        yield "bit", value ^ 0o100
        yield "text", str(value)
        yield "huge", 1 << 64
    elif value is None:
        yield "zero", 0
        yield "word", "x"
    elif isinstance(value, str):
        yield "longer", value + "x"
        yield "empty", ""
        yield "slash", value + "\\"
        yield "escape", value + "\\x41"
        yield "null", None
        yield "byte", value + "\\xff"
        if value[-1:].isdigit():
            yield "digit", value[:-1] + "0123456789"[int(value[-1]) - 1]
    elif isinstance(value, list):
        yield "add", value + ["x"]
        if value:
            yield "drop", value[1:]
            yield "last", value[:-1]
            yield "twice", value[:1] + value
        if len(value) > 1:
            yield "turn", value[::-1]
    elif isinstance(value, dict):
        for k in value:
            yield "without " + k, {n: v for n, v in value.items() if n != k}
        yield "more", dict(value, extra=1)
        yield "order", dict(reversed(list(value.items())))
    if isinstance(value, str) and value in NEIGHBOURS:
        for other in NEIGHBOURS[value]:
            yield "as " + other, other


def _groups(*groups):
    return {v: [w for w in g if w != v] for g in groups for v in g}


NEIGHBOURS = _groups(
    ("complete", "partial_ringbuf_drops", "absent"), ("clean", "partial", "failed"), ("allow", "deny", "error"),
    ("present", "self_reported"), ("read", "write", "read_write", "unknown"), ("success", "error"),
    ("completed", "tool_error", "denied", "server_gone", "input_required"), ("linux", "macos"),
    ("P_ALLOW_RULE", "P_DENY_RULE", "P_ALLOW_DEFAULT", "P_DENY_DEFAULT", "P_EVAL_ERROR"),
    ("connect_only", "datagram_peer_observed", "connect_and_datagram_peer_observed"), ("tool_server", "run"),
    ("diagnostic_only", "peer_set", "not_applicable"), ("none", "openai-agents"),
    ("tool_call_started", "tool_call_completed", "run_finished", "run_failed"),
)


def walk(value, path=()):
    """Every place in a value."""
    yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for k, v in items:
        yield from walk(v, path + (k,))


def replaced(value, path, new):
    if not path:
        return new
    value = copy.copy(value)
    value[path[0]] = replaced(value[path[0]], path[1:], new)
    return value


def bytes_mutants(raw):
    """One byte more, or none."""
    yield "longer", lambda: raw + b"x"
    yield "empty", lambda: b""


def object_mutants(raw):
    """Every mutant of one JSON object: what is changed, and a function that makes it."""
    value = jsontext.parse(raw, free=intents.is_intent(raw))
    for path, old in walk(value):
        for what, new in variants(old):
            yield ".".join(map(str, path)) + " " + what, lambda p=path, n=new: jsontext.canonical(replaced(value, p, n))
    yield "blank", lambda: raw.replace(b":", b": ", 1)
    yield "blank first", lambda: b" " + raw
    yield "escaped", lambda: raw.replace(b"/", b"\\u002f", 1)
    yield "key twice", lambda: raw[:-1] + b"," + raw[1:]
    yield "not json", lambda: raw[:-1]
    yield "not utf-8", lambda: raw.replace(b'"', b'"\xff', 1)
    yield "float", lambda: raw.replace(b"0,", b"0.0,", 1)
    yield "deep", lambda: raw[:-1] + b',"deep":' + b"[" * 17 + b"]" * 17 + b"}"


def line_mutants(data):
    """Every mutant of lines: one line changed, or the lines themselves."""
    rows = data.split(b"\n")[:-1]

    def joined(new):
        return b"".join(r + b"\n" for r in new)

    shapes = set()
    for i, row in enumerate(rows):
        value = jsontext.parse(row, free=intents.is_intent(row))
        shape = (tuple(value), value.get("event_type"), value.get("status"))
        if shape not in shapes:
            shapes.add(shape)
            for what, new in object_mutants(row):
                yield "%d %s" % (i, what), lambda i=i, new=new: joined(rows[:i] + [new()] + rows[i + 1:])
        yield "%d gone" % i, lambda i=i: joined(rows[:i] + rows[i + 1:])
        yield "%d gone, numbered" % i, lambda i=i: joined(numbered(rows[:i] + rows[i + 1:]))
        yield "%d twice, numbered" % i, lambda i=i: joined(numbered(rows[:i + 1] + rows[i:]))
        yield "%d moved, numbered" % i, lambda i=i, row=row: joined(numbered(rows[:i] + rows[i + 1:] + [row]))
        yield "%d blank line" % i, lambda i=i: joined(rows[:i] + [b""] + rows[i:])
    if rows:
        yield "no last line feed", lambda: data[:-1]
        yield "one more line feed", lambda: data + b"\n"
        yield "cr lf", lambda: data.replace(b"\n", b"\r\n")
    else:
        yield "a line feed", lambda: b"\n"


def numbered(rows):
    """The lines with seq counted anew, each schema on its own."""
    out, next_seq = [], {}
    for row in rows:
        value = jsontext.parse(row, free=intents.is_intent(row))
        if "seq" in value:
            value["seq"] = next_seq.get(value["schema"], 0)
            next_seq[value["schema"]] = value["seq"] + 1
        out.append(jsontext.canonical(value))
    return out


def tar(members):
    """A plain tar of (name, bytes) as the writer makes it."""
    out = []
    for name, data in members:
        head = bytearray(512)
        head[:len(name)] = name.encode()
        for at, text in ((100, b"0000644\0"), (108, b"0000000\0"), (116, b"0000000\0"), (124, b"%011o\0" % len(data)),
                         (136, b"00000000000\0"), (148, b" " * 8), (156, b"0ustar\x0000"), (329, b"0000000\0"), (337, b"0000000\0")):
            if at == 156:
                head[156:157], head[257:265] = b"0", b"ustar\x0000"
            else:
                head[at:at + len(text)] = text
        head[148:156] = b"%06o\0 " % sum(head)
        out += [bytes(head), data, bytes(-len(data) % 512)]
    return b"".join(out) + bytes(1024)


def sealed(members):
    """The tar with a manifest that fits its members."""
    manifest = jsontext.parse(members["manifest.json"])
    files = {n: {"path": n, "sha256": "sha256:" + hashlib.sha256(d).hexdigest(), "bytes": len(d)}
             for n, d in sorted(members.items()) if n != "manifest.json"}
    manifest["files"] = files
    return tar([("manifest.json", jsontext.canonical(manifest))] + sorted((n, d) for n, d in members.items() if n in files))


def archive_mutants(data):
    """Every mutant of an archive."""
    members = {m.name: m.data for m in container.members(data)}

    def changed(name, new):
        return sealed(dict(members, **{name: new}))

    for name, old in members.items():
        if name == "manifest.json":
            rest = [(n, d) for n, d in members.items() if n != name]
            for what, new in object_mutants(old):
                yield "%s %s" % (name, what), lambda new=new: tar([("manifest.json", new())] + rest)
            continue
        kinds = bytes_mutants if wrapped.raw(name) else line_mutants if name.endswith(".ndjson") else object_mutants
        for what, new in kinds(old):
            yield "%s %s" % (name, what), lambda name=name, new=new: changed(name, new())
        yield "%s gone" % name, lambda name=name: sealed({n: d for n, d in members.items() if n != name})
        yield "%s final line feed" % name, lambda name=name, old=old: changed(name, old + b"\n")
    if b"window_elapsed_ms" not in members["events.ndjson"]:
        for what, new in mutate_report.mutants(members):
            yield what, lambda new=new: sealed(new())
    whole = sealed(members)
    for at in range(0, len(whole), 61):
        yield "byte %d" % at, lambda at=at: whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:]
    for at in range(0, len(whole), 997):
        yield "cut at %d" % at, lambda at=at: whole[:at]
    yield "unknown member", lambda: changed("layers/zzz.ndjson", b"")


def container_mutants(data):
    """Every odd container of an archive."""
    members = {m.name: m.data for m in container.members(data)}
    return mutate_container.mutants(sealed(members), members, sealed)


def resealed(rows):
    """The stream with count and digest set right."""
    body = b"".join(r + b"\n" for r in rows[:-1])
    trailer = jsontext.parse(rows[-1])
    trailer.update(records=len(rows) - 2, sha256=hashlib.sha256(body).hexdigest())
    return body + jsontext.canonical(trailer) + b"\n"


def stream_mutants(data):
    """Every mutant of a stream."""
    rows = data.split(b"\n")[:-1]

    def joined(new):
        return b"".join(r + b"\n" for r in new)

    shapes = set()
    for i, row in enumerate(rows[:-1]):
        value = jsontext.parse(row, free=intents.is_intent(row))
        shape = (tuple(value), value.get("op"), value.get("event_type"), value.get("stage"))
        if shape in shapes:
            continue
        shapes.add(shape)
        for what, new in object_mutants(row):
            yield "%d %s" % (i, what), lambda i=i, new=new: resealed(rows[:i] + [new()] + rows[i + 1:])
        yield "%d gone" % i, lambda i=i: resealed(rows[:i] + rows[i + 1:])
        yield "%d twice" % i, lambda i=i: resealed(rows[:i + 1] + rows[i:])
        yield "%d moved" % i, lambda i=i, row=row: resealed(rows[:i] + rows[i + 1:-1] + [row, rows[-1]])
        yield "%d not sealed" % i, lambda i=i: joined(rows[:i] + rows[i + 1:])
    for what, new in object_mutants(rows[-1]):
        yield "trailer " + what, lambda new=new: joined(rows[:-1] + [new()])


def main(argv):
    out, containers = argv[0], argv[1] == "containers"
    part = 1 if containers else int(argv[1])
    for n, row in enumerate(argv[2:]):
        stream, _, path = row.rpartition("\t")
        with open(path, "rb") as f:
            data = f.read()
        for what, make in (stream_mutants if stream else container_mutants if containers else archive_mutants)(data):
            key = "%d %s" % (n, what)
            if zlib.crc32(key.encode()) % part:
                continue
            new = make()
            if new == data:
                continue
            target = os.path.join(out, "%s %08x" % (key.replace("/", "_")[:80], zlib.crc32(key.encode())))
            with open(target, "wb") as f:
                f.write(new)
            print("%s\t%s" % (stream, target) if stream else target)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
