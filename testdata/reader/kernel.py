"""Kernel lines: what follows from their numbers, and what they feed.

Implements the tables of `assay.runner.kernel_event.v0` in the archive contract: derived
fields, endpoints, surface sets, and the network fields of observation-health.
"""

import ipaddress
import re

import text

LAYER = "layers/kernel.ndjson"
OPEN, CONNECT, EXEC, BLOCKED = 1, 2, 4, 20
EINPROGRESS = -115
O_TMPFILE = 0o20000000
FILES = {1, 10, 201} | set(range(211, 218)) | set(range(219, 225)) | {226, 227, 228, 229, 230}
ENDPOINTS = {2, 6, 7, 20, 202, 203, 204}
EXECS = {4, 200}
DATAGRAMS = {6, 7, 202}
_ACCESS = ("read", "write", "read_write", "unknown")
_HINTS = (("create", 0o100), ("truncate", 0o1000), ("append", 0o2000))
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
        hints = [name for name, bit in _HINTS if flags & bit]
        if flags & (0o200 if own else 0o400):
            hints.append("exclusive")
        if v.get("operation_flags", []) != hints:
            return "operation_flags do not follow from flags"
    if own and opening and any(k not in v for k in ("flags", "mode", "access_mode")):
        return "an open without flags, mode or access_mode"
    if own and opening and v["mode"] and not v["flags"] & (0o100 | O_TMPFILE):
        return "a mode of an open that can create nothing"
    return _status(v, own) or _blocked(v, own)


def _status(v, own):
    given, result = v.get("status"), v.get("return_value")
    if result is None:
        return None
    want = "success" if result >= 0 else "error"
    if v["event_type"] == CONNECT and result == EINPROGRESS:
        want = None
    if given != want and (own or given is not None):
        return "status does not follow from return_value"
    return None


def _blocked(v, own):
    extra = [k for k in ("cgroup_id", "network_destination", "network_port", "rule_id") if k in v]
    if v["event_type"] != BLOCKED:
        return "%s is only for connect_blocked" % extra[0] if extra else None
    if own and not {"cgroup_id", "rule_id"} <= set(extra):
        return "connect_blocked without cgroup_id or rule_id"
    where = ip_endpoint(v["value"])
    given = (v.get("network_destination"), v.get("network_port"))
    if where is None:
        return "a destination without an IP endpoint" if given != (None, None) else None
    if given != where and (own or given != (None, None)):
        return "the destination is not that of the value"
    return None


def check_network(health, lines, own, report):
    """Coverage and claim scope against the kept lines."""
    kinds = {v["event_type"] for v in (line.value for line in lines) if ip_endpoint(v["value"])}
    connects, datagrams = bool(kinds & {CONNECT, BLOCKED}), bool(kinds & DATAGRAMS)
    coverage, scope = health.get("network_protocol_coverage"), health.get("network_endpoint_claim_scope")
    want = expected_network(health["kernel_layer"], connects, datagrams)
    if own:
        if (coverage, scope) != want:
            report.add("health.network", "%s/%s, expected %s/%s" % (coverage, scope, *want),
                       "observation-health.json")
        return
    fits = {"absent": "not_applicable", None: None, "unknown": "unknown"}.get(coverage, "diagnostic_only")
    if (scope or "unknown") != (fits or "unknown") or health["kernel_layer"] == "absent" and fits not in (None, "not_applicable"):
        report.add("health.network", "%s with %s" % (scope, coverage), "observation-health.json")
        return
    if health["kernel_layer"] == "absent":
        return
    seen_connect = coverage in (None, "unknown", "connect_only", "connect_and_datagram_peer_observed")
    seen_datagram = coverage in (None, "unknown", "datagram_peer_observed", "connect_and_datagram_peer_observed")
    if connects and not seen_connect or datagrams and not seen_datagram:
        report.add("health.network", "%s, but the lines say more" % coverage, "observation-health.json")


def expected_network(layer, connects, datagrams):
    """The two network fields of an archive of this runner."""
    if layer == "absent":
        return "absent", "not_applicable"
    if connects and datagrams:
        return "connect_and_datagram_peer_observed", "diagnostic_only"
    if connects or datagrams:
        return ("connect_only" if connects else "datagram_peer_observed"), "diagnostic_only"
    return ("unknown", "unknown") if layer == "partial_ringbuf_drops" else ("absent", "not_applicable")
