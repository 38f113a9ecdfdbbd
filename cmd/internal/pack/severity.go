package pack

import "github.com/runner-evidence/runner/schemas"

// Severity says how bad it is that a rule does not hold. A greater one is worse.
type Severity int

// Severities, in the order of schemas.Severities.
const (
	Info Severity = iota
	Warning
	Error
)

// String is the severity's name.
func (s Severity) String() string { return schemas.Severities[s] }

// ParseSeverity returns the severity of a name.
func ParseSeverity(name string) (Severity, bool) {
	for i, n := range schemas.Severities {
		if n == name {
			return Severity(i), true
		}
	}
	return 0, false
}
