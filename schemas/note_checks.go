package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The values that notes can have, beyond their form (ARCHIVE.md, "Notes").

// isPositive reports whether a text is a number above 0, as numbers are written.
func isPositive(text string) bool {
	n, err := strconv.ParseUint(text, 10, 64)
	return err == nil && n > 0 && strconv.FormatUint(n, 10) == text
}

// positive refuses numbers that are 0: such a note would be left out.
func positive(v NoteValues) error {
	for i := range v {
		if !isPositive(v[i].Value) {
			return fmt.Errorf("says %.100s, expected a number above 0", v[i].Key+"="+v[i].Value)
		}
	}
	return nil
}

// positiveOf refuses names that are not known, and numbers that are 0.
func positiveOf(v NoteValues, what string, known func(name string) bool) error {
	for i := range v {
		if !known(v[i].Key) {
			return fmt.Errorf("says %.100s, which is no %s", v[i].Key, what)
		}
	}
	return positive(v)
}

// captureCounter reports whether runner-capture has a counter of a role.
func captureCounter(name string, roles ...Role) bool {
	return slices.ContainsFunc(Counters[:], func(c Counter) bool {
		return c.Stage == StageCapture && c.Name == name && slices.Contains(roles, c.Role)
	})
}

func checkLoss(v NoteValues) error {
	for i := range v {
		cause := slices.IndexFunc(Causes[:], func(c Cause) bool { return c.Name == v[i].Key })
		switch {
		case cause >= 0 && Causes[cause].Is != nil:
			if !Causes[cause].Is(v[i].Value) {
				return fmt.Errorf("says %s=%.100s, expected %s", v[i].Key, v[i].Value, strings.ReplaceAll(Causes[cause].Value, "`", ""))
			}
		case cause < 0 && !captureCounter(v[i].Key, RoleLoss, RoleEscape):
			return fmt.Errorf("says %.100s, which is no cause", v[i].Key)
		case !isPositive(v[i].Value):
			return fmt.Errorf("says %s=%.100s, expected a number above 0", v[i].Key, v[i].Value)
		}
	}
	return nil
}

func checkDrops(v NoteValues) error {
	return positiveOf(v, "operation", func(name string) bool { return slices.Contains(RawOps[:], name) })
}

func checkMissed(v NoteValues) error { return positive(v) }

func checkQuality(v NoteValues) error {
	return positiveOf(v, "counter of the role quality", func(name string) bool { return captureCounter(name, RoleQuality) })
}

// checkBlindSpots demands the one text that every capture has, and only texts that there are.
func checkBlindSpots(v NoteValues) error {
	if !strings.HasPrefix(v[0].Value, BlindInherited+" (") {
		return fmt.Errorf("begins with %.100q, expected %s (N)", v[0].Value, BlindInherited)
	}
	seen := map[string]bool{}
	for i := 0; i < len(v); i++ {
		text := v[i].Value
		// Why a hook is not there is a text of its own.
		for strings.Contains(text, " (") && !strings.HasSuffix(text, ")") && i+1 < len(v) {
			i++
			text += "; " + v[i].Value
		}
		if seen[text] || !knownBlindSpot(text) {
			return fmt.Errorf("says %.100q, which is no blind spot, or twice", text)
		}
		seen[text] = true
	}
	return nil
}

func checkConfinement(v NoteValues) error {
	var names []string
	for i := range v {
		names = append(names, v[i].Value)
	}
	return CheckConfined(names)
}

func checkFileNote(v NoteValues) error {
	mechanism, _ := v.Get(KeyMechanism)
	switch evidence, _ := v.Get(KeyEvidence); {
	case !slices.Contains(FileMechanisms[:], mechanism):
		return fmt.Errorf("says mechanism=%.100s, expected one of %s", mechanism, strings.Join(FileMechanisms[:], ", "))
	case evidence != EvidenceOf(mechanism):
		return fmt.Errorf("says evidence=%.100s, which is not that of %s", evidence, mechanism)
	}
	return nil
}

// checkToolPolicy demands the digest exactly of one policy.
func checkToolPolicy(v NoteValues) error {
	n, _ := v.Count(KeyPolicies)
	if _, there := v.Get(KeyPolicy); n == 0 || there != (n == 1) {
		return fmt.Errorf("says %s=%d, expected 1 with the digest, or more without", KeyPolicies, n)
	}
	return nil
}

// DropDigest is the digest of a program of --drop, as the note says it.
func DropDigest(program string) string {
	sum := sha256.Sum256([]byte(program))
	return hex.EncodeToString(sum[:])
}

func checkDrop(v NoteValues) error {
	program, _ := v.Get(KeyProgram)
	if digest, _ := v.Get(KeySHA256); digest != DropDigest(program) {
		return fmt.Errorf("says sha256=%s, which is not that of its program", digest)
	}
	return nil
}

func checkNoise(v NoteValues) error {
	table, _ := v.Get(KeyTable)
	if !slices.Contains(NoiseTables[:], table) {
		return fmt.Errorf("says table=%.100s, expected one of %s", table, strings.Join(NoiseTables[:], ", "))
	}
	values, _ := v.Count(KeyValues)
	if omitted, _ := v.Count(KeyOmitted); table == NoiseNone && values+omitted > 0 || values == 0 && omitted > 0 {
		return fmt.Errorf("says table=%s values=%d omitted=%d, which cannot be", table, values, omitted)
	}
	return nil
}

func checkProcesses(v NoteValues) error {
	n, _ := v.Count(KeyProcesses)
	if omitted, _ := v.Count(KeyOmitted); n > MaxProcesses || n == 0 && omitted > 0 {
		return fmt.Errorf("says processes=%d omitted=%d, which cannot be", n, omitted)
	}
	argv, _ := v.Get(KeyArgv)
	key, _ := v.Get(KeyKey)
	hex, digest := strings.CutPrefix(key, "sha256:")
	switch {
	case !slices.Contains(ArgvModes[:], argv):
		return fmt.Errorf("says argv=%.100s, expected one of %s", argv, strings.Join(ArgvModes[:], ", "))
	case key != NoKey && (argv == ArgvNone || !digest || !isDigest(hex)):
		return fmt.Errorf("says argv=%s key=%.100s, expected key=%s or sha256: and 64 hex digits", argv, key, NoKey)
	}
	return nil
}

// checkWindows refuses a count of requests that is 0: it would be left out.
func checkWindows(v NoteValues) error {
	if n, there := v.Count(ClassRequest); there && n == 0 {
		return fmt.Errorf("says %s=0, expected a number above 0", ClassRequest)
	}
	return nil
}
