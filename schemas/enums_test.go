package schemas

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// closedSets are the closed sets of this package, as the JSON Schemas list them.
func closedSets() map[string][]string {
	sets := map[string][]string{
		"decisions":        {DecisionAllow, DecisionDeny},
		"reasons of calls": append(ReasonsOf(ReasonAllows), ReasonsOf(ReasonDenies)...), "reasons of allowed calls": ReasonsOf(ReasonAllows),
		"reasons of denied calls": ReasonsOf(ReasonDenies), "reasons of refusals": ReasonsOf(ReasonRefuses),
		"reasons of requests":         slices.Concat(ReasonsOf(ReasonAllows), ReasonsOf(ReasonPasses), ReasonsOf(ReasonDenies), ReasonsOf(ReasonStops)),
		"reasons of allowed requests": append(ReasonsOf(ReasonAllows), ReasonsOf(ReasonPasses)...),
		"reasons of denied requests":  append(ReasonsOf(ReasonDenies), ReasonsOf(ReasonStops)...),
		"outcomes of calls":           CallOutcomes, "directions": {FromClient, FromServer},
		"operations": RawOps[:], "states": StateKinds[:], "sources": RawSources[:], "hooks of events": RawHooks[:], "file types": RawFileTypes[:], "marks": markNames[:],
		"origins": Origins[:], "access modes": AccessModes[:], "operation flags": operationNames[:], "outcomes of events": {StatusSuccess, StatusError}, "statuses of events": {StatusSuccess, StatusError, StatusUnproven}, "doubts": {DoubtChanged},
		"surface sets": SurfaceSets[:], "SDK events": SDKEventTypes[:], "scopes": {ScopeToolServer, ScopeRun},
		"kernel layers": {LayerComplete, LayerPartial, LayerAbsent}, "policy layers": {LayerPresent, LayerAbsent}, "SDK layers": {LayerPresent, LayerSelfReported, LayerAbsent},
		"correlations": {CorrelationClean, CorrelationPartial, CorrelationFailed}, "statuses of streams": {string(StatusComplete), string(StatusPartial)},
		"coverages": {CoverageUnknown, CoverageAbsent, CoverageConnect, CoverageDatagram, CoverageBoth}, "claim scopes": {ScopeUnknown, ScopeNotApplicable, ScopeDiagnostic, "peer_set"},
		"families": NetworkFamilies[:], "families of IP": {FamilyInet, FamilyInet6}, "protocols": NetworkProtocols[:],
		"hooks of rules": NetworkHooks[:], "hooks of unix rules": {HookConnect, HookSend},
		"operations of file rules": RuleOps[:], "operations in the section files": FileOps[:],
		"sources of times": TimeSources[:], "capture origins": {"third_party", "unsupported"}, "containers": {"gzip", "tar", ""},
	}
	sets["kinds of files"], sets["changes of files"], sets["kinds of bases"] = FileKinds[:], FileChanges[:], BaseKinds[:]
	sets["schemes"], sets["decisions about exchanges"], sets["failures of exchanges"] = NetSchemes[:], NetDecisions[:], NetFailures[:]
	sets["ticks"], sets["runtimes"], sets["sources of random numbers"] = Ticks[:], Runtimes[:], CryptoSources[:]
	sets["kinds of policies"], sets["verdicts of approvals"], sets["statuses of commits"], sets["steps of journals"] = GatePolicyKinds[:], GateVerdicts[:], GateStatuses[:], GateSteps[:]
	sets["methods that change nothing"] = plainMethods[:]
	sets["actions of gates"], sets["classes of plans"], sets["classes of rules"], sets["methods of rollbacks"] = GateActions[:], GateClasses[:], append(GateClasses[:], GateAny), RollbackMethods[:]
	sets["modes of networks"], sets["wrappers"] = NetModes[:], Wrappers[:]
	sets["workspaces"], sets["namespaces of boxes"] = Workspaces[:], BoxNamespaces[:]
	sets["files without more"], sets["devices"] = []string{KindFIFO, KindSocket}, []string{KindChar, KindBlock}
	sets["kinds of packs"], sets["severities"] = PackKinds[:], Severities[:]
	sets["sources of decision logs"] = LogSources[:]
	sets["what is unsure of acts"] = ActUnsure[:]
	sets["outcomes of acts"], sets["directions of acts"] = ActOutcomes[:], []string{DirectionOut, DirectionLocal}
	sets["transports"], sets["families of endpoints"] = []string{TransportDatagram, TransportStream}, []string{EndpointIPv4, EndpointIPv6, EndpointUnix}
	sets["rights of Landlock"], sets["mechanisms"] = LandlockRights[:], FileMechanisms[:]
	for _, c := range Confinements {
		sets["confinements"] = append(sets["confinements"], c.Name)
	}
	var names, otherNames, plain []string
	for _, e := range EventTypes {
		switch {
		case e.Name != "":
			names = append(names, e.Name)
		case e.Other != "":
			names = append(names, e.Other)
			otherNames = append(otherNames, KindOf(e.ID))
			sets["kinds of "+e.Other] = []string{KindOf(e.ID), e.Other}
		}
	}
	for _, k := range Ambiguities() {
		if k.Arg == ArgNone {
			plain = append(plain, k.Code)
		}
	}
	sets["kinds"], sets["kinds with two names"], sets["ambiguities without argument"] = names, otherNames, plain
	for _, s := range Streams() {
		sets["streams"] = append(sets["streams"], s.Name)
	}
	return sets
}

// TestEnumsAreTheTables: every closed set of a JSON Schema is one of this package, and
// every ambiguity and reason why is in the schema of its code.
func TestEnumsAreTheTables(t *testing.T) {
	sets := closedSets()
	used := map[string]bool{}
	name := func(list []string) string {
		for _, n := range slices.Sorted(maps.Keys(sets)) {
			if slices.Equal(slices.Sorted(slices.Values(list)), slices.Sorted(slices.Values(sets[n]))) {
				return n
			}
		}
		return ""
	}
	for _, f := range append(Forms(), DecisionLogForm) {
		var tree any
		testkit.Must(t, json.Unmarshal(f.JSONSchema(), &tree))
		eachEnum(tree, func(list []string) {
			n := name(list)
			if n == "" {
				t.Errorf("%s has the closed set %q, which is not one of the package", f.File, list)
			}
			used[n] = true
		})
	}
	for n := range sets {
		if !used[n] {
			t.Errorf("no schema has the closed set %s", n)
		}
	}
	form, _ := FormOf(SchemaAmbiguity)
	text := string(form.JSONSchema())
	for _, k := range Ambiguities() {
		if !strings.Contains(text, k.Code) {
			t.Errorf("%s has no %s", form.File, k.Code)
		}
		if len(k.Whys) > 0 && !strings.Contains(text, fmt.Sprintf("^%s:[1-9][0-9]{0,18}:(%s)$", k.Code, strings.Join(k.Whys, "|"))) {
			t.Errorf("%s has other reasons than %q for %s", form.File, k.Whys, k.Code)
		}
	}
}

// eachEnum calls f for every closed set of strings, examples aside.
func eachEnum(n any, f func([]string)) {
	switch n := n.(type) {
	case map[string]any:
		if all, ok := n["enum"].([]any); ok {
			var list []string
			for _, v := range all {
				if s, ok := v.(string); ok {
					list = append(list, s)
				}
			}
			if len(list) > 0 {
				f(list)
			}
		}
		for k, v := range n {
			if k != "examples" && k != "enum" {
				eachEnum(v, f)
			}
		}
	case []any:
		for _, v := range n {
			eachEnum(v, f)
		}
	}
}
