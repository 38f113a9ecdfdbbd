"""Kernel lines: what follows from their numbers, and what they feed.

Implements the tables of `assay.runner.kernel_event.v0` in the archive contract: derived
fields, endpoints, surface sets, and the network fields of observation-health.
"""

import ipaddress
import re

import tables
import text

LAYER = "layers/kernel.ndjson"
OPEN, CONNECT, EXEC, FILE_BLOCKED, BLOCKED, SCRIPT, UNDECODED = 1, 2, 4, 10, 20, 200, 240
EINPROGRESS = -115
O_TMPFILE = 0o20000000
FILES = {1, 10, 201, 205} | set(range(211, 218)) | set(range(219, 225)) | {226, 227, 228, 229, 230, 231, 233, 234, 235, 236, 242, 243, 244}
ENDPOINTS = {2, 6, 7, 20, 202, 203, 204}
EXECS = {4, 200, 206}
DATAGRAMS = {6, 7, 202}
_ACCESS = ("read", "write", "read_write", "unknown")
HINTS = (("create", 0o100), ("truncate", 0o1000), ("append", 0o2000))
HINT_ORDER = ["create", "truncate", "append", "exclusive"]
_ENDPOINT = re.compile(r"(?:(\d{1,3}(?:\.\d{1,3}){3})|\[([0-9a-f:.]+)\]):(0|[1-9]\d{0,4})\Z", re.ASCII)


def surface_set(event_type):
    """The set of the surface that a line feeds, or None."""
    if event_type in FILES:
        return "filesystem_paths"
    if event_type in ENDPOINTS:
        return "network_endpoints"
    return "process_execs" if event_type in EXECS else None


def ip_endpoint(value):
    """Address and port of an IP endpoint, or None."""
    m = _ENDPOINT.match(value or "")
    if not m:
        return None
    host, port = m.group(1) or m.group(2), int(m.group(3))
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    if port > 65535 or (address.version == 4) != bool(m.group(1)):
        return None
    return host, port


def check_lines(lines, own, report):
    """The derived fields of each line, and in archives of this runner its text."""
    for line in lines:
        fault = _derived(line.value, own) or own and _can(line.value)
        if fault:
            report.add("kernel.derived", fault, LAYER, line.number)
        if own and line.value["value"] is not None and not text.is_text(line.value["value"]):
            report.add("kernel.text", "value is not the escape of a byte string", LAYER, line.number)


def _derived(v, own):
    opening = v["event_type"] == OPEN
    if "flags" in v:
        flags = v["flags"]
        if "access_mode" in v and v["access_mode"] != _ACCESS[flags & 3]:
            return "access_mode does not follow from flags"
        if opening and not _hints(v.get("operation_flags", []), flags, own):
            return "operation_flags do not follow from flags"
    if own and opening and any(k not in v for k in ("flags", "mode", "access_mode")):
        return "an open without flags, mode or access_mode"
    if own and opening and v["mode"] and not v["flags"] & (0o100 | O_TMPFILE):
        return "a mode of an open that can create nothing"
    return _status(v, own) or _blocked(v, own)


def _hints(given, flags, own):
    """Whether operation flags are those of the open flags; another implementation reads another bit."""
    hints = [name for name, bit in HINTS if flags & bit]
    first = hints + ["exclusive"] * bool(flags & 0o200)
    if sorted(given) == sorted(first):
        return True
    return not own and sorted(given) == sorted(hints + ["exclusive"] * bool(flags & 0o400))


def _status(v, own):
    given, result = v.get("status"), v.get("return_value")
    if result is None:
        return "a status without return_value" if given not in (None, "unproven") else None
    want = "success" if result >= 0 else "error"
    pending = v["event_type"] == CONNECT and result in (EINPROGRESS, 0)
    if given != want and (given is not None or own and not pending):
        return "status does not follow from return_value"
    return None


def _blocked(v, own):
    given = (v.get("network_destination"), v.get("network_port"))
    where = ip_endpoint(v["value"])
    if None not in given and given != where and _is_address(given[0]):
        return "the value is not the destination"
    if not own or v["event_type"] not in (BLOCKED, FILE_BLOCKED):
        return None
    if "cgroup_id" not in v or "rule_id" not in v or v.get("status") == "success":
        return "a refusal without cgroup_id or rule_id, or a success"
    if given != (v["event_type"] == BLOCKED and where or (None, None)):
        return "the destination is there exactly when the value is an IP endpoint"
    return None


def _is_address(text):
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


EVENT_TYPES = {int(r[0]) for r in tables.rows("ARCHIVE.md", "event-types") if r[0].isdigit()}
OPENING = {"flags", "mode", "resolve", "access_mode", "operation_flags"}
REFUSING, DESTINATION = {"cgroup_id", "rule_id"}, {"network_destination", "network_port"}
_PAIRS = [tuple(map(int, re.findall(r"(?:^|; |, )(\d+) \(", r[2]))) for r in tables.rows("STREAMS.md", "operations")]
SECOND = {p[0]: p[1] for p in _PAIRS if len(p) == 2 and p[1] != 200}
ZERO = {2, 4, 200, 203, 204, 205, 206, 211, 212, 213, 214, 215, 216, 217, 219, 220, 221, 222, 223, 224, 225, 226, 227, 228, 229, 230,
        241, 242, 244}
OPENED = {1, 234, 235, 236, 238, 239, 243}  # the calls return a descriptor
LIMIT = 1 << 22  # of the numbers of tasks
OUTCOME = ("pid", "return_value", "status", "doubt")


def _can(v):
    """What a line of this runner cannot say, whatever happened."""
    kind, result = v["event_type"], v.get("return_value")
    opening = OPENING - ({"flags"} if kind in (213, 214) else set())
    if kind not in EVENT_TYPES or v["pid"] == 0:
        return "an event type or a process that there is not"
    if kind != OPEN and opening & set(v) or kind not in (BLOCKED, FILE_BLOCKED) and REFUSING & set(v) \
            or kind != BLOCKED and DESTINATION & set(v):
        return "keys of lines of another type"
    if result is not None and (result < -4095 or kind in OPENED and result >= 1 << 31 or kind in ZERO and result > 0):
        return "a result that the call never has"
    if kind == 201 and v.get("status") == "success" or kind == CONNECT and result == EINPROGRESS and "status" in v:
        return "an outcome that the call never has"
    if kind in EXECS and v.get("status", "success") != "success":
        return "a program that was started, and was not"
    value = v["value"] or ""
    if kind == UNDECODED and v["value"] is not None:
        return "a value of what was not decoded"
    if (kind in FILES or kind in EXECS and kind != EXEC) and value[:1] == "/" and value != "/" \
            and {"", "."} & set(value[1:].split("/")):
        return "a path with a component that is no name"
    if kind in ENDPOINTS:
        if value and not value.startswith("unix:") and not _spelled(value):
            return "a value that is no endpoint"
    elif "\0" in value:
        return "a NUL in a path"
    return None


def _spelled(value):
    """Whether a value is an IP endpoint in the one form that this runner writes."""
    where = ip_endpoint(value)
    if not where:
        return False
    address, port = ipaddress.ip_address(where[0]), where[1]
    if address.version == 4:
        return value == "%s:%d" % (address, port)
    short = "::ffff:%s" % address.ipv4_mapped if address.ipv4_mapped else str(address)
    return value == "[%s]:%d" % (short, port)


def order_fault(lines, notes):
    """The fault of lines as neighbours: pairs with one outcome, and canonical numbers that do not fall."""
    values, alone = [x.value for x in lines], 0
    for a, b in zip([None] + values, values + [None]):
        want = SECOND.get(a["event_type"]) if a else None
        pair = want and b and b["event_type"] == want and all(a.get(k) == b.get(k) for k in OUTCOME)
        if want and not pair:
            alone += 1
        if b and b["event_type"] in SECOND.values() and not pair:
            alone += 1
        if b and b["event_type"] == SCRIPT and not (a and a["event_type"] == EXEC and all(
                a.get(k) == b.get(k) for k in ("pid", "return_value", "doubt"))):
            alone += 1
    if alone > notes.number("normalize_drop", "dropped"):
        return "%d lines lack their other line" % alone
    if not notes.has("s2_path_quality") and any(
            not v["value"] and (v["event_type"] == EXEC or v["event_type"] == OPEN and v.get("status") == "success") for v in values):
        return "a name is missing, and nothing counted it"
    if not notes.has("canonical_pids") and any(v["pid"] >= LIMIT for v in values):
        return "a number that no process has"
    if notes.has("canonical_pids") and any(a["pid"] > b["pid"] for a, b in zip(values, values[1:])):
        return "numbers of processes fall"
    return None


def calls(lines, shows):
    """The number of calls, those with two lines once, whose lines show something."""
    count, last = 0, None
    for v in (x.value for x in lines):
        second = last and (SECOND.get(last["event_type"]) == v["event_type"] and all(last.get(k) == v.get(k) for k in OUTCOME)
                           or (last["event_type"], v["event_type"]) == (EXEC, SCRIPT) and all(
                               last.get(k) == v.get(k) for k in ("pid", "return_value", "doubt")))
        count += not second and bool(shows(v))
        last = None if second and v["event_type"] != SCRIPT else v
    return count


def check_network(health, lines, own, report):
    """Coverage and claim scope against the kept lines."""
    kinds = {v["event_type"] for v in (line.value for line in lines)
             if v["value"] and not v["value"].startswith("unix:")}
    connects, datagrams = bool(kinds & {CONNECT, BLOCKED}), bool(kinds & DATAGRAMS)
    coverage, scope = health.get("network_protocol_coverage"), health.get("network_endpoint_claim_scope")
    want = expected_network(health["kernel_layer"], connects, datagrams)
    fault = (coverage, scope) != want
    if not own and health["kernel_layer"] == "absent":
        fault = coverage not in (None, want[0]) or scope not in (None, want[1])
    elif not own:
        fits = {"absent": "not_applicable", "unknown": "unknown", None: "unknown"}.get(coverage, "diagnostic_only")
        fault = scope not in (None, fits) or connects and coverage in ("absent", "datagram_peer_observed") \
            or datagrams and coverage in ("absent", "connect_only")
    if fault:
        report.add("health.network", "%s with %s" % (coverage, scope), "observation-health.json")


def expected_network(layer, connects, datagrams):
    """The two network fields of an archive of this runner."""
    if layer == "absent":
        return "absent", "not_applicable"
    if connects and datagrams:
        return "connect_and_datagram_peer_observed", "diagnostic_only"
    if connects or datagrams:
        return ("connect_only" if connects else "datagram_peer_observed"), "diagnostic_only"
    return ("unknown", "unknown") if layer == "partial_ringbuf_drops" else ("absent", "not_applicable")
