package main

import (
	"fmt"
	"io"
)

// The ids of the rules. They are part of the output contract: an id never changes
// its meaning.
const (
	ruleContainer       = "archive.container"
	ruleMemberForm      = "archive.member"
	ruleOrder           = "archive.order"
	ruleLimit           = "archive.limit"
	ruleTrailing        = "archive.trailing"
	ruleMissing         = "member.missing"
	ruleUnknown         = "member.unknown"
	ruleSize            = "member.size"
	ruleDigest          = "member.digest"
	ruleDocumentForm    = "document.form"
	ruleDocumentSchema  = "document.schema"
	ruleLinesForm       = "lines.form"
	ruleLineSchema      = "line.schema"
	ruleLineForm        = "line.form"
	ruleRunID           = "run_id"
	ruleSeq             = "seq"
	ruleManifestFiles   = "manifest.files"
	ruleEventsPair      = "events.pair"
	ruleEventsResult    = "events.result"
	ruleKernelDerived   = "kernel.derived"
	ruleKernelText      = "kernel.text"
	ruleEventsEnv       = "events.environment"
	rulePolicyDecision  = "policy.decision"
	rulePolicyText      = "policy.text"
	rulePolicyOrder     = "policy.order"
	ruleSDKText         = "sdk.text"
	ruleHealthDrops     = "health.drops"
	ruleHealthPlatform  = "health.platform"
	ruleHealthCgroup    = "health.cgroup"
	ruleHealthLayer     = "health.layer"
	ruleHealthNote      = "health.note"
	ruleHealthLoss      = "health.loss"
	ruleHealthNetwork   = "health.network"
	ruleSurfaceOrder    = "surface.order"
	ruleSurfaceDerived  = "surface.derived"
	ruleReportBindings  = "report.bindings"
	ruleReportAmbiguity = "report.ambiguities"
	ruleReportStatus    = "report.status"
	ruleRequire         = "require"
	ruleAssert          = "assert"
)

// ruleTable is every rule, in the order in which they are checked.
var ruleTable = []struct{ id, checks string }{
	{ruleContainer, "the input is one whole tar stream, plain or in one gzip stream, with intact checksums"},
	{ruleMemberForm, "every tar entry is a regular file with a plain relative name and nothing hidden in its header"},
	{ruleOrder, "the manifest is first, the other members follow in byte order, none is there twice"},
	{ruleLimit, "sizes, ratio, line length, nesting and counts stay within the fixed limits"},
	{ruleTrailing, "nothing follows the end of the tar stream or of the gzip stream"},
	{ruleMissing, "all eight members are there, empty layers too"},
	{ruleUnknown, "there is no other member"},
	{ruleManifestFiles, "the manifest lists every other member under its own path, and nothing else"},
	{ruleSize, "a member is as long as the manifest says"},
	{ruleDigest, "a member has the SHA-256 that the manifest says"},
	{ruleDocumentForm, "a document is one compact JSON object in canonical form, without a final newline"},
	{ruleDocumentSchema, "a document has the fields, types and values of its schema"},
	{ruleLinesForm, "a layer is lines of at most 1 MiB, each ended by a line feed, none blank"},
	{ruleLineSchema, "a line has the fields, types and values of its schema"},
	{ruleLineForm, "a line of this runner is in canonical form: order of keys, escapes, no blanks"},
	{ruleRunID, "every line and document carries the manifest's run_id, made of A-Z a-z 0-9 _ -"},
	{ruleSeq, "lines are numbered 0, 1, 2 and so on"},
	{ruleEventsPair, "events.ndjson is run_started, then run_finished, and no more"},
	{ruleEventsResult, "success is true exactly when exit_code is 0, and exit_code and signal exclude each other"},
	{ruleEventsEnv, "the names in env_keys are known, sorted and unique, and go together and with agent_shim"},
	{ruleKernelDerived, "access mode, operation flags, status and endpoint of a kernel line follow from its numbers"},
	{ruleKernelText, "a name written by this runner is the escape of some byte string"},
	{rulePolicyDecision, "outcome, reason, rule and digest of a decision of this runner go together"},
	{rulePolicyText, "names in the policy layer of this runner are escapes of byte strings"},
	{rulePolicyOrder, "decisions with a session are in the order of their ids, in front of the others"},
	{ruleSDKText, "names in the SDK layer of this runner are escapes of byte strings"},
	{ruleHealthDrops, "ringbuf_drops above 0 come with kernel_layer=partial_ringbuf_drops alone"},
	{ruleHealthPlatform, "platforms other than linux have kernel_layer=absent"},
	{ruleHealthCgroup, "cgroup_correlation is not failed, and clean exactly when there is a kernel layer"},
	{ruleHealthLayer, "policy_layer and sdk_layer say what the layers hold, and SDK data is self-reported at most"},
	{ruleHealthNote, "the capture notes are there once, and their counts and values are those of the layers"},
	{ruleHealthLoss, "a complete kernel layer has no loss note, a partial one has its cause"},
	{ruleHealthNetwork, "network coverage and claim scope agree with the kernel lines and with each other"},
	{ruleSurfaceOrder, "the sets of the surface are sorted by bytes and without repetition"},
	{ruleSurfaceDerived, "the surface is exactly the union of the values of the kernel and policy layers"},
	{ruleReportBindings, "there is one binding a policy decision, in order, and its count, window and effects are what the layers allow"},
	{ruleReportAmbiguity, "the ambiguities are known, sorted, and those that follow from the layers"},
	{ruleReportStatus, "the report is clean exactly when nothing in it is ambiguous, and failed exactly when a code says so"},
	{ruleRequire, "the record has what --require demands"},
	{ruleAssert, "the expression of --assert holds"},
}

func printRules(w io.Writer) error {
	for _, r := range ruleTable {
		if _, err := fmt.Fprintf(w, "%-20s %s\n", r.id, r.checks); err != nil {
			return err
		}
	}
	return nil
}
