"""Mutants of what an archive says about calls: report, notes and policy layer changed together.

A fault of the correlation is not one byte: a code that is added belongs to a status, and a
decision that is added to a binding and a count. These mutants keep what belongs together,
so that many of them are archives that a run could have left.
"""

import copy
import re

import ambiguities
import jsontext

REPORT, HEALTH, POLICY, SDK, EVENTS = ("correlation-report.json", "observation-health.json", "layers/policy.ndjson",
                                       "layers/sdk.ndjson", "events.ndjson")
PLAIN = ("cgroup_correlation_failed kernel_events_lost kernel_times_unknown policy_events_without_kernel_events "
         "policy_log_empty policy_log_flooded policy_log_replaced policy_log_truncated policy_log_writer_open_at_end "
         "policy_log_unused policy_log_written_after_end sdk_log_empty sdk_log_flooded sdk_log_replaced sdk_log_truncated "
         "sdk_log_writer_open_at_end sdk_log_written_after_end sdk_run_not_finished "
         "session_cgroup_ambiguous_for_multiple_policy_events policy_log_invalid:1:bad_json policy_log_invalid:2:bad_seq "
         "policy_log_invalid:0:bad_seq sdk_log_invalid:1:bad_json sdk_log_invalid:9:bad_run_id sdk_log_invalid:9:bad_type "
         "exec_without_tool_call:… exec_without_tool_call:/no tool_server_unknown:x policy_session_not_finished:x "
         "policy_session_of_other_policy:x policy_session_reloaded:x tool_server_elsewhere:x tool_server_unknown:\\x unknown_code effect_on_denied_target:/ effect_on_denied_target:/no "
         "server_effect_before_calls:… exec_before_sessions:/no request_effects_outside_request:x").split(" ")
ABOUT = ("decision_without_kernel_events denied_call_with_kernel_effects kernel_events_outside_tool_windows "
         "policy_call_not_in_sdk sdk_completed_denied_call sdk_tool_call_not_completed sdk_tool_call_not_started "
         "sdk_tool_call_repeated sdk_tool_call_without_policy_binding sdk_tool_name_differs "
         "tool_call_effects_outside_request tool_call_id_repeated tool_call_not_finished tool_call_targets_unknown "
         "tool_calls_overlap denied_call_not_watched sdk_tool_call_failed sdk_tool_name_prefixed tool_call_cancelled "
         "tool_call_effects_late tool_call_effects_shared tool_call_names_nothing").split(" ")
KEYS = ("schema", "run_id", "seq", "source_event_type", "source", "tool_call_id", "tool", "decision",
        "tool_call_id_source", "outcome", "reason_code", "rule_id", "policy_digest", "attempt")
_FAILED = re.compile("cgroup_correlation_failed|policy_log_(flooded|replaced|invalid:)")


class Draft:
    """The parts of an archive that are about calls, to be changed and packed again."""

    def __init__(self, members):
        self.members = members
        self.report, self.health = (jsontext.parse(members[m]) for m in (REPORT, HEALTH))
        self.policy, self.sdk, self.events = ([jsontext.parse(r) for r in members[m].split(b"\n")[:-1]]
                                              for m in (POLICY, SDK, EVENTS))

    def code(self, code, there=True):
        codes = set(ambiguities.entries(self)) - {code} | ({code} if there else set())
        for key in "ambiguities", "notes":
            self.report[key] = sorted((c for c in codes if ambiguities.is_note(c) == (key == "notes")), key=str.encode)
        if not self.report["notes"]:
            del self.report["notes"]

    def packed(self):
        codes = self.report["ambiguities"]
        self.report["status"] = "failed" if any(map(_FAILED.match, codes)) else "partial" if codes else "clean"
        for name, count in (("decision_events", len(self.policy)), ("sdk_events", len(self.sdk))):
            self.health["notes"] = [re.sub(name + r"=\d+", "%s=%d" % (name, count), n) for n in self.health["notes"]]
        out = dict(self.members)
        out[REPORT], out[HEALTH] = jsontext.canonical(self.report), jsontext.canonical(self.health)
        for member, rows in ((POLICY, self.policy), (SDK, self.sdk), (EVENTS, self.events)):
            for i, row in enumerate(rows):
                row["seq"] = i
            out[member] = b"".join(jsontext.canonical(r) + b"\n" for r in rows)
        return out


def mutants(members):
    """What is changed, and a function that returns the members."""
    first = Draft(members)
    ids = sorted({d["tool_call_id"] for d in first.policy} | {"nobody"})
    execs = sorted({v for v in re.findall(rb'"kind":"(?:exec|event_200)","value":"([^"]*)"', members["layers/kernel.ndjson"])})
    codes = list(PLAIN) + ["%s:%s" % (n, i) for n in ABOUT for i in ids] \
        + ["exec_without_tool_call:" + e.decode() for e in execs]

    def changed(change):
        def make():
            draft = Draft(members)
            change(draft)
            return draft.packed()
        return make

    for code in sorted(set(codes) | set(ambiguities.entries(first))):
        there = code in ambiguities.entries(first)
        yield "code %s" % code, changed(lambda d, c=code, t=there: d.code(c, not t))
    for name, count in re.findall(r"(\w+)=(\d+)", " ".join(n for n in first.health["notes"] if n[:3] in ("s2_", "s4_", "s5_", "s6_"))):
        for other in (0, int(count) + 1, int(count) - 1, int(count) + 7):
            if other >= 0:
                yield "%s=%d" % (name, other), changed(lambda d, n=name, o=other: _count(d, n, o))
    yield from _bindings(first, changed)
    yield from _decisions(first, changed)


def _count(draft, name, number):
    draft.health["notes"] = [re.sub(r"\b%s=\d+" % name, "%s=%d" % (name, number), n) for n in draft.health["notes"]]


def _bindings(first, changed):
    """Windows, scopes, counts and effects of each binding."""
    for i, b in enumerate(first.report["bindings"]):
        own = {"start": "tool_call_started:" + b["tool_call_id"], "end": "tool_call_finished:" + b["tool_call_id"]}
        run = {"start": "run_started", "end": "run_finished"}

        def put(i=i, without=(), codes=(), **keys):
            def change(draft):
                old = {k: v for k, v in dict(draft.report["bindings"][i], **keys).items() if k not in without}
                order = ("tool_call_id", "policy_decision", "cgroup_id", "kernel_event_count", "window", "kernel_scope",
                         "kernel_effects", "kernel_effects_cut", "join", "sdk_tool_call_id")
                draft.report["bindings"][i] = {k: old[k] for k in order if k in old}
                for code in codes:
                    draft.code(code)
            return changed(change)

        overlap, repeated = "tool_calls_overlap:" + b["tool_call_id"], "tool_call_id_repeated:" + b["tool_call_id"]
        unknown = "tool_server_unknown:x"
        yield "binding %d own" % i, put(window=own)
        yield "binding %d run" % i, put(window=run, without=("kernel_effects",))
        yield "binding %d run, overlap" % i, put(window=run, without=("kernel_effects",), codes=(overlap,))
        yield "binding %d run, repeated" % i, put(window=run, without=("kernel_effects",), codes=(repeated,))
        yield "binding %d run, unknown" % i, put(kernel_scope="run", codes=(unknown,))
        yield "binding %d other scope" % i, put(kernel_scope="run")
        yield "binding %d no scope" % i, put(without=("kernel_scope",))
        yield "binding %d cgroup" % i, put(cgroup_id=7)
        yield "binding %d cut" % i, put(kernel_effects_cut=True)
        yield "binding %d joined" % i, put(join="argument_digest", sdk_tool_call_id="nobody")
        yield "binding %d not joined" % i, put(without=("join", "sdk_tool_call_id"))
        yield "binding %d no effects" % i, put(without=("kernel_effects",))
        effects = b.get("kernel_effects", [])
        yield "binding %d failed effect" % i, put(kernel_effects=sorted(effects + ["failed-read /no"]))
        yield "binding %d exec effect" % i, put(kernel_effects=sorted(effects + ["exec /usr/bin/dash"]))
        for n in (0, 1, 2, b["kernel_event_count"] + 1, 99):
            yield "binding %d count %d" % (i, n), put(kernel_event_count=n)
            yield "binding %d count %d, no effects" % (i, n), put(kernel_event_count=n, without=("kernel_effects",))


def _decisions(first, changed):
    """Decisions that are added with their binding: attempts, repeated ids, and those of other proxies."""
    for i in range(len(first.policy)):
        for what, keys, without in (
                ("again", {}, ()), ("attempt", {"attempt": 2}, ()), ("attempt of another tool", {"attempt": 2, "tool": "other"}, ()),
                ("other proxy", {"source": "x"}, ("tool_call_id_source", "policy_digest")),
                ("unfinished", {}, ("outcome",)), ("gone", {"outcome": "server_gone"}, ()),
                ("other digest", {"policy_digest": "sha256:" + "0" * 64}, ())):
            for outcome in (None, "input_required"):
                for codes in ((), ("tool_call_id_repeated",)):
                    def change(draft, keys=keys, without=without, outcome=outcome, codes=codes, i=i):
                        row = dict(draft.policy[i], **keys)
                        row = {k: row[k] for k in KEYS if k in row and k not in without}
                        if outcome:
                            first_row = dict(draft.policy[i], outcome=outcome)
                            draft.policy[i] = {k: first_row[k] for k in KEYS if k in first_row}
                        draft.policy.insert(i + 1, row)
                        draft.report["bindings"].insert(i + 1, copy.deepcopy(draft.report["bindings"][i]))
                        for code in codes:
                            draft.code("%s:%s" % (code, row["tool_call_id"]))
                    yield "decision %d %s %s %s" % (i, what, outcome, codes), changed(change)
