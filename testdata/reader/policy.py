"""Policy and SDK lines, and the events of a run.

Implements `assay.runner.event.v0`, `assay.runner.policy_event.v0` and
`assay.runner.sdk_event.v0` of the archive contract, and of the decision log's
specification what decisions of runner-policy look like.
"""

import text

POLICY, SDK, EVENTS = "layers/policy.ndjson", "layers/sdk.ndjson", "events.ndjson"
LOG, RUN, SDK_LOG, SDK_SCHEMA = ("ASSAY_RUNNER_POLICY_DECISION_LOG", "ASSAY_RUNNER_RUN_ID",
                                 "ASSAY_RUNNER_SDK_EVENT_LOG", "ASSAY_RUNNER_SDK_EVENT_SCHEMA")
OUTCOMES = {"completed", "tool_error", "error", "input_required", "server_gone", "client_gone"}
ALLOW_REASONS, DENY_REASONS = {"P_ALLOW_RULE", "P_ALLOW_DEFAULT"}, {
    "P_DENY_RULE", "P_DENY_DEFAULT", "P_EVAL_ERROR", "P_EVAL_TIMEOUT"}


def check_events(lines, count, own, report):
    """run_started, then run_finished; the result; the environment."""
    kinds = [line.value["type"] for line in lines]
    if count != 2 or len(lines) == 2 and kinds != ["run_started", "run_finished"]:
        report.add("events.pair", "not run_started and run_finished", EVENTS)
        return
    if len(lines) != 2:
        return
    started, finished = (line.value for line in lines)
    code, signal = finished["exit_code"], finished["signal"]
    if finished["success"] != (code == 0) or code is not None and signal is not None:
        report.add("events.result", "success, exit_code and signal do not go together", EVENTS, 2)
    if own:
        fault = _environment(started["env_keys"], started["agent_shim"])
        if fault:
            report.add("events.environment", fault, EVENTS, 1)


def _environment(names, shim):
    known = [LOG, RUN, SDK_LOG, SDK_SCHEMA]
    if any(n not in known for n in names) or sorted(set(names)) != names:
        return "env_keys are not known, sorted and unique"
    if (SDK_LOG in names) != (SDK_SCHEMA in names):
        return "SDK log and SDK schema do not go together"
    if (RUN in names) != (LOG in names or SDK_LOG in names):
        return "the run id and the logs do not go together"
    if shim not in ("none", "openai-agents"):
        return "agent_shim is not known"
    if (SDK_LOG in names) != (shim != "none"):
        return "agent_shim and the SDK log do not go together"
    return None


def check_policy(lines, report):
    """Decisions of an archive of this runner: what goes together, text, order."""
    last, others = None, False
    for line in lines:
        v = line.value
        fault = _decision(v) if has_session(v) else None
        if not has_session(v) and "policy_digest" in v:
            fault = "a digest without a session"
        if fault:
            report.add("policy.decision", fault, POLICY, line.number)
        if not all(text.is_text(v[k]) for k in ("source", "tool_call_id", "tool", "decision", "outcome",
                                                "reason_code", "rule_id") if k in v):
            report.add("policy.text", "a name is not the escape of a byte string", POLICY, line.number)
        if has_session(v):
            place = v["tool_call_id"].encode()
            if others or last is not None and place < last:
                report.add("policy.order", "out of order", POLICY, line.number)
            last = place
        else:
            others = True


def has_session(v):
    """Whether runner-policy made the decision: its lines have a session and a start time."""
    return "tool_call_id_source" in v


def _decision(v):
    if v["source"] != "runner-policy" or "policy_digest" not in v:
        return "a decision with a session is runner-policy's, and has a digest"
    reason, rule = v.get("reason_code"), "rule_id" in v
    if v["decision"] == "allow":
        good = reason in ALLOW_REASONS and v.get("outcome", "completed") in OUTCOMES
    elif v["decision"] == "deny":
        good = reason in DENY_REASONS and v.get("outcome") == "denied"
    else:
        return "runner-policy allows or denies"
    if not good:
        return "reason or outcome does not fit the decision"
    if reason.endswith("_RULE") != rule and not reason.startswith("P_EVAL"):
        return "rule_id does not fit the reason"
    return None


def check_sdk(lines, report):
    """The names of an SDK layer of this runner are text."""
    for line in lines:
        names = (line.value.get(k) for k in ("source", "sdk_name", "sdk_version", "tool_call_id", "tool"))
        if not all(text.is_text(n) for n in names if n is not None):
            report.add("sdk.text", "a name is not the escape of a byte string", SDK, line.number)
