"""The notes of observation-health.json: their names, their order and their forms.

Implements "Notes" of the archive contract.
"""

import hashlib
import re

import jsontext
import tables

CAPTURE, ONLY, LOSS, DROPS, BLIND = ("s2_kernel_capture", "contract_only_mode", "s2_kernel_loss", "s2_drops",
                                     "s2_blind_spots")
MISSED, ESCAPE, DROP, NOISE, PROCESSES = "s2_missed", "s2_cgroup_escape", "normalize_drop", "normalize_noise", "normalize_processes"
CONFINED = "s3_confinement"
NETWORK_IDS, FILE_IDS, TOOL_POLICY = "s4_network_rules", "s4_file_rules", "s4_tool_policy"
PROCESS_API = "s4_process_api"
NETWORK, FILES, POLICY, SDK, WINDOWS = ("s4_network_policy", "s4_file_policy", "s4_policy_capture", "s5_sdk_capture",
                                        "s6_windows")
SHARED = {CAPTURE, ONLY, POLICY, SDK}  # other implementations write them too
CONFINEMENTS = tuple(r[0] for r in tables.rows("STREAMS.md", "confinements"))
CAUSES = tuple(r[0] for r in tables.rows("STREAMS.md", "counters") if r[1] in ("loss", "escape")) \
    + tuple(r[0] for r in tables.rows("DERIVATION.md", "causes") if r[1] == "count")
QUALITY = tuple(r[0] for r in tables.rows("STREAMS.md", "counters") if r[1] == "quality")
OPERATIONS = tuple(r[0] for r in tables.rows("STREAMS.md", "operations"))
INTERFERENCE = tuple(r[0] for r in tables.rows("STREAMS.md", "interference"))
ENGINES = tuple(r[0] for r in tables.rows("STREAMS.md", "engines"))
BLIND_SPOTS = {r[0] for r in tables.rows("ARCHIVE.md", "blind-spots")}
BLIND_UNDER = {r[0]: r[1] for r in tables.rows("ARCHIVE.md", "blind-spots") if r[1].startswith("under ")}
REASON, UNSUPPORTED = "kernel capture was not requested", "kernel capture is not supported on "
_N, _P, _D = r"(?:0|[1-9]\d{0,19})", r"[1-9]\d{0,19}", r"policy=sha256:[0-9a-f]{64}"

_IDS = r"[1-9]\d{0,4}=[A-Za-z0-9_.-]{1,64}(?:; [1-9]\d{0,4}=[A-Za-z0-9_.-]{1,64})*"


def _words(names, value=_P):
    return r"(?:%s)=%s(?: (?:%s)=%s)*" % ("|".join(names), value, "|".join(names), value)


# The forms of all notes, in their order.
_FORMS = {
    ONLY: r".*",
    CAPTURE: r"monitor_events=%s ringbuf_drops=%s network_protocol_coverage=[^ ]+ network_endpoint_claim_scope=[^ ]+" % (_N, _N),
    LOSS: r"[^ =]+=[^ ]+(?: [^ =]+=[^ ]+)*",
    DROPS: _words(OPERATIONS),
    MISSED: _words(["[^ =]+"]),
    ESCAPE: r"escapes=%s kernel_layer downgraded to absent" % _P,
    "s2_path_quality": _words(QUALITY),
    "s2_survivors_killed": _P,
    "s2_capture_end": r"(?:a signal ended the capture, not the end of the last task|stopped by a signal while the cgroup still had tasks)",
    BLIND: r"inherited descriptors \(%s\)(?:; (?:(?!; ).)+)*" % _N,
    CONFINED: "(?:%s)" % "|".join(CONFINEMENTS) + "(?:; (?:%s))*" % "|".join(CONFINEMENTS),
    NETWORK: r"rules=%s blocked=%s %s" % (_N, _N, _D),
    NETWORK_IDS: _IDS,
    FILES: r"rules=%s blocked=%s mechanism=(?:lsm evidence=observed|fanotify evidence=mixed|landlock evidence=inferred)"
           r" %s" % (_N, _N, _D),
    FILE_IDS: _IDS,
    POLICY: r"decision_events=%s(?: sessions=%s refused=%s)?" % (_N, _N, _N),
    TOOL_POLICY: r"policies=(?:1 %s|(?!1\Z)%s)" % (_D, _P),
    PROCESS_API: r"sessions=%s" % _P,
    SDK: r"sdk_events=%s sdk_tool_calls=%s" % (_N, _N),
    WINDOWS: r"call=%s setup=%s idle=%s agent=%s(?: request=%s)?" % (_N, _N, _N, _N, _P),
    "s6_intents": r"intents=%s self-reported" % _P,
    "s7_times": r"lines=%s" % _N,
    "s8_box": r"workspace=[^ ]+ changes=%s unread=%s base_changed=%s survivors_killed=%s" % (_N, _N, _N, _N),
    "s8_clock": r"ticks=%s bad_lines=%s lost=%s unended=%s" % (_N, _N, _N, _N),
    "s8_dns": r"names=%s lost=%s" % (_N, _N),
    "s8_network": r"mode=[^ ]+ exchanges=%s unused=%s" % (_N, _N),
    "canonical_pids": r"pid is the process's number in the fork tree, not the kernel's",
    NOISE: r"table=(?:(?:v0|loader) values=(?:0 omitted=0|%s omitted=%s)|none values=0 omitted=0)" % (_P, _N),
    PROCESSES: r"processes=(?:0 omitted=0|%s omitted=%s) states_omitted=%s unknown=%s argv=(?:none key=none|(?:hash|full) key=(?:none|sha256:[0-9a-f]{64}))" % (_P, _N, _N, _N),
    DROP: r'program=(?P<program>".*") sha256=(?P<digest>[0-9a-f]{64}) dropped=%s' % _N,
}
ORDER = tuple(_FORMS)
SORTED = (LOSS, DROPS, MISSED, "s2_path_quality")  # words are sorted, and no name is there twice


class Notes:
    """The notes of a health document: their names in order, and the `key=value` pairs of each. A note of this runner
    that has not its form has no pairs."""

    def __init__(self, notes, own=False):
        self.own = own
        parts = [n.partition(": ") for n in notes]
        self.list = [(name if colon else n.partition(":")[0], rest if colon else n.partition(":")[2]) for n, (name, colon, rest) in zip(notes, parts)]
        self.formed = all(colon for _, colon, _ in parts)

    def texts(self, name):
        return [rest for n, rest in self.list if n == name]

    def has(self, name):
        return bool(self.texts(name))

    def values(self, name):
        """The pairs of the first note of the name, as text."""
        for rest in self.texts(name):
            if self.own and name in _FORMS and not well_formed(name, rest):
                return {}
            return dict(reversed([p.split("=", 1) for p in rest.split(" ") if "=" in p]))
        return {}

    def sum(self, name):
        """The sum of all counts of a note."""
        return sum(int(v) for v in self.values(name).values() if v.isdigit())

    def number(self, name, key):
        """One count of a note; 0 where it is not there."""
        value = self.values(name).get(key, "")
        return int(value) if value.isdigit() else 0


def reasons(platform):
    """Why there was no capture."""
    return (REASON,) if platform == "linux" else (REASON, UNSUPPORTED + platform)


def well_formed(name, text):
    """Whether the text of a note has its form, with values that there can be."""
    m = re.match(_FORMS[name] + r"\Z", text, re.ASCII | re.DOTALL)
    if not m:
        return False
    if name == DROP:
        return _program(m.group("program"), m.group("digest"))
    words = [w.partition("=")[::2] for w in text.split(" ") if "=" in w]
    if any(v.isdigit() and int(v) >= 1 << 64 for _, v in words):
        return False
    if name in SORTED and (text.split(" ") != sorted(text.split(" "), key=str.encode) or len(dict(words)) != len(words)):
        return False
    if name == PROCESSES and int(words[0][1]) > 1 << 20:
        return False
    if name == BLIND:
        return _blind(text)
    if name in (NETWORK_IDS, FILE_IDS):
        numbers = rule_numbers(text)
        return numbers == sorted(set(numbers)) and numbers[-1] < 1 << 16
    return name != LOSS or all(_cause(k, v) for k, v in words)


def rule_numbers(text):
    """The numbers of the rules that a note has ids of."""
    return [int(w.partition("=")[0]) for w in text.split("; ")]


def _blind(text):
    """Whether all texts are known ones, each once. Only why a hook is not there may hold a semicolon."""
    parts, whole = text.split("; "), []
    for part in parts:
        if whole and " (" in whole[-1] and not whole[-1].endswith(")"):
            whole[-1] += "; " + part
        else:
            whole.append(part)
    return len(set(whole)) == len(whole) and all(map(_spot, whole))


def _spot(text):
    name, _, rest = text.partition(" (")
    if text in BLIND_SPOTS:
        return True
    if name + " (N)" in BLIND_SPOTS:
        return re.match((_N if name == "inherited descriptors" else _P) + r"\)\Z", rest, re.ASCII) is not None and int(rest[:-1]) < 1 << 64
    return name + " (WHY)" in BLIND_SPOTS and rest.endswith(")") \
        and not (rest in ("attached)", "off)") or rest.startswith("on: lost="))


def _cause(name, value):
    if name in ("canary_after", "canary_before"):
        return value in ("missed", "not_run")
    if name == "hooks_missing":
        return "" not in value.split(",")
    if name == "interference":
        return value.split(",") == [k for k in INTERFERENCE if k in value.split(",")]
    if name == "engines":
        return value.split(",") == [e for e in ENGINES if e in value.split(",")]
    return name in CAUSES and re.match(_P + r"\Z", value, re.ASCII) is not None


def _program(quoted, digest):
    """Whether a quoted program is in the byte form of JSON, and has the digest."""
    try:
        program = jsontext.parse(quoted.encode())
    except (jsontext.BadJSON, jsontext.TooDeep):
        return False
    return isinstance(program, str) and jsontext.canonical(program).decode() == quoted \
        and hashlib.sha256(program.encode()).hexdigest() == digest
