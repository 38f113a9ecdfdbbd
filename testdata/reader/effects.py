"""What kernel lines say as effects, and whose window a binding has.

Implements the verbs of "Bindings" of the derivation document.
"""

import ipaddress
import re

import kernel

_VERBS = {
    4: "exec", 200: "exec", 201: "exec", 2: "connect", 6: "send", 7: "send", 202: "send", 203: "bind", 204: "listen", 205: "exec_check",
    206: "exec", 10: "file_blocked", 20: "connect_blocked", 211: "unlink", 212: "rmdir", 213: "rename", 214: "rename", 215: "link", 216: "link",
    217: "symlink", 219: "mkdir", 220: "truncate", 221: "chmod", 222: "chown", 223: "mknod", 224: "mount",
    225: "mount", 226: "umount", 227: "move_mount", 228: "move_mount", 229: "pivot_root", 230: "pivot_root",
    231: "setxattr", 232: "xattr", 233: "removexattr", 234: "mount_setattr", 235: "open_tree", 236: "fspick", 237: "fsconfig",
    238: "fsmount", 239: "mq_open", 241: "mq_unlink", 242: "bpf_obj_pin", 243: "bpf_obj_get", 244: "kernel_file",
}

_NAMES = {"read", "write", "read_write", "open"} | set(_VERBS.values()) - {"xattr", "fsconfig", "fsmount", "mq_open", "mq_unlink"}


def of(v):
    """What a kernel line says as an effect, or None."""
    if not v["value"]:
        return None
    if v["event_type"] == kernel.OPEN:
        mode = v.get("access_mode")
        verb = mode if mode in ("read", "write", "read_write") else "open"
    else:
        verb = _VERBS.get(v["event_type"])
    if verb is None:
        return None
    if v.get("status") == "unproven":
        verb = "unproven-" + verb
    if v.get("status") == "error" and not verb.endswith("_blocked"):
        verb = "failed-" + verb
    return "%s %s" % (verb, v["value"])


def on(target, v):
    """Whether a kernel line is an effect on a target."""
    text = of(v)
    return bool(text) and v.get("status") not in ("error", "unproven") and done(text) \
        and (text.split(" ", 1)[0] in _NAMES) and _holds(target, v["value"])


def done(text):
    """Whether an effect was done: it neither failed nor was blocked."""
    verb = text.split(" ", 1)[0]
    return not verb.startswith(("failed-", "unproven-")) and not verb.endswith("_blocked")


def own_window(b):
    """Whether the window of a binding is that of its call."""
    return (b["window"]["start"], b["window"]["end"]) == (
        "tool_call_started:" + b["tool_call_id"], "tool_call_finished:" + b["tool_call_id"])


def _endpoint(value):
    """The text by which an endpoint is compared: an IPv4-mapped address is the IPv4 one. None of what is none."""
    host, colon, port = value.rpartition(":")
    bare = host[1:-1] if host[:1] == "[" and host[-1:] == "]" else host
    try:
        ip = ipaddress.ip_address(bare)
    except ValueError:
        return None
    if not colon or not re.match(r"\d+\Z", port, re.ASCII) or int(port) >= 1 << 16 or (bare == host) != (ip.version == 4):
        return None
    mapped = getattr(ip, "ipv4_mapped", None)
    return "%s:%d" % (mapped, int(port)) if mapped else value


def _is_host(target):
    """Whether a target names a host, of which nobody knows the addresses."""
    host, colon, port = target.rpartition(":")
    return bool(host and colon and re.match(r"\d+\Z", port, re.ASCII)) and int(port) < 1 << 16 \
        and not target.startswith(("/", "unix:")) and _endpoint(target) is None


def _holds(target, value):
    if (_endpoint(value) or value) == (_endpoint(target) or target):
        return True
    return value.startswith(target if target == "/" else target + "/") and ".." not in value.split("/")


_DRAFT = {"write", "read_write", "rename", "unlink", "link", "chmod", "chown", "truncate"}


def _beside(target, verb, value):
    """Whether an effect is beside a target: its directory is read, one above it made, or a draft of it changed."""
    at = target.rfind("/")
    if target[:1] != "/" or ".." in value.split("/"):
        return False
    where, name = target[:max(at, 1)], target[at + 1:]
    if verb == "read":
        return value == where
    if verb == "mkdir":
        return len(value) > 1 and _holds(value, where)
    if not name or verb not in _DRAFT or "/" not in value:
        return False
    at = value.rfind("/")
    return value[:max(at, 1)] == where and value[at + 1:].startswith((name + ".", "." + name + "."))


def asked(text, targets, beside=True):
    """How an effect goes with the targets of a call: None is no effect, "yes", "host", "no", or "text" if it
    need not be about a name."""
    verb, _, value = text.partition(" ")
    if not done(text) or verb not in _NAMES:
        return None
    if any(_holds(t, value) for t in targets):
        return "yes"
    if beside and verb not in ("connect", "send", "bind", "listen") and any(_beside(t, verb, value) for t in targets):
        return "yes"
    if verb in ("connect", "send") and _endpoint(value) and any(map(_is_host, targets)):
        return "host"
    return "text" if verb == "mount" else "no"
