package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// The notes about the mechanism of file rules and about the command's confinement agree.
func TestConfinementNote(t *testing.T) {
	const before = `"s4_network_policy`
	for _, c := range []struct{ mechanism, confined, fault string }{
		{"lsm evidence=observed", "", ""},
		{"lsm evidence=observed", "no_new_privs; seccomp", ""},
		{"fanotify evidence=mixed", "mount_namespace; domain; seccomp", ""},
		{"landlock evidence=inferred", "no_new_privs; landlock", ""},
		{"fanotify evidence=mixed", "", "no mount_namespace in s3_confinement"},
		{"fanotify evidence=mixed", "domain; seccomp", "no mount_namespace in s3_confinement"},
		{"fanotify evidence=mixed", "mount_namespace; landlock; seccomp", "s3_confinement says landlock"},
		{"landlock evidence=inferred", "no_new_privs", "no landlock in s3_confinement"},
		{"lsm evidence=observed", "landlock", "s3_confinement says landlock"},
		{"lsm evidence=observed", "mount_namespace", "s3_confinement says mount_namespace"},
		{"lsm evidence=observed", "sandbox", "known names in order"},
		{"lsm evidence=observed", "seccomp; no_new_privs", "known names in order"},
		{"lsm evidence=observed", "seccomp; seccomp", "known names in order"},
		{"lsm evidence=observed", "no_new_privs;seccomp", "known names in order"},
		{"lsm evidence=observed", `no_new_privs","s3_confinement: seccomp`, "2 notes s3_confinement"},
	} {
		a, note := layered(), ""
		if c.confined != "" {
			note = `"s3_confinement: ` + c.confined + `",`
		}
		a[bundle.HealthName] = strings.NewReplacer(before, note+before, "lsm evidence=observed", c.mechanism).Replace(a[bundle.HealthName])
		checkNote(t, a, c.mechanism+" "+c.confined, c.fault)
	}
}

// A run without a capture has no notes of what only a capture does.
func TestCaptureNotes(t *testing.T) {
	const policy = "policy=" + testDigest
	for note, fault := range map[string]string{
		"s3_confinement: no_new_privs":                                                "",
		"s3_confinement: landlock":                                                    "s3_confinement says landlock",
		"s4_network_policy: rules=1 blocked=0 " + policy:                              "note s4_network_policy without s2_kernel_capture",
		"s4_file_policy: rules=1 blocked=0 mechanism=lsm evidence=observed " + policy: "note s4_file_policy without s2_kernel_capture",
		"s2_drops: file_blocked=1":                                                    `note "s2_drops" without s2_kernel_capture`,
		"s2_blind_spots: inherited descriptors (0); shared memory":                    `note "s2_blind_spots" without s2_kernel_capture`,
	} {
		a := withoutKernel(sample(), wholeRun)
		a[bundle.HealthName] = strings.Replace(a[bundle.HealthName], `was not requested",`, `was not requested","`+note+`",`, 1)
		checkNote(t, a, note, fault)
	}
}

// checkNote checks an archive in which at most a note is wrong.
func checkNote(t *testing.T, a content, name, fault string) {
	t.Helper()
	_, r := check(t, a.digest(t).tar(t))
	if fault == "" {
		if !r.Valid {
			t.Errorf("%s: %+v", name, r.Findings)
		}
		return
	}
	for _, rule := range rules(r) {
		if rule != ruleHealthNote {
			t.Errorf("%s: rule %s", name, rule)
		}
	}
	if !slices.ContainsFunc(r.Findings, func(f archive.Finding) bool { return strings.Contains(f.Message, fault) }) {
		t.Errorf("%s: expected %q, have %+v", name, fault, r.Findings)
	}
}
