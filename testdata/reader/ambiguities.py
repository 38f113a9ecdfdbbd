"""Ambiguities of a correlation report, and its status.

Implements "Ambiguities" and rules 11 and 12 of "What a reader MUST refuse" of the
derivation document.
"""

import collections

import effects
import health
import policy
import schema
import text
import wrapped

FAILED = {"cgroup_correlation_failed", "policy_log_flooded", "policy_log_replaced"}
EMPTY, MULTIPLE = "policy_events_without_kernel_events", "session_cgroup_ambiguous_for_multiple_policy_events"
UNBOUND, REPEATED, OVERLAP = "sdk_tool_call_without_policy_binding", "tool_call_id_repeated", "tool_calls_overlap"
NOTHING, LATE, SHARED, CANCELLED = ("tool_call_names_nothing", "tool_call_effects_late", "tool_call_effects_shared",
                                   "tool_call_cancelled")
DIFFERS, PREFIXED, DENIED_TARGET, OF_REQUEST = ("sdk_tool_name_differs", "sdk_tool_name_prefixed", "effect_on_denied_target",
                                                "request_effects_outside_request")
CLASS = {"exec_without_tool_call": "agent", "exec_before_sessions": "agent", "server_effect_before_calls": "setup",
         "server_effect_between_calls": "idle", "server_effect_in_requests": "request", DENIED_TARGET: None}
NOTES = {"decision_without_kernel_events", "denied_call_not_watched", "exec_before_sessions", "sdk_tool_call_failed", PREFIXED,
         "server_effect_before_calls", "server_effect_between_calls", "server_effect_in_requests", CANCELLED, SHARED, NOTHING, OVERLAP,
         "policy_session_reloaded", "tool_server_elsewhere", "policy_log_unused"}
BROKEN = ("denied", "tool_error", "error", "cancelled")
OUTSIDE, TARGETS, IDLE = ("tool_call_effects_outside_request", "tool_call_targets_unknown",
                          "kernel_events_outside_tool_windows")
PROGRAM, REST = "exec_without_tool_call", "…"
NAMED = ("tool_server_unknown", "policy_session_not_finished", "policy_session_of_other_policy", "policy_session_reloaded",
         "tool_server_elsewhere")
COLLECTED = ("_truncated", "_replaced", "_writer_open_at_end", "_written_after_end")


def is_note(code):
    return code.partition(":")[0] in NOTES


def entries(a):
    """All codes of a report."""
    return a.report["ambiguities"] + a.report.get("notes", [])


def status(codes, own):
    """The status that follows from the codes."""
    if own and any(c in FAILED or c.startswith("policy_log_invalid:") for c in codes):
        return "failed"
    return "partial" if codes else "clean"


def faults(a):
    """What is wrong with the codes of a report."""
    codes = a.report["ambiguities"]
    if not a.own:
        if "notes" in a.report:
            yield "notes, which only reports of this runner have"
        want = _other(a)
        if codes not in (want, sorted(want, key=str.encode)):
            yield "expected %s" % want
        return
    for part, notes in (codes, False), (a.report.get("notes", []), True):
        if part != sorted(set(part), key=str.encode):
            yield "not sorted, or one is there twice"
        if any(is_note(c) != notes for c in part):
            yield "a note among the ambiguities, or the other way round"
    codes = entries(a)
    known = schema.load("ambiguity-v0")
    for c in codes:
        if known({"schema": "runner.ambiguity.v0", "run_id": "x", "code": c}) or not text.is_text(c):
            yield "%s is not known" % c
            return
    for name, want in _follow(a).items():
        given = {c for c in codes if c == name or c.startswith(name + ":")}
        if given != want:
            yield "%s: %s, expected %s" % (name, sorted(given), sorted(want))
    by_name = collections.defaultdict(list)
    for c in codes:
        name, _, rest = c.partition(":")
        by_name[name].append(rest)
    yield from _calls(a, by_name)
    yield from _targets(a, by_name)
    yield from _run(a, by_name)
    yield from _phases(a, by_name)
    yield from _names(a, by_name)
    yield from _logs(a, by_name)


def _other(a):
    """The codes of other implementations' reports, in their order."""
    want = []
    if a.policy and not a.kernel:
        want.append(EMPTY)
    if len(a.policy) > 1 and a.notes.has(health.CAPTURE) and MULTIPLE in a.report["ambiguities"]:
        want.append(MULTIPLE)  # it says whether a cgroup was known, which the archive does not
    ids = {x.value["tool_call_id"] for x in a.policy}
    if a.policy:
        want += ["%s:%s" % (UNBOUND, i) for i in sorted(health.sdk_calls(a) - ids, key=str.encode)]
    return want


def _sdk(a):
    """How often the SDK reported start and completion of each id, and the tools that it named."""
    started, completed, tools = collections.Counter(), collections.Counter(), collections.defaultdict(set)
    for x in a.sdk:
        v = x.value
        if v["event_type"] in ("tool_call_started", "tool_call_completed"):
            (started if v["event_type"] == "tool_call_started" else completed)[v["tool_call_id"]] += 1
            tools[v["tool_call_id"]].add(v["tool"])
    return started, completed, tools


def _decisions(a):
    out = collections.defaultdict(list)
    for x in a.policy:
        out[x.value["tool_call_id"]].append(x.value)
    return out


def _of_sdk(a):
    """The decisions about each call of the SDK: those of its id, or the one that was joined."""
    out = _decisions(a)
    for b, x in zip(a.report["bindings"], a.policy):
        if "join" in b and b["sdk_tool_call_id"] not in out:
            out[b["sdk_tool_call_id"]] = [x.value]
    return out


def _follow(a):
    """The codes that follow from layers and bindings: name to the set of whole codes."""
    want = {}

    def about(name, ids):
        want[name] = {"%s:%s" % (name, i) for i in ids}

    def plain(name, holds):
        want[name] = {name} if holds else set()

    want.update(wrapped.codes(a))
    decisions, by_id, of_sdk = [x.value for x in a.policy], _decisions(a), _of_sdk(a)
    joined = {b["tool_call_id"] for b in a.report["bindings"] if "join" in b}
    layer, notes = a.health["kernel_layer"], a.notes
    sessions = [policy.has_session(d) for d in decisions]
    started, completed, tools = _sdk(a)
    plain("cgroup_correlation_failed", decisions and a.health["cgroup_correlation"] == "failed")
    plain("kernel_events_lost", decisions and layer == "partial_ringbuf_drops")
    plain(EMPTY, decisions and not a.kernel)
    plain(MULTIPLE, len(decisions) > 1 and notes.has(health.CAPTURE) and not all(sessions))
    plain("kernel_times_unknown", any(sessions) and a.kernel and not notes.has(health.WINDOWS))
    plain("sdk_run_not_finished", a.sdk and not any(x.value["event_type"].startswith("run_") for x in a.sdk))
    alone = collections.Counter(b["tool_call_id"] for b in a.report["bindings"] if "join" not in b)
    about("policy_call_not_in_sdk", {i for i in by_id if i not in tools and (alone[i] or i not in joined)} if a.sdk else ())
    about("tool_call_not_finished", {d["tool_call_id"] for d in decisions if d["decision"] == "allow"
                                     and policy.has_session(d)
                                     and d.get("outcome") in (None, "server_gone", "client_gone")})
    about("sdk_completed_denied_call", {i for i, ds in of_sdk.items()
                                        if completed[i] and all(d["decision"] == "deny" for d in ds)})
    broken = {i for i, ds in of_sdk.items() if all(d.get("outcome") in BROKEN for d in ds)}
    about("sdk_tool_call_not_completed", {i for i in started if i not in completed and i not in broken})
    about("sdk_tool_call_failed", {i for i in started if i not in completed and i in broken})
    about(CANCELLED, {d["tool_call_id"] for d in decisions if d["decision"] == "allow" and policy.has_session(d)
                      and d.get("outcome") == "cancelled"})
    about("denied_call_not_watched", {
        d["tool_call_id"] for d in decisions if d["decision"] == "deny" and policy.has_session(d) and "targets" not in d
        and "targets_cut" not in d and all(map(notes.has, (health.TOOL_POLICY, health.CAPTURE, health.WINDOWS)))})
    about("sdk_tool_call_not_started", {i for i in completed if i not in started})
    about("sdk_tool_call_repeated", {i for c in (started, completed) for i, n in c.items() if n > 1})
    about(UNBOUND, set(tools) - set(of_sdk) if a.health["policy_layer"] == "present" else ())
    bound = list(zip(a.report["bindings"], decisions))
    about("denied_call_with_kernel_effects", {
        d["tool_call_id"] for b, d in bound
        if d["decision"] == "deny" and ("kernel_effects" in b or "kernel_effects_cut" in b)})
    about("decision_without_kernel_events", {
        d["tool_call_id"] for b, d in bound if d["decision"] == "allow" and layer != "absent"
        and effects.own_window(b) and not b["kernel_event_count"]})
    return want


def _one_call(decisions):
    """Whether several decisions of one id are attempts of one call."""
    attempts = [d.get("attempt", 1) for d in decisions]
    return all(map(policy.has_session, decisions)) and len({d["tool"] for d in decisions}) == 1 \
        and all(x < y for x, y in zip(attempts, attempts[1:]))


def _calls(a, names):
    """Codes about calls that do not follow, but can contradict the rest."""
    by_id = _decisions(a)
    acted = {b["tool_call_id"] for b in a.report["bindings"]
             if b["policy_decision"] == "allow" and effects.own_window(b) and b.get("kernel_scope") == "tool_server"
             and ("kernel_effects_cut" in b or any(map(effects.done, b.get("kernel_effects", ()))))}
    for i, ds in by_id.items():
        if len(ds) > 1 and not _one_call(ds) and i not in names[REPEATED]:
            yield "%s:%s is missing" % (REPEATED, i)
    for i in names[REPEATED]:
        if len(by_id.get(i, ())) < 2:
            yield "%s:%s without two decisions" % (REPEATED, i)
    for name in OUTSIDE, NOTHING:
        for i in names[name]:
            if i not in acted and i not in names[OVERLAP]:
                yield "%s:%s without effects" % (name, i)
            if len(by_id.get(i, ())) == 1 and sum(i in names[n] for n in (OUTSIDE, TARGETS, NOTHING)) > 1:
                yield "%s:%s with another code of this kind" % (name, i)
    for i in names[TARGETS]:
        denied = any(d["decision"] == "deny" and policy.has_session(d) for d in by_id.get(i, ()))
        if i not in acted and not denied and i not in names[OVERLAP]:
            yield "%s:%s without effects" % (TARGETS, i)
    for i in names[OVERLAP]:
        if len(a.policy) < 2 or not any(map(policy.has_session, by_id.get(i, ()))):
            yield "%s:%s without another call" % (OVERLAP, i)
    if len(names[OVERLAP]) == 1 and len(by_id.get(names[OVERLAP][0], ())) < 2:
        yield "%s of one call alone" % OVERLAP
    for i in names[IDLE]:
        if i not in by_id:
            yield "%s:%s is about a call that nobody decided" % (IDLE, i)


def _target_code(b, d):
    """The code that the effects in an allowed call's own window ask for, and whether that is known."""
    if d["decision"] == "deny" or not policy.has_session(d) or not effects.own_window(b) or b.get("kernel_scope") != "tool_server":
        return None, True
    targets, cut = d.get("targets", []), "targets_cut" in d
    asked = {effects.asked(e, targets) for e in b.get("kernel_effects", ())} - {None}
    if "text" in asked or "kernel_effects_cut" in b and "no" not in asked and (targets or not asked):
        return None, False
    if asked and not targets and not cut:
        return NOTHING, True
    if "no" in asked and cut or "host" in asked and "no" not in asked:
        return TARGETS, True
    return (OUTSIDE if "no" in asked else None), True


def _targets(a, names):
    """Codes about what calls named, where the decisions have their targets."""
    if not a.notes.has(health.TOOL_POLICY):
        return
    by_id = collections.defaultdict(list)
    for b, x in zip(a.report["bindings"], a.policy):
        by_id[x.value["tool_call_id"]].append((b, x.value))
    for i, calls in by_id.items():
        codes = [_target_code(b, d) for b, d in calls]
        denied = any(d["decision"] == "deny" and policy.has_session(d) for _, d in calls)
        for name in (OUTSIDE, TARGETS, NOTHING):
            want, given = name in [c for c, _ in codes], i in names[name]
            if want and not given or given and not want and all(k for _, k in codes) and i not in names[OVERLAP] and not (denied and name == TARGETS):
                yield "%s:%s does not follow from targets and effects" % (name, i)


def _run(a, names):
    """Codes about the run's processes and sessions."""
    notes, codes = a.notes, names[IDLE]
    windows, sessions = notes.has(health.WINDOWS), notes.number(health.POLICY, "sessions")
    idle = notes.number(health.WINDOWS, "idle")
    if windows and (codes and not idle or idle and not codes and not names[CANCELLED]) or codes and not windows:
        yield "%s does not go with the idle lines" % IDLE
    if len(codes) > idle * max(sessions, 1):
        yield "more of %s than idle lines" % IDLE
    if (names[NAMED[0]] or names[NAMED[4]]) and not (windows and notes.has(health.CAPTURE)):
        yield "%s without windows and capture" % NAMED[0]
    if any(len(names[n]) > sessions for n in NAMED):
        yield "more sessions in the codes than in the note"
    enforced = [notes.values(note)["policy"] for note in health.ENFORCED if "policy" in notes.values(note)]
    digests = {x.value["policy_digest"] for x in a.policy if "policy_digest" in x.value and x.value["source"] != policy.PROC}
    if any(digests - {one} for one in enforced) and not names[NAMED[2]]:
        yield "%s is missing" % NAMED[2]
    if not notes.has(health.PROCESS_API) and any(notes.has(health.TOOL_POLICY) and notes.values(health.TOOL_POLICY).get("policy") != one for one in enforced) and not names[NAMED[2]]:
        yield "%s is missing: the sessions had another policy" % NAMED[2]
    if names[NAMED[2]] and not enforced and policy.LOG not in _variables(a):
        yield "%s without a policy of the run" % NAMED[2]


def _phases(a, names):
    """Codes about what was done outside of calls' own windows."""
    notes, said = a.notes, {effects.of(x.value) for x in a.kernel}
    count = {k: notes.number(health.WINDOWS, k) for k in ("setup", "idle", "agent", "request")}
    for name, where in CLASS.items():
        rest = [v for v in names[name] if v != REST]
        if len(rest) > 64 or REST in names[name] and len(rest) < 64 and name != PROGRAM:
            yield "%s: %d, and the rest" % (name, len(rest))
        if where and len(names[name]) > count[where]:
            yield "more of %s than lines of their class" % name
        for v in rest:
            if name == DENIED_TARGET:
                there = any(effects.on(v, x.value) for x in a.kernel)
            else:
                there = "exec " + v in said if name.startswith("exec_") else v in said and effects.done(v)
            if not there:
                yield "%s:%s, which no line says" % (name, v)
    if names[OF_REQUEST] and not count["request"]:
        yield "%s without lines of requests" % OF_REQUEST
    by_id, sessions = _decisions(a), notes.number(health.POLICY, "sessions")
    for name in LATE, SHARED:
        for i in names[name]:
            ended = any(d["decision"] != "deny" and policy.has_session(d) and "outcome" in d for d in by_id.get(i, ()))
            if not ended or len(names[name]) == 1 and len(by_id[i]) < 2 and not (name == LATE and count["request"]):
                yield "%s:%s without another call" % (name, i)
    if any(names[n] for n in (LATE, SHARED, DENIED_TARGET, OF_REQUEST)) and (
            not notes.has(health.WINDOWS) or not notes.has(health.CAPTURE) or len(names[NAMED[0]]) >= sessions):
        yield "codes about tool servers, of which none is known"


def _plain(c):
    return c.isascii() and c.isalnum()


def _folded(name):
    return "".join(c if _plain(c) else "_" for c in name)


def prefix(name, tool):
    """What a name has before that of a tool, or None if it is another name."""
    if name == tool:
        return ""
    raw, end = name.encode(), tool.encode()
    cut = len(raw) - len(end)
    if cut < 0 or not end or cut and _plain(chr(raw[cut - 1])):
        return None
    tail = raw[cut:].decode("utf-8", "replace")
    return raw[:cut].decode("utf-8", "replace") if _folded(tail) == _folded(tool) else None


def _names(a, names):
    """How the SDK names the tools of decisions."""
    by_id, prefixes = _of_sdk(a), set()
    tools = _sdk(a)[2]
    untimed = any(not policy.has_session(x.value) for x in a.policy)
    most = a.notes.number(health.POLICY, "sessions") + untimed
    for i in set(names[DIFFERS] + names[PREFIXED]) - (set(by_id) & set(tools)):
        yield "%s or %s of %s, which not both layers have" % (DIFFERS, PREFIXED, i)
    for i in set(by_id) & set(tools):
        found = set()
        for name in tools[i]:
            of = {prefix(name, d["tool"]) for d in by_id[i]} - {None}
            found.add("" if "" in of else min(of, default=None))
        differs, noted = i in names[DIFFERS], i in names[PREFIXED]
        if None in found or len(found) > 1:
            if not differs or noted:
                yield "%s:%s is missing" % (DIFFERS, i)
            continue
        if found == {""} and (differs or noted) or found != {""} and differs == noted:
            yield "%s or %s of %s does not follow" % (DIFFERS, PREFIXED, i)
        if noted or most <= 1 and found == {""}:
            prefixes |= found
    if names[PREFIXED] and len(prefixes) > most:
        yield "%d prefixes, and %d sessions" % (len(prefixes), most)


def _variables(a):
    return a.events[0].value["env_keys"]


def _logs(a, names):
    """Codes about how the logs were collected."""
    if "policy_log_empty" in names and a.health["policy_layer"] == "present":
        yield "policy_log_empty with a policy layer"
    unused = "policy_log_unused" in names
    if unused and (a.health["policy_layer"] == "present" or a.policy or policy.LOG not in _variables(a)
                   or any(names[n] and n.startswith("policy_log_") and n != "policy_log_unused" for n in list(names))
                   or any(s.value["event_type"] in ("tool_call_started", "tool_call_completed") for s in a.sdk)):
        yield "policy_log_unused, but something says that the log was used, not collected, or is not whole"
    if "sdk_log_empty" in names and a.sdk:
        yield "sdk_log_empty with SDK lines"
    for log, variable, there in (("policy_log", policy.LOG, a.health["policy_layer"] == "present" or a.policy),
                                 ("sdk_log", policy.SDK_LOG, a.health["sdk_layer"] == "self_reported" or a.sdk),
                                 ("intents_log", policy.LOG_OF_INTENTS, True)):  # which may be empty
        if variable in _variables(a) and not there and log + "_empty" not in names and not (log == "policy_log" and unused):
            yield "%s_empty is missing" % log
        if variable not in _variables(a) and any(log + how in names for how in COLLECTED):
            yield "a code about collecting a log that was not collected"
        if len(names[log + "_invalid"]) > 1:
            yield "two codes %s_invalid" % log
    for log, lines in (("sdk_log", a.sdk), ("intents_log", a.layers.get("layers/intents.ndjson") or ())):
        for rest in names[log + "_invalid"]:
            if int(rest.split(":")[0]) <= len(lines):
                yield "%s_invalid within the valid lines" % log
