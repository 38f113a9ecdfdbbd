"""What wrappers recorded: layers, documents below run/, and blobs.

Implements "Wrappers" of the archive contract, its rules 36 to 38, and the codes that follow.
"""

import hashlib
import ipaddress
import posixpath
import re

import health
import jsontext
import text

CLOCK, NAMES, CHANGES, EXCHANGES = ("layers/clock.ndjson", "layers/dns.ndjson", "layers/filesystem.ndjson", "layers/network.ndjson")
BOX, TICKING, ENV, NET = "run/box.json", "run/clock.json", "run/env.json", "run/net.json"
LAYERS = {CLOCK: "clock-tick-v0", NAMES: "dns-name-v0", CHANGES: "file-change-v0", EXCHANGES: "network-exchange-v0"}
DOCUMENTS = {BOX: "box-v0", TICKING: "clock-v0", ENV: "env-v0", NET: "net-v0"}
POLICY, OTHER_POLICY = "layers/policy.ndjson", "policy_session_of_other_policy"
OUTPUT = {"logs/stdout": "stdout", "logs/stderr": "stderr"}
OF = {CLOCK: TICKING, NAMES: NET, CHANGES: BOX, EXCHANGES: NET}
WRAPPERS = {"runner-box": BOX, "runner-clock": TICKING, "runner-net": NET}
NOTES = {"s8_box": BOX, "s8_clock": TICKING, "s8_dns": NET, "s8_network": NET}
OWN = {"": 403, "client_cut": 403, "upgrade": 501, "not_http": 400}  # what runner-net answers to what is denied
GONE = {"unreachable", "untrusted", "server_cut", "client_cut"}
MODES = {"record": {"allow", "deny"}, "deny": {"deny"}, "replay": {"replay", "miss", "deny"}}
MAX_BLOBS = 1 << 15
_BLOB = re.compile(r"blobs/sha256/([0-9a-f]{64})\Z")
CONNECT, EXCHANGE, ASKED, PARTIAL = "connect_without_exchange", "exchange_without_connect", "names_without_question", "wrapper_record_partial"
REST, MOST, SEEN = "…", 64, 1 << 16
REACHING = {2, 6, 7, 202}  # lines of calls that can make a connection, or ask a server of names


def digest_of(member):
    """The digest in the name of a blob, or None."""
    m = _BLOB.match(member)
    return "sha256:" + m.group(1) if m else None


def raw(member):
    """Whether a member may hold any bytes."""
    return member in OUTPUT or digest_of(member) is not None


def _values(a, member):
    return [x.value for x in a.layers.get(member) or ()]


def _query(q):
    return "&".join(sorted(q.split("&"), key=str.encode))


def _of_exchange(v):
    return (v["host"].encode(), v["port"], v["scheme"], v.get("path", "").encode(), v.get("method", "").encode(),
            _query(v.get("query", "")).encode(), v["request"].get("sha256", ""))


def _bytes_of(text):
    """The name that a text stands for: names are in the order of their bytes, not of their texts."""
    out, raw, i = bytearray(), text.encode(), 0
    while i < len(raw):
        if raw[i:i + 1] != b"\\":
            out.append(raw[i])
            i += 1
        elif raw[i + 1:i + 2] == b"\\":
            out += b"\\"
            i += 2
        elif re.fullmatch(rb"\\x[0-9a-f]{2}", raw[i:i + 4]):
            out.append(int(raw[i + 2:i + 4], 16))
            i += 4
        else:
            return raw  # no text of a name, which is a fault of its own
    return bytes(out)


KEYS = {CLOCK: lambda v: (v["process"], v["tick"]), NAMES: lambda v: (v["name"].encode(), v["type"].encode()),
        CHANGES: lambda v: _bytes_of(v["path"]), EXCHANGES: _of_exchange}


def check(a, report):
    """The lines, where the members were read without a fault."""
    for member, key in KEYS.items():
        values = _values(a, member)
        keys = [key(v) for v in values]
        ordered = all(x <= y if member == EXCHANGES else x < y for x, y in zip(keys, keys[1:]))
        fault = None if ordered else "not in order"
        for v in values:
            fault = fault or _fault(member, v)
        if member == CHANGES:
            fault = fault or _tree(values)
        if fault:
            report.add("wrapped.lines", fault, member)


def _fault(member, v):
    names = [v.get(k, "") for k in ("name", "path", "host", "query") if member != CLOCK]
    if member == CHANGES:
        states = [v[k] for k in ("before", "after") if k in v]
        names += [s.get(k, "") for s in states for k in ("target", "link", "unread")]
        path = v["path"]
        if posixpath.normpath(path) != path or path.startswith("/") or path == ".." or path.startswith("../"):
            return "no path below the workspace"
        if _op(v.get("before"), v.get("after")) != v["op"]:
            return "another op than before and after make"
        if any("link" in s and _bytes_of(s["link"]) >= _bytes_of(path) for s in states):
            return "a link to what is not the first name"
    if member == NAMES and "answer" in v and (v["type"] != "A" or not _told(v["answer"])):
        return "an answer that there cannot be"
    if member == EXCHANGES:
        if _ip(v["address"]) != v["address"]:
            return "no address"
        if v["scheme"] != "tcp" and ("response" in v or "status" in v) and not (v.get("method") and v.get("path") and "status" in v):
            return "an answer without method, path or status"
        if v["scheme"] != "tcp" and not _plausible(v):
            return "a failure or status that does not follow from who answered"
        for m in (v["request"], v.get("response", {})):
            names += [h[k] for h in m.get("headers", []) + m.get("trailers", []) for k in ("name", "value")]
        if ("rule" in v) != (v["decision"] == "allow") and v["decision"] in ("allow", "deny") or "response" in v and v["decision"] in ("deny", "miss"):
            return "a rule or a response that the decision cannot have"
    return None if all(text.is_text(n) for n in names) else "not in text form"


def _plausible(v):
    decision, failure, status = v["decision"], v.get("failure", ""), v.get("status", 0)
    if not v.get("method"):
        return decision == "deny" and failure != "" and not status and "response" not in v
    if "response" in v:
        return failure in ("", "client_cut", "server_cut", "request_cut")
    if decision == "allow" or decision == "replay" and status == 502:
        return status == 502 and failure in GONE
    if decision == "miss":
        return status == 502 and failure in ("", "client_cut")
    return OWN.get(failure) == status


def _op(before, after):
    """The op of a name that was before and is after; None of equal states."""
    if before is None or after is None:
        return "add" if before is None else "delete"
    differs = lambda *keys: any(before.get(k) != after.get(k) for k in keys)
    if differs("kind"):
        return "replace"
    if any(s.get("unread") or s.get("mount") for s in (before, after)) or not differs("link") and differs("size", "sha256", "target", "device"):
        return "modify"
    return "link" if differs("link") else "mode" if differs("mode", "uid", "gid") else None


def _directory(state):
    return state is not None and state["kind"] == "dir"


def _above(path):
    return path.rpartition(b"/")[0]


def _first(state):
    return state is not None and state["kind"] == "file" and "link" not in state


def _to(state):
    """The first name of the file that a state is another name of, or None."""
    return _bytes_of(state["link"]) if state is not None and "link" in state else None


def _loose(lines, was):
    """Why a link of a change, or one of the base that stays, leads to no first name of a file, or None. was has the names that did not change, None if they are not known."""
    for v in lines.values():
        to = _to(v.get("after"))
        if to is not None and to not in lines and was is not None and not _first(was.get(to)):
            return "%s is a link to what is not there" % v["path"]
    for path, state in (was or {}).items():
        to = _to(state)
        if path not in lines and to in lines and not _first(lines[to].get("after")):
            return "%r stays a link to what is not there" % path
    return None


def _tree(values):
    """Why the changes of a workspace do not go together, or None."""
    lines = {}
    for v in values:
        for when in ("before", "after"):
            to = _to(v.get(when))
            if to in lines and not _first(lines[to].get(when)):
                return "%s is a link to what is no file then" % v["path"]
        path, before, after = _bytes_of(v["path"]), v.get("before"), v.get("after")
        if path == b"." and not (_directory(before) and _directory(after)):
            return "the workspace itself is no directory"
        above = lines.get(_above(path))
        if above and (before is not None and not _directory(above.get("before")) or after is not None and not _directory(above.get("after"))):
            return "%s is in something that is no directory" % v["path"]
        lines[path] = v
    return None


def _of_base(values):
    """Whether there are changes that only something that was there can have."""
    paths = {_bytes_of(v["path"]) for v in values}
    return any(p != b"." and ("before" in v or _above(p) and _above(p) not in paths or _to(v.get("after")) not in paths | {None}) for p, v in ((_bytes_of(v["path"]), v) for v in values))


def _not_of_base(values, entries):
    """Why the changes are not of this base, or None."""
    was = {_bytes_of(e["path"]): {k: x for k, x in e.items() if k not in ("schema", "path", "modified_ns")} for e in entries}
    keys = [_bytes_of(e["path"]) for e in entries]
    if any(x >= y for x, y in zip(keys, keys[1:])) or any(_above(k) and not _directory(was.get(_above(k))) for k in keys):
        return "the list is no tree"
    if not _directory(was.get(b".")) or any(posixpath.normpath(k) != k or k == b".." or k.startswith(b"/") for k in keys) \
            or not all(text.is_text(e.get(k, "")) for e in entries for k in ("path", "target", "link", "unread")):
        return "the list has a name that is none, or not the base itself"
    if any(_to(e) is not None and not (_to(e) < k and _first(was.get(_to(e)))) for k, e in was.items()):
        return "a link of the list leads to no first name of a file"
    lines = {_bytes_of(v["path"]): v for v in values}
    for path, v in lines.items():
        if path == b"." and "before" not in v:
            continue
        if v.get("before") != was.get(path):
            return "%s is not before what it is in the base" % v["path"]
        if _above(path) and _above(path) not in lines and not _directory(was.get(_above(path))):
            return "%s is in no directory" % v["path"]
    for path in was:
        above = lines.get(_above(path))
        if above and not _directory(above.get("after")) and path not in lines:
            return "a directory goes away, and %r does not" % path
    return _loose(lines, was)


def _ip(value):
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        return None


def _told(value):
    return _ip(value) == value and (value == "127.0.0.1" or ipaddress.ip_address(value) in ipaddress.ip_network("198.18.0.0/15"))


def check_documents(a, report):
    """The documents, the layers, their counts and their notes."""
    for fault, member in _documents(a):
        report.add("wrapped.documents", fault, member)
    for note, member in NOTES.items():
        want = [_note(a, note, a.documents[member])] if a.documents.get(member) else []
        if a.notes.texts(note) != want:
            report.add("wrapped.documents", "%s is %s, expected %s" % (note, a.notes.texts(note), want), health.HEALTH)


def _note(a, note, d):
    if note == "s8_box":
        return "workspace=%s changes=%d unread=%d base_changed=%d survivors_killed=%d" % (d["workspace"], sum(d["changes"].values()), d["unread"], d["base_changed"], d["survivors_killed"])
    if note == "s8_clock":
        return "ticks=%d bad_lines=%d lost=%d unended=%d" % (a.counts.get(CLOCK, 0), d["bad_lines"], d["lost"], d["unended"])
    if note == "s8_dns":
        return "names=%d lost=%d" % (d["names"], d["names_lost"])
    return "mode=%s exchanges=%d unused=%d" % (d["mode"], d["exchanges"], d["unused"])


def _documents(a):
    for member, document in OF.items():
        if member in a.members and not a.documents.get(document):
            yield "the layer without its document", member
        elif member in a.members and not a.counts.get(member):
            yield "no line", member
    box, clock, env, net = (a.documents.get(m) for m in (BOX, TICKING, ENV, NET))
    if box:
        ops = [v["op"] for v in _values(a, CHANGES)]
        if box["changes"] != {op: ops.count(op) for op in ops}:
            yield "the changes are not those of the layer", BOX
        if "base" not in box and _of_base(_values(a, CHANGES)):
            yield "the workspace was empty, and a change is of something that was there", CHANGES
        if sum(1 for v in _values(a, CHANGES) if v.get("after", {}).get("unread") or v.get("after", {}).get("mount")) > box["unread"]:
            yield "fewer names that are not known than the layer has", BOX
        if box["namespaces"] != ["mount", "pid", "ipc", "uts"] + ["user"] * box["rootless"]:
            yield "other namespaces", BOX
        if box["fresh"] != sorted(set(box["fresh"]), key=str.encode) or any(not d.startswith("/") or posixpath.normpath(d) != d for d in box["fresh"]):
            yield "fresh has no absolute paths, in order", BOX
        if "base" in box and (box["base"]["kind"] == "tar") != (box["workspace"] == "unpacked"):
            yield "another workspace than of such a base", BOX
    if clock and clock["runtimes"] != sorted(set(clock["runtimes"])):
        yield "runtimes", TICKING
    lost, unended = _missing(_values(a, CLOCK))
    if clock and (clock["lost"] != lost or clock["unended"] < unended):
        yield "lost and unended are not those of the layer", TICKING
    if net:
        values = _values(a, EXCHANGES)
        if (net["exchanges"], net["names"]) != (len(values), len(_values(a, NAMES))):
            yield "the counts are not those of the layers", NET
        if not {v["decision"] for v in values} <= MODES[net["mode"]] or not {v["port"] for v in values} <= set(net["ports"]):
            yield "an exchange that there cannot be", NET
        if net["ports"] != sorted(net["ports"]) or net["match_headers"] != sorted(net["match_headers"], key=str.encode):
            yield "not sorted", NET
        if net["mode"] == "record" and "rules" not in net and any("rule" in v for v in values):
            yield "a rule of no file", NET
    if env:
        for member, key in OUTPUT.items():
            m = a.members.get(member)
            if not m or (m.size, m.digest) != (env[key]["bytes"], env[key]["sha256"]):
                yield "not what %s says" % ENV, member
        if [e["name"] for e in env["env"]] != sorted((e["name"] for e in env["env"]), key=str.encode):
            yield "env is not sorted", ENV
        if {w for w, d in WRAPPERS.items() if a.documents.get(d)} != set(env["wrappers"]):
            yield "other wrappers than documents", ENV
        started = next((x.value for x in a.events or () if x.value["type"] == "run_started"), None)
        if started and not _behind(started["command"], env["wrappers"], env["command"]):
            yield "not the end of the command", ENV
        if not env["stdin"]["bytes"] and env["stdin"]["sha256"] != "sha256:" + hashlib.sha256(b"").hexdigest():
            yield "stdin is empty, and has another digest", ENV
        if "policy" in env and not _policy(a, env["policy"]["sha256"]):
            yield "another policy file than notes and decisions name", ENV


def _policy(a, digest):
    """Whether notes and decisions name this policy file, or say that sessions had another."""
    named = {a.notes.values(n).get("policy") for n in ("s4_network_policy", "s4_file_policy") if a.notes.has(n)}
    if a.report and not any(c.startswith(OTHER_POLICY + ":") for c in a.report["ambiguities"] + a.report.get("notes", [])):
        named |= {v["policy_digest"] for v in _values(a, POLICY) if "policy_digest" in v and v.get("source") != "runner-proc"}
        if a.notes.has("s4_tool_policy") and not a.notes.has("s4_process_api"):
            named.add(a.notes.values("s4_tool_policy").get("policy"))
    return named <= {digest}


def _behind(whole, wrappers, command):
    n = len(whole) - len(command)
    if n < 0 or whole[n:] != command:
        return False
    before = whole[:n]
    for w in wrappers:
        at = next((i for i, word in enumerate(before) if word.rstrip("/").rpartition("/")[2] == w), None)
        if at is None:
            return False
        before = before[at + 1:]
    return True


def _missing(ticks):
    lost = unended = 0
    for process in {t["process"] for t in ticks}:
        of = [t for t in ticks if t["process"] == process]
        lost += of[-1]["tick"] + 1 - len(of)
        unended += of[-1]["op"] != "end"
    return lost, unended


def check_blobs(a, report):
    """Each blob is named, and what is needed is there, as long as whoever names it says."""
    there = {digest_of(m): a.members[m].size for m in a.members if digest_of(m)}
    named = _Named()
    named.all(a)
    box = a.documents.get(BOX)
    listed = box and box.get("base", {}).get("list")
    if listed:
        named.add(listed, there.get(listed, 0), True)
        if listed in there:
            entries = _entries(a.members["blobs/sha256/" + listed[7:]].data)
            if entries is None or not _same_base(box["base"], entries):
                report.add("wrapped.blobs", "another base than its list", BOX)
            else:
                fault = _not_of_base(_values(a, CHANGES), entries)
                if fault:
                    report.add("wrapped.blobs", fault, CHANGES)
                for e in entries:
                    if "sha256" in e:
                        named.add(e["sha256"], e["size"], True)
    for digest, sizes in sorted(named.sizes.items()):
        if len(sizes) > 1 or digest in there and sizes != {there[digest]}:
            report.add("wrapped.blobs", "%s has another length" % digest, "manifest.json")
    for digest in sorted(named.needed - set(there)):
        report.add("wrapped.blobs", "%s is not there" % digest, "manifest.json")
    for digest in sorted(set(there) - set(named.sizes)):
        report.add("wrapped.blobs", "nothing names it", "blobs/sha256/" + digest[7:])


class _Named:
    """The digests that something names, with the lengths that are said of them."""

    def __init__(self):
        self.sizes, self.needed = {}, set()

    def add(self, digest, size, needed):
        self.sizes.setdefault(digest, set()).add(size)
        if needed:
            self.needed.add(digest)

    def all(self, a):
        for v in _values(a, EXCHANGES):
            for m in (v["request"], v.get("response", {})):
                if "sha256" in m:
                    self.add(m["sha256"], m["bytes"], True)
        for v in _values(a, CHANGES):
            for k in ("before", "after"):
                if "sha256" in v.get(k, {}):
                    self.add(v[k]["sha256"], v[k]["size"], k == "after" and v["op"] in ("add", "modify", "replace"))
        env = a.documents.get(ENV)
        for m in (env["stdin"], env.get("policy")) if env else ():
            if m and m["bytes"]:
                self.add(m["sha256"], m["bytes"], True)


def _entries(data):
    out = []
    if not data or not data.endswith(b"\n"):
        return None
    for line in data[:-1].split(b"\n"):
        try:
            value = jsontext.parse(line)
        except jsontext.BadJSON:
            return None
        if not isinstance(value, dict) or value.get("schema") != "runner.base_entry.v0":
            return None
        out.append(value)
    return out


def _same_base(base, entries):
    h = hashlib.sha256()
    for e in entries:
        h.update(jsontext.canonical({k: v for k, v in e.items() if k != "modified_ns"}) + b"\n")
    size = sum(e["size"] for e in entries if e["kind"] == "file" and "link" not in e)
    return (base["digest"], base["entries"], base["bytes"]) == ("sha256:" + h.hexdigest(), len(entries), size)


def codes(a):
    """The codes that follow: of each kind the whole set."""
    box, clock, net = (a.documents.get(m) for m in (BOX, TICKING, NET))
    bad = {"runner-box": box and (box["unread"] or box["base_changed"]), "runner-clock": clock and (clock["bad_lines"] or clock["lost"]),
           "runner-net": net and net["names_lost"]}
    out = {PARTIAL: {"%s:%s" % (PARTIAL, w) for w, is_ in bad.items() if is_}, CONNECT: set(), EXCHANGE: set(), ASKED: set()}
    if net:
        out[CONNECT] = _connects(a, net)
        if a.health["kernel_layer"] == "complete" and not a.notes.number("normalize_drop", "dropped"):
            out[EXCHANGE], out[ASKED] = _unasked(a, net)
    return out


def _address(value):
    host, _, port = value.rpartition(":")
    try:
        ip = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
    ip = getattr(ip, "ipv4_mapped", None) or ipaddress.ip_address(str(ip).partition("%")[0])
    return (str(ip), int(port)) if port.isdigit() else None


def _connects(a, net):
    seen = set()
    for x in a.kernel:
        v = x.value
        if v["event_type"] == 2 and 0 in (v.get("return_value"), v.get("connect_result")) and v["value"]:
            seen.add(_address(v["value"]))
    seen.discard(None)
    if len(seen) > SEEN:
        return {"%s:%s" % (CONNECT, REST)}
    return _named(CONNECT, {(ip, port) for ip, port in seen - _exchanged(a) if port in net["ports"] and port != 53})


def _exchanged(a):
    """Where the exchanges are said to be with."""
    return {(_address(v["address"] + ":1") or ("", 0))[:1] + (v["port"],) for v in _values(a, EXCHANGES)}


def _named(code, endpoints):
    found = sorted(("%s:%s:%d" % (code, "[%s]" % ip if ":" in ip else ip, port) for ip, port in endpoints), key=str.encode)
    return set(found[:MOST]) | ({"%s:%s" % (code, REST)} if len(found) > MOST else set())


def _unasked(a, net):
    """The codes of exchanges that no kernel line asked for, and the one of names."""
    tried = {_address(x.value["value"]) for x in a.kernel if x.value["event_type"] in REACHING and x.value["value"]} - {None}
    names = {ASKED} if net["names"] and not any(port == 53 for _, port in tried) else set()
    tried |= {(ip, port) for nowhere, port in tried if nowhere in ("0.0.0.0", "::") for ip in ("127.0.0.1", "::1")}
    alone = _exchanged(a) - tried
    if len(tried) > SEEN:
        return set(), names
    return ({"%s:%s" % (EXCHANGE, REST)} if len(alone) > SEEN else _named(EXCHANGE, alone)), names
