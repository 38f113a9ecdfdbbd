package main

import (
	"fmt"
	"io"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// The ids of the rules, together with those of package archive. They are part of
// the output contract: an id never changes its meaning.
const (
	ruleLineForm        = "line.form"
	ruleEventsResult    = "events.result"
	ruleKernelDerived   = "kernel.derived"
	ruleKernelText      = "kernel.text"
	ruleKernelOrder     = "kernel.order"
	ruleEventsEnv       = "events.environment"
	rulePolicyDecision  = "policy.decision"
	rulePolicyText      = "policy.text"
	rulePolicyOrder     = "policy.order"
	ruleSDKText         = "sdk.text"
	ruleIntentsKeys     = "intents.keys"
	ruleHealthDrops     = "health.drops"
	ruleHealthPlatform  = "health.platform"
	ruleHealthCgroup    = "health.cgroup"
	ruleHealthLayer     = "health.layer"
	ruleHealthNote      = "health.note"
	ruleHealthLoss      = "health.loss"
	ruleHealthNetwork   = "health.network"
	ruleSurfaceDerived  = "surface.derived"
	ruleReportBindings  = "report.bindings"
	ruleReportAmbiguity = "report.ambiguities"
	ruleReportStatus    = "report.status"
	ruleRequire         = "require"
	ruleAssert          = "assert"
	ruleAttestation     = "attestation"
)

// rule is one row of the table. Its checks are of three kinds: those of every
// archive; those of an archive of another implementation, which must satisfy the
// v0 contract and nothing more; and those of an archive that this runner wrote,
// which must say what this runner would have said. A rule without checks is one
// of package archive, or of the command line.
type rule struct {
	id, checks               string
	every, contract, profile []condition
}

const (
	kernelLayerName = bundle.KernelName
	policyLayerName = bundle.PolicyName
	sdkLayerName    = bundle.SDKName
	eventsName      = bundle.EventsName
)

// ruleTable is every rule, in the order of the output of --rules. Checks of one
// moment run in this order.
var ruleTable = []rule{
	ofArchive(archive.RuleContainer),
	ofArchive(archive.RuleMemberForm),
	ofArchive(archive.RuleOrder),
	ofArchive(archive.RuleLimit),
	ofArchive(archive.RuleTrailing),
	ofArchive(archive.RuleMissing),
	ofArchive(archive.RuleUnknown),
	ofArchive(archive.RuleManifestFiles),
	ofArchive(archive.RuleManifestPacks),
	ofArchive(archive.RuleSize),
	ofArchive(archive.RuleDigest),
	ofArchive(archive.RuleDocumentForm),
	ofArchive(archive.RuleDocumentSchema),
	ofArchive(archive.RuleLinesForm),
	ofArchive(archive.RuleLineSchema).others(lines(policyLayerName, (*verifier).contractKeys), lines(sdkLayerName, (*verifier).contractSDKKeys)),
	{id: ruleLineForm, checks: "a line of this runner, and every time, is in canonical form: order of keys, escapes, no blanks",
		contract: []condition{lines(timesLayerName, (*verifier).timeForm)},
		profile:  []condition{anyLine((*verifier).lineForm)}},
	ofArchive(archive.RuleRunID),
	ofArchive(archive.RuleSeq),
	ofArchive(archive.RuleEventsPair),
	{id: ruleOrigin, checks: "the marks of an archive are all this runner's, or all of another implementation; they decide which rules hold",
		every:    []condition{after(eventsName, (*verifier).elapsedBoth)},
		contract: []condition{ofHealth((*verifier).contractMarks)},
		profile:  []condition{ofHealth((*verifier).profileMarks)}},
	{id: ruleEventsResult, checks: "success is true exactly when exit_code is 0, exit_code and signal exclude each other, and both are ones that there can be, of a command that was executed",
		every:   []condition{lines(eventsName, (*verifier).eventResult)},
		profile: []condition{ofHealth((*verifier).resultCan)}},
	{id: ruleEventsEnv, checks: "the names in env_keys are known, sorted and unique, and go together and with agent_shim",
		profile: []condition{lines(eventsName, (*verifier).environment)}},
	{id: ruleKernelDerived, checks: "access mode, operation flags, status and endpoint of a kernel line follow from its numbers",
		every:    []condition{lines(kernelLayerName, (*verifier).kernelNumbers)},
		contract: []condition{lines(kernelLayerName, (*verifier).contractOperations)},
		profile:  []condition{lines(kernelLayerName, (*verifier).profileKernel), lines(kernelLayerName, (*verifier).kernelCan)}},
	{id: ruleKernelOrder, checks: "lines of one operation follow each other with one outcome; numbers of processes can be such, and canonical ones do not fall; names that are missing were counted",
		profile: []condition{noting(kernelLayerName, (*verifier).kernelNeighbours), ofHealth((*verifier).kernelOrder)}},
	{id: ruleKernelText, checks: "a name written by this runner is the escape of some byte string",
		profile: []condition{lines(kernelLayerName, (*verifier).kernelText)}},
	{id: rulePolicyDecision, checks: "outcome, reason, rule and digest of a decision of this runner go together",
		profile: []condition{lines(policyLayerName, (*verifier).policyDecision), ofReport((*verifier).attemptsFollow), ofReport((*verifier).sessionsDiffer)}},
	{id: rulePolicyText, checks: "names in the policy layer of this runner are escapes of byte strings",
		profile: []condition{lines(policyLayerName, (*verifier).policyText)}},
	{id: rulePolicyOrder, checks: "decisions with a session are in the order of their ids, before the others",
		profile: []condition{lines(policyLayerName, (*verifier).policyOrder)}},
	{id: ruleSDKText, checks: "names in the SDK layer of this runner are escapes of byte strings",
		profile: []condition{lines(sdkLayerName, (*verifier).sdkText)}},
	{id: ruleIntentsKeys, checks: "no two intents have one idempotency_key",
		every: []condition{lines(schemas.MemberIntents, (*verifier).intentLine)}},
	{id: ruleTimesLines, checks: "the layer times is one anchor, then one time for each line of the other layers, in order; ends are not before starts",
		every: []condition{lines(timesLayerName, (*verifier).timeLine), after(timesLayerName, (*verifier).timesComplete)}},
	{id: ruleTimesNote, checks: "the layer times and its note are both there or both absent, and the note counts its lines",
		every: []condition{ofHealth((*verifier).timesNote)}},
	{id: ruleTimesWindows, checks: "a call with a window of its own has no more kernel lines than happened while it ran",
		every: []condition{ofReport((*verifier).timesWindows)}},
	{id: ruleTimesCalls, checks: "calls overlap in the layer times exactly where the report of one session says so, and decisions of one id start in their order",
		profile: []condition{ofReport((*verifier).timesCalls)}},
	{id: ruleFilteredLines, checks: "the layer filtered is a sorted set of paths for each noise rule, within its bounds",
		every: []condition{lines(filteredLayerName, (*verifier).filteredLine)}},
	{id: ruleFilteredNote, checks: "the layer filtered and its note go together, and the note counts its lines",
		every: []condition{ofHealth((*verifier).filteredNote)}},
	{id: ruleProcessLines, checks: "the layer process is the fork tree in its order, within its bounds; a state says what can be",
		every: []condition{lines(processLayerName, (*verifier).processLine)}},
	{id: ruleProcessKernel, checks: "the processes share out the kernel lines in their order, and executed what these say",
		every: []condition{noting(processLayerName, (*verifier).processKernelLines), ofHealth((*verifier).processKernel)}},
	{id: ruleProcessNote, checks: "the layer process and its note go together, and the note counts its lines and states",
		every: []condition{ofHealth((*verifier).processNote)}},
	{id: ruleWrappedLines, checks: "the layers of wrappers are in their order, a line says what can be, and a hard link leads to the first name of a file",
		every: []condition{lines(schemas.MemberClock, (*verifier).tickLine), lines(schemas.MemberNames, (*verifier).nameLine), lines(schemas.MemberChanges, (*verifier).changeLine), lines(schemas.MemberExchanges, (*verifier).exchangeLine)}},
	{id: ruleWrappedDocuments, checks: "the documents below run/ go with the layers of their wrappers, their counts and their notes",
		every: []condition{ofHealth((*verifier).wrappedDocuments)}},
	{id: ruleWrappedBlobs, checks: "every blob is named by a layer or a document, and what they need is there; the list of a base has the digest of run/box.json, and the changes are of that base",
		every: []condition{ofHealth((*verifier).wrappedBlobs)}},
	{id: ruleHealthDrops, checks: "ringbuf_drops is above 0 only with kernel_layer=partial_ringbuf_drops",
		every: []condition{ofHealth((*verifier).healthDrops)}},
	{id: ruleHealthPlatform, checks: "platforms other than linux have kernel_layer=absent",
		every: []condition{ofHealth((*verifier).healthPlatform)}},
	{id: ruleHealthCgroup, checks: "cgroup_correlation is not failed, and clean exactly when there is a kernel layer; escapes are the same number everywhere",
		every:   []condition{ofHealth((*verifier).healthCgroup)},
		profile: []condition{ofHealth((*verifier).captureState)}},
	{id: ruleHealthLayer, checks: "policy_layer and sdk_layer say what the layers hold, and SDK data is self-reported at most",
		every:    []condition{ofHealth((*verifier).healthSDKLayer)},
		contract: []condition{ofHealth((*verifier).contractPolicyLayer)},
		profile:  []condition{ofHealth((*verifier).profilePolicyLayer), ofHealth((*verifier).profileShim)}},
	{id: ruleHealthNote, checks: "the capture notes are there once, and their counts and values are those of the layers",
		every:    []condition{ofHealth((*verifier).kernelNote), ofHealth((*verifier).kernelNoteValues), ofHealth((*verifier).optionalNotes)},
		contract: []condition{ofHealth((*verifier).contractNotes)},
		profile: []condition{ofHealth((*verifier).blindSpotsNote), ofHealth((*verifier).noteForms), ofHealth((*verifier).layerNotes),
			ofHealth((*verifier).sessionsNote), ofHealth((*verifier).windowsNote), ofHealth((*verifier).windowsNoteCalls), ofHealth((*verifier).captureNotes), ofHealth((*verifier).kernelCounted), ofHealth((*verifier).blindSpots), ofHealth((*verifier).enforcementNotes), ofHealth((*verifier).confinementNote), ofHealth((*verifier).toolPolicyNote)}},
	{id: ruleHealthLoss, checks: "a complete kernel layer has no loss note, a partial one has its cause; drops and missed events add up",
		every:   []condition{ofHealth((*verifier).lossNote)},
		profile: []condition{ofHealth((*verifier).lossCause), ofHealth((*verifier).missedNote)}},
	{id: ruleHealthNetwork, checks: "network coverage and claim scope agree with the kernel lines and with each other",
		contract: []condition{ofHealth((*verifier).contractNetwork)},
		profile:  []condition{ofHealth((*verifier).profileNetwork)}},
	ofArchive(archive.RuleSurfaceOrder),
	{id: ruleSurfaceDerived, checks: "the surface is exactly the union of the values of the kernel and policy layers",
		every: []condition{ofLayers((*verifier).surfaceDerived)}},
	{id: ruleReportBindings, checks: "there is one binding for each policy decision, in order, and its count, window and effects are what the layers allow",
		every:    []condition{after(policyLayerName, (*verifier).bindings), ofReport((*verifier).bindingCount)},
		contract: []condition{after(policyLayerName, (*verifier).contractBindings), ofReport((*verifier).contractCgroups)},
		profile: []condition{after(policyLayerName, (*verifier).profileBindings), after(policyLayerName, (*verifier).profileEffects),
			ofReport((*verifier).profileWindows), ofReport((*verifier).profileJoins), ofReport((*verifier).profileCounts), ofReport((*verifier).wholeCounts), ofReport((*verifier).profileTargets)}},
	{id: ruleReportAmbiguity, checks: "the ambiguities are known, sorted, and those that follow from the layers",
		contract: []condition{ofReport((*verifier).contractAmbiguities)},
		profile: []condition{ofReport((*verifier).ambiguityForms), ofReport((*verifier).derivedAmbiguities), ofReport((*verifier).observedAmbiguities),
			ofReport((*verifier).logAmbiguities), ofReport((*verifier).idleAmbiguities), ofReport((*verifier).policyAmbiguities), ofReport((*verifier).boundedAmbiguities), ofReport((*verifier).nameAmbiguities), ofReport((*verifier).targetAmbiguities)}},
	{id: ruleReportStatus, checks: "the report is clean exactly when nothing in it is ambiguous, and failed exactly when a code says so",
		contract: []condition{ofReport((*verifier).contractStatus)},
		profile:  []condition{ofReport((*verifier).profileStatus)}},
	{id: ruleRequire, checks: "the record has what --require demands"},
	{id: ruleAssert, checks: "the expression of --assert holds"},
	{id: ruleAttestation, checks: "the statement of --attestation is signed by the keys, is about this archive and says what it says"},
}

// ofArchive is the row of a rule that package archive checks.
func ofArchive(id string) rule {
	for _, r := range archive.Rules {
		if r.ID == id {
			return rule{id: r.ID, checks: r.Checks}
		}
	}
	panic("runner-verify: package archive has no rule " + id)
}

// others adds a check of archives of other implementations.
func (r rule) others(c ...condition) rule {
	r.contract = append(r.contract, c...)
	return r
}

func printRules(w io.Writer) error {
	for _, r := range ruleTable {
		if _, err := fmt.Fprintf(w, "%-20s %s\n", r.id, r.checks); err != nil {
			return err
		}
	}
	return nil
}
