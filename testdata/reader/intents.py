"""What the command says that it wants to have done.

Implements "Intents" of the archive contract beyond its schema, and the rules about the layer.
"""

import ipaddress
import re
import urllib.parse

import health
import jsontext
import text

INTENTS, NOTE = "layers/intents.ndjson", "s6_intents"
MAX_LINE, MAX_NESTING, MAX_PATH, MAX_NAME = 1 << 16, 15, 4095, 255
_URL = re.compile(r"https?://(\[[^]]*\]|[^/?:]*)(?::([0-9]+))?([^?]*)", re.ASCII)


def line_form(raw, v):
    """The fault of a line beyond its schema, or None."""
    if len(raw) > MAX_LINE:
        return "a line of more than %d bytes" % MAX_LINE
    if v.get("labels", []) != sorted(set(v.get("labels", [])), key=str.encode):
        return "labels are not sorted and unique"
    if _nesting(v["payload"]) > MAX_NESTING:
        return "too many objects in one another"
    if v["intent_type"] == "files.write":
        return _path(v["payload"]["path"])
    if v["intent_type"] == "http.request":
        return _url(v["payload"]["url"])
    return None


def _nesting(value):
    if isinstance(value, (dict, list)):
        return 1 + max(map(_nesting, value.values() if isinstance(value, dict) else value), default=0)
    return 0


def _path(path):
    if not text.is_text(path):
        return "a path that is not in text form"
    name = text.decode(path)
    if len(name) > MAX_PATH or any(len(part) > MAX_NAME for part in name.split(b"/")):
        return "a path that no system has"
    return None


def _url(url):
    host, port, path = _URL.match(url).groups()
    if port and int(port) > 65535:
        return "a port that there is not"
    if host.startswith("["):
        try:
            a = ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            return "no address of IPv6"
        if a.ipv4_mapped or a.compressed != host[1:-1]:
            return "another form of an address"
    if {b".", b".."} & set(urllib.parse.unquote_to_bytes(path).split(b"/")):
        return "a path that is not plain"
    return None


def in_order(value):
    """Whether the keys of a payload are in the order of bytes, at each depth."""
    if isinstance(value, list):
        return all(map(in_order, value))
    if not isinstance(value, dict):
        return True
    return list(value) == sorted(value, key=str.encode) and all(map(in_order, value.values()))


def is_intent(raw):
    """Whether a record of a stream is an intent, whose numbers may be of any form."""
    return raw.startswith(b'{"schema":"assay.runner.intent.v0"')


def parse(member, raw):
    """The value of a line of a member."""
    return jsontext.parse(raw, free=member == INTENTS)


def check(a, report):
    """No key of an intent is there twice."""
    seen = set()
    for x in a.layers.get(INTENTS) or ():
        key = x.value.get("idempotency_key")
        if key in seen and key is not None:
            report.add("intents.keys", "the key of an intent before it", INTENTS, x.number)
        seen.add(key)


def check_note(a, report):
    """The note is there exactly if there are lines, and counts them; there is no member without lines."""
    n = a.counts.get(INTENTS, 0)
    if INTENTS in a.members and not n:
        report.add("health.note", "the layer has no line", health.HEALTH)
    texts = a.notes.texts(NOTE)
    if bool(texts) != bool(n):
        report.add("health.note", "%s and the layer do not go together" % NOTE, health.HEALTH)
    elif n and a.notes.values(NOTE).get("intents") != str(n):
        report.add("health.note", "%s is %s, the layer has %d lines" % (NOTE, texts, n), health.HEALTH)
