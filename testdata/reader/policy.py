"""Policy and SDK lines, and the events of a run.

Implements `assay.runner.event.v0`, `assay.runner.policy_event.v0` and
`assay.runner.sdk_event.v0` of the archive contract, and of the decision log's
specification what decisions of runner-policy look like.
"""

import text

LOG_OF_INTENTS, INTENT_SCHEMA = "ASSAY_RUNNER_INTENT_LOG", "ASSAY_RUNNER_INTENT_SCHEMA"
POLICY, SDK, EVENTS = "layers/policy.ndjson", "layers/sdk.ndjson", "events.ndjson"
LOG, RUN, SDK_LOG, SDK_SCHEMA = ("ASSAY_RUNNER_POLICY_DECISION_LOG", "ASSAY_RUNNER_RUN_ID",
                                 "ASSAY_RUNNER_SDK_EVENT_LOG", "ASSAY_RUNNER_SDK_EVENT_SCHEMA")
MAX_TARGETS = 16 << 10  # bytes
OUTCOMES = {"completed", "tool_error", "error", "input_required", "cancelled", "server_gone", "client_gone"}
AUDIT = "P_ALLOW_AUDIT"
ALLOW_REASONS, DENY_REASONS = {"P_ALLOW_RULE", "P_ALLOW_DEFAULT", AUDIT}, {
    "P_DENY_RULE", "P_DENY_DEFAULT", "P_EVAL_ERROR", "P_EVAL_TIMEOUT", "P_DENY_ARGUMENTS", "P_DENY_RATE", "P_DENY_LIMIT"}
SOURCES, PROC = ("runner-policy", "runner-proc"), "runner-proc"


def check_events(lines, count, own, report):
    """run_started, then run_finished; the result; the environment."""
    want = {1: "run_started", 2: "run_finished"}
    if count != 2 or any(line.value["type"] != want[line.number] for line in lines):
        report.add("events.pair", "not run_started and run_finished", EVENTS)
    elif len(lines) == 2:
        _check_pair(lines, own, report)


def _check_pair(lines, own, report):
    """The result of a run, and its environment."""
    started, finished = (line.value for line in lines)
    code, signal = finished["exit_code"], finished["signal"]
    if finished["success"] != (code == 0) or code is not None and signal is not None:
        report.add("events.result", "success, exit_code and signal do not go together", EVENTS, 2)
    if own:
        fault = _environment(started["env_keys"], started["agent_shim"])
        if fault:
            report.add("events.environment", fault, EVENTS, 1)


def possible(finished, platform):
    """Whether a process can end so."""
    code, signal = finished["exit_code"], finished["signal"]
    most = 255 if platform == "linux" else (1 << 32) - 1
    return (code is None or 0 <= code <= most) and (signal is None or 1 <= signal <= 64)


def _environment(names, shim):
    known = [LOG_OF_INTENTS, INTENT_SCHEMA, LOG, RUN, SDK_LOG, SDK_SCHEMA]
    if any(n not in known for n in names) or sorted(set(names)) != names:
        return "env_keys are not known, sorted and unique"
    if (SDK_LOG in names) != (SDK_SCHEMA in names):
        return "SDK log and SDK schema do not go together"
    if (LOG_OF_INTENTS in names) != (INTENT_SCHEMA in names):
        return "the log of intents and its schema do not go together"
    if (RUN in names) != any(n in names for n in (LOG, SDK_LOG, LOG_OF_INTENTS)):
        return "the run id and the logs do not go together"
    if shim not in ("none", "openai-agents"):
        return "agent_shim is not known"
    if (SDK_LOG in names) != (shim != "none"):
        return "agent_shim and the SDK log do not go together"
    return None


def check_policy(lines, codes, report):
    """Decisions of an archive of this runner: what goes together, text, order."""
    previous, others = None, False
    for line in lines:
        v = line.value
        fault = _decision(v) or previous and _again(previous, v, codes)
        if fault:
            report.add("policy.decision", fault, POLICY, line.number)
        if not all(text.is_text(s) for s in list(v.values()) + v.get("targets", []) if isinstance(s, str)):
            report.add("policy.text", "a name is not the escape of a byte string", POLICY, line.number)
        if has_session(v):
            if others or previous and v["tool_call_id"].encode() < previous["tool_call_id"].encode():
                report.add("policy.order", "out of order", POLICY, line.number)
            previous = v
        else:
            others, previous = True, None


def _again(previous, v, codes):
    """The fault of a line after another of the same id, or None."""
    if has_session(v) and previous["tool_call_id"] == v["tool_call_id"] and previous.get("attempt", 1) == 1 \
            and previous.get("outcome") != "input_required" and "tool_call_id_repeated:" + v["tool_call_id"] not in codes:
        return "another attempt of a call that had ended"
    return None


def has_session(v):
    """Whether runner-policy made the decision: its lines have a session and a start time."""
    return "tool_call_id_source" in v


def _decision(v):
    if has_session(v) != ("policy_digest" in v):
        return "tool_call_id_source and policy_digest go together"
    if not has_session(v):
        return "a key of runner-policy without a session" if {"attempt", "targets", "targets_cut", "would_deny", "arguments_digest"} & set(v) else None
    if v["source"] not in SOURCES:
        return "a decision with a session is runner-policy's or runner-proc's"
    reason, rule = v.get("reason_code", ""), "rule_id" in v
    if v["decision"] == "allow":
        good = reason in ALLOW_REASONS and v.get("outcome", "completed") in OUTCOMES
    elif v["decision"] == "deny":
        good = reason in DENY_REASONS and v.get("outcome") == "denied"
    else:
        return "neither allow nor deny"
    if not good:
        return "reason or outcome does not fit the decision"
    if (reason == AUDIT) != ("would_deny" in v) or v.get("would_deny", "P_DENY_ROOTS") not in DENY_REASONS | {"P_DENY_ROOTS"}:
        return "would_deny does not fit the reason"
    if reason.endswith(("_RULE", "_RATE")) and not rule or reason.endswith(("_DEFAULT", "_LIMIT")) and rule:
        return "rule_id does not fit the reason"
    targets = [t.encode() for t in v.get("targets", ())]
    if targets != sorted(set(targets)) or sum(map(len, targets)) > MAX_TARGETS:
        return "targets are not sorted and unique, or too many bytes"
    return None


def check_sdk(lines, report):
    """The names of an SDK layer of this runner are text."""
    for line in lines:
        names = (line.value.get(k) for k in ("source", "sdk_name", "sdk_version", "tool_call_id", "tool"))
        if not all(text.is_text(n) for n in names if n is not None):
            report.add("sdk.text", "a name is not the escape of a byte string", SDK, line.number)
