"""observation-health.json against the layers, and the notes in it.

Implements rules 1 to 7 of "What a reader MUST refuse" of the derivation document, and
"Notes" of the archive contract.
"""

import effects
import kernel
import policy
from notes import (BLIND, BLIND_UNDER, CAPTURE, CONFINED, CONFINEMENTS, DROP, DROPS, ESCAPE, FILE_IDS, FILES, LOSS, MISSED,
                   NETWORK, NETWORK_IDS, ONLY, ORDER, POLICY, PROCESS_API, SDK, SHARED, TOOL_POLICY, WINDOWS, Notes, reasons, rule_numbers, well_formed)

HEALTH = "observation-health.json"
UNPLACED = ("tool_server_unknown:", "tool_server_elsewhere:")  # the tree of a session is not known
ENFORCED = {NETWORK: (kernel.BLOCKED, "connect_blocked"), FILES: (kernel.FILE_BLOCKED, "file_blocked")}
IDS = {NETWORK: NETWORK_IDS, FILES: FILE_IDS}
CONFINED_BY = {"mount_namespace": "fanotify", "landlock": "landlock"}


def sdk_calls(a):
    """The ids of the tool calls that the SDK layer names."""
    return {x.value["tool_call_id"] for x in a.sdk if x.value["event_type"].startswith("tool_call_")}


def check(a, report):
    """All rules about health of an archive whose documents and layers were read."""
    h, layer, cgroup = a.health, a.health["kernel_layer"], a.health["cgroup_correlation"]

    def say(rule, text):
        report.add(rule, text, HEALTH)

    if h["ringbuf_drops"] > 0 and layer != "partial_ringbuf_drops":
        say("health.drops", "drops with kernel_layer %s" % layer)
    if h["platform"] != "linux" and layer != "absent":
        say("health.platform", "a kernel layer on %s" % h["platform"])
    if cgroup == "failed" or (cgroup == "clean") != (layer != "absent"):
        say("health.cgroup", "cgroup_correlation %s with kernel_layer %s" % (cgroup, layer))
    _layers(a, say)
    _capture(a, say)
    _loss(a, say)
    if a.own:
        _marks(a, say)
        fault = kernel.order_fault(a.kernel, a.notes)
        if fault:
            report.add("kernel.order", fault, kernel.LAYER)
        if not policy.possible(a.events[1].value, h["platform"]):
            report.add("events.result", "a code or signal that there is not", policy.EVENTS, 2)
        _result(a, report)
        _counted(a, say)
        _own_notes(a, say)
        _own_loss(a, say)
        _own_policy(a, say)
        _windows(a, say)
        _enforcement(a, say)
    else:
        if any(n in ORDER and n not in SHARED for n, _ in a.notes.list):
            say("origin.marks", "notes of this runner with the mark of another implementation")
        _other_notes(a, say)
    kernel.check_network(h, a.kernel, a.own, report)


def _result(a, report):
    """The result of the command against what was run."""
    command, end = a.events[0].value["command"], a.events[1].value
    if not command and (end["exit_code"] is not None or end["signal"] is not None):
        report.add("events.result", "a result without a command", policy.EVENTS, 2)
    if command and end["success"] and a.health["kernel_layer"] == "complete" and not a.notes.number(DROP, "dropped") \
            and not any(x.value["event_type"] == kernel.EXEC for x in a.kernel):
        report.add("events.result", "success, and no program was executed", policy.EVENTS, 2)


def _counted(a, say):
    """What notes count at least, and at most."""
    notes = a.notes
    for rule, note, key, shows in (
            ("health.note", "s2_path_quality", "changed", lambda v: "doubt" in v),
            ("health.note", "s2_path_quality", "unproven", lambda v: v.get("status") == "unproven"),
            ("health.loss", LOSS, "io_uring_unmapped", lambda v: v["event_type"] == kernel.UNDECODED and v.get("status") != "error")):
        if notes.number(note, key) < kernel.calls(a.kernel, shows):
            say(rule, "%s counts fewer %s than there are" % (note, key))
    if notes.number("s2_path_quality", "lexical") > len(a.kernel) + notes.number(DROP, "dropped"):
        say("health.note", "more lexical values than lines")
    if notes.number("s2_path_quality", "file_unresolved") > notes.number(FILES, "blocked"):
        say("health.note", "more unresolved files than were refused")
    mechanism = notes.values(FILES).get("mechanism")
    for text in "; ".join(notes.texts(BLIND)).split("; "):
        under = BLIND_UNDER.get(text, BLIND_UNDER.get(text.partition(" (")[0] + " (N)", ""))
        if "network rules" in under and not notes.has(NETWORK) or "file rules" in under and not notes.has(FILES) \
                or " by " in under and under.rpartition(" by ")[2].strip("`") != mechanism:
            say("health.note", "%s, without such rules" % text)


def _marks(a, say):
    """Keys that this runner never writes, and those that it always writes."""
    given = set(a.health)
    if given & {"capture_origin", "redaction"} or not {"network_protocol_coverage", "network_endpoint_claim_scope"} <= given:
        say("origin.marks", "keys that are not those of this runner")


def _layers(a, say):
    sessions = a.own and a.notes.number(POLICY, "sessions") > 0
    if a.health["policy_layer"] != ("present" if a.policy else "absent") \
            and not (sessions and a.health["policy_layer"] == "present"):
        say("health.layer", "policy_layer is not what the layer holds")
    if a.health["sdk_layer"] != ("self_reported" if a.sdk else "absent"):
        say("health.layer", "sdk_layer is not what the layer holds")
    if a.own and a.sdk and a.events[0].value["agent_shim"] == "none":
        say("health.layer", "SDK lines with agent_shim none")


def _capture(a, say):
    """The capture notes that every archive has."""
    h, notes, measured = a.health, a.notes, a.health["kernel_layer"] != "absent"
    count, given = len(notes.texts(CAPTURE)), notes.values(CAPTURE)
    if count > 1 or not count and (measured or a.kernel):
        say("health.note", "%s is there %d times" % (CAPTURE, count))
    if notes.has(ONLY) and (count or a.kernel or measured):
        say("health.note", "%s with a capture" % ONLY)
    if not count:
        return
    if given.get("monitor_events") != str(len(a.kernel)):
        say("health.note", "monitor_events is not the number of kernel lines")
    drops = given.get("ringbuf_drops")
    if drops is None and measured or drops is not None and drops != str(h["ringbuf_drops"]):
        say("health.note", "ringbuf_drops of the note is %s" % drops)
    for key in ("network_protocol_coverage", "network_endpoint_claim_scope"):
        if measured and key in given and given[key] != h.get(key, ""):
            say("health.note", "%s of the note is %s" % (key, given[key]))


def _loss(a, say):
    texts, layer, drops = a.notes.texts(LOSS), a.health["kernel_layer"], a.health["ringbuf_drops"]
    if texts and layer == "complete" or len(texts) > 1:
        say("health.loss", "a complete layer with a loss note, or two of them")
    elif texts and a.notes.values(LOSS).get("dropped", "0") != str(drops):
        say("health.loss", "the loss note does not say dropped=%d" % drops)


def _own_loss(a, say):
    """Numbers that stand in several places, in an archive of this runner."""
    notes, layer, failed = a.notes, a.health["kernel_layer"], a.health["cgroup_correlation"] == "failed"
    escapes, captured = notes.number(ESCAPE, "escapes"), notes.has(CAPTURE)
    if escapes < notes.number(DROPS, "move") + notes.number(MISSED, "move"):
        say("health.cgroup", "moves that cannot be ruled out are no escapes")
    if escapes != notes.number(LOSS, "escapes") or bool(escapes) != failed or escapes and layer != "absent" \
            or captured and layer == "absent" and not escapes:
        say("health.cgroup", "escapes=%d, and the rest does not go with it" % escapes)
    if layer == "partial_ringbuf_drops" and not notes.has(LOSS):
        say("health.loss", "a partial layer without its cause")
    if captured and notes.has(DROPS) and notes.sum(DROPS) != notes.number(LOSS, "dropped"):
        say("health.loss", "%s does not add up to dropped" % DROPS)
    if notes.has(MISSED) and notes.sum(MISSED) != sum(notes.number(LOSS, k) for k in ("recursion_misses", "redundant_lost")):
        say("health.loss", "%s does not add up to the missed events" % MISSED)


def _other_notes(a, say):
    """Other implementations: the notes of the layers, once, with their counts."""
    for name, lines, wants in (
            (POLICY, a.policy, {("decision_events", "policy_events"): len(a.policy)}),
            (SDK, a.sdk, {("sdk_events",): len(a.sdk), ("sdk_tool_calls",): len(sdk_calls(a))})):
        texts, given = a.notes.texts(name), a.notes.values(name)
        if len(texts) > 1 or bool(texts) != bool(lines):
            say("health.note", "%s is there %d times" % (name, len(texts)))
        elif texts:
            for keys, want in wants.items():
                if {given[k] for k in keys if k in given} != {str(want)}:
                    say("health.note", "%s does not say %s=%d" % (name, keys[0], want))


def _own_notes(a, say):
    """Order and forms of this runner's notes."""
    notes = a.notes
    if notes.has(CAPTURE) and len(notes.texts(BLIND)) != 1:
        say("health.note", "not one note of blind spots")
    if not notes.has(CAPTURE):
        if any(n.startswith("s2_") or n in ENFORCED for n, _ in notes.list) or notes.number(DROP, "dropped"):
            say("health.note", "notes of a capture without %s" % CAPTURE)
        if not notes.has(ONLY) or notes.texts(ONLY)[0] not in reasons(a.health["platform"]):
            say("health.note", "%s without its reason" % ONLY)
    places = [ORDER.index(n) if n in ORDER else len(ORDER) for n, _ in notes.list]
    if places != sorted(places) or len(ORDER) in places or len(set(places)) != len(places) or not notes.formed:
        say("health.note", "the notes are unknown, repeated or out of order")
    for name, text in notes.list:
        if name in ORDER and not well_formed(name, text):
            say("health.note", "%s has another form" % name)


def _own_policy(a, say):
    """The notes of the policy and SDK layers."""
    notes, h = a.notes, a.health
    if notes.has(POLICY) != (h["policy_layer"] == "present"):
        say("health.note", "%s and policy_layer do not go together" % POLICY)
    if notes.has(SDK) != bool(a.sdk):
        say("health.note", "%s and the SDK lines do not go together" % SDK)
    if notes.has(POLICY):
        if notes.number(POLICY, "decision_events") != len(a.policy):
            say("health.note", "decision_events is not the number of policy lines")
        sessions = notes.values(POLICY).get("sessions")
        if sessions == "0" or sessions is None and any(policy.has_session(x.value) for x in a.policy):
            say("health.note", "sessions=%s" % sessions)
    _tool_policy(a, say)
    if notes.has(SDK) and (notes.number(SDK, "sdk_events"), notes.number(SDK, "sdk_tool_calls")) != (
            len(a.sdk), len(sdk_calls(a))):
        say("health.note", "the counts of %s are not those of the layer" % SDK)


def _tool_policy(a, say):
    """The policies of the sessions, which an archive that has targets names."""
    notes = a.notes
    if not notes.has(TOOL_POLICY):
        if any({"targets", "targets_cut"} & set(x.value) for x in a.policy):
            say("health.note", "targets without %s" % TOOL_POLICY)
        return
    policies, given = notes.number(TOOL_POLICY, "policies"), {x.value.get("policy_digest") for x in a.policy} - {None}
    only = notes.values(TOOL_POLICY).get("policy")
    again = any(c.startswith("policy_session_reloaded:") for c in (a.report or {}).get("notes", ()))
    if policies > notes.number(POLICY, "sessions") and not again or len(given) > policies or only and given - {only}:
        say("health.note", "%s does not go with the sessions and decisions" % TOOL_POLICY)
    of = [x.value["source"] for x in a.policy if policy.has_session(x.value)]
    sessions, count = notes.number(POLICY, "sessions"), notes.number(PROCESS_API, "sessions") if notes.has(PROCESS_API) else 0
    if count > sessions or policy.PROC in of and not count or count and count == sessions and set(of) - {policy.PROC}:
        say("health.note", "%s does not go with the sessions and decisions" % PROCESS_API)


def classes(notes):
    """The counts of s6_windows: call, setup, idle, agent, request."""
    return [notes.number(WINDOWS, k) for k in ("call", "setup", "idle", "agent", "request")]


def _windows(a, say):
    """s6_windows against the lines, the sessions and the bindings."""
    notes = a.notes
    if not notes.has(WINDOWS):
        return
    call, _, idle = classes(notes)[:3]
    if sum(classes(notes)) != len(a.kernel):
        say("health.note", "the counts of %s are not the number of kernel lines" % WINDOWS)
    sessions = notes.number(POLICY, "sessions")
    timed = {x.value["tool_call_id"] for x in a.policy if policy.has_session(x.value)}
    if not sessions or call and not timed:
        say("health.note", "%s without sessions, or calls without decisions" % WINDOWS)
    if not a.report:
        return
    bindings = a.report["bindings"]
    bound = [b for b, x in zip(bindings, a.policy) if policy.has_session(x.value)]
    unknown = sum(c.startswith(UNPLACED) for c in a.report["ambiguities"] + a.report.get("notes", []))
    if unknown >= sessions and call + idle:
        say("health.note", "lines of calls or between them, but no tool server is known")
    own = [b for b in bound if effects.own_window(b)]
    in_tree = sum(b["kernel_event_count"] for b in own if b.get("kernel_scope") != "run")
    if len(own) == len(bound) and call > in_tree:
        say("health.note", "call=%d, but the windows have less lines" % call)
    if sessions == 1 and call < in_tree:
        say("health.note", "call=%d, but the windows have %d lines" % (call, in_tree))


def _enforcement(a, say):
    """The notes about enforced rules against the lines of what they refused."""
    left = a.notes.number(DROP, "dropped")
    for note, (event, kind) in ENFORCED.items():
        lines = [x.value for x in a.kernel if x.value["event_type"] == event]
        if not a.notes.has(note):
            if lines:
                say("health.note", "blocked lines without %s" % note)
            if a.notes.has(IDS[note]):
                say("health.note", "%s without %s" % (IDS[note], note))
            continue
        least, blocked = len(lines) + a.notes.number(DROPS, kind), a.notes.number(note, "blocked")
        if not least <= blocked <= least + left:
            say("health.note", "blocked=%d, expected %d" % (blocked, least))
        else:
            left -= blocked - least
        if any(v["rule_id"] > a.notes.number(note, "rules") for v in lines):
            say("health.note", "a rule that the policy does not have")
        for text in a.notes.texts(IDS[note])[:1]:
            numbers = rule_numbers(text) if well_formed(IDS[note], text) else []
            if numbers and (numbers[-1] > a.notes.number(note, "rules") or {v["rule_id"] for v in lines} - {0} - set(numbers)):
                say("health.note", "%s has other rules" % IDS[note])
    names = [n for text in a.notes.texts(CONFINED) for n in text.split("; ")]
    if names != [n for n in CONFINEMENTS if n in names]:
        say("health.note", "%s has other names, or in another order" % CONFINED)
    mechanism = a.notes.values(FILES).get("mechanism")
    for name, by in CONFINED_BY.items():
        if (name in names) != (mechanism == by):
            say("health.note", "%s and the mechanism do not go together" % name)
