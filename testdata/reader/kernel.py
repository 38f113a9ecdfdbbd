"""Kernel lines: what follows from their numbers, and what they feed.

Implements the tables of `assay.runner.kernel_event.v0` in the archive contract: derived
fields, endpoints, surface sets, and the network fields of observation-health.
"""

import ipaddress
import re

import text

LAYER = "layers/kernel.ndjson"
OPEN, CONNECT, EXEC, FILE_BLOCKED, BLOCKED = 1, 2, 4, 10, 20
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
        fault = _derived(line.value, own)
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
    pending = v["event_type"] == CONNECT and result == EINPROGRESS
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
