package schemas

import (
	"errors"
	"fmt"
	"strings"
)

// Documents about the run that wrappers and runner-exec leave: what box it ran in, what clock and network it had, and what it
// was started with.

// Members of the archive that are no layers.
const (
	MemberRunBox   = "run/box.json"
	MemberRunClock = "run/clock.json"
	MemberRunEnv   = "run/env.json"
	MemberRunNet   = "run/net.json"
	MemberStdout   = "logs/stdout"
	MemberStderr   = "logs/stderr"

	// BlobMembers is how the names of blobs begin. What follows are the 64 hexadecimal digits of their SHA-256.
	BlobMembers = "blobs/sha256/"
)

// MaxBlobs is how many blobs an archive has at most.
const MaxBlobs = 1 << 15

// BlobDigest is the digest that the name of a member says. ok is false if the member is no blob.
func BlobDigest(member string) (digest string, ok bool) {
	hex, ok := strings.CutPrefix(member, BlobMembers)
	digest = digestPrefix + hex
	return digest, ok && ValidDigest(digest)
}

// BlobMember is the name of the blob with a digest.
func BlobMember(digest string) string { return BlobMembers + strings.TrimPrefix(digest, digestPrefix) }

// Modes of the network.
const (
	NetModeRecord = "record"
	NetModeReplay = "replay"
	NetModeDeny   = "deny"
)

// NetModes are all modes.
var NetModes = [...]string{NetModeRecord, NetModeReplay, NetModeDeny}

// Net is run/net.json: what network the command had.
type Net struct {
	Schema  string   `json:"schema"`
	RunID   string   `json:"run_id"`
	Mode    string   `json:"mode"`
	Ports   []uint16 `json:"ports"`           // of TCP that runner-net listened on, sorted
	Rules   string   `json:"rules,omitempty"` // digest of the file of --allow
	Headers []string `json:"match_headers"`   // that are part of what makes two requests equal, sorted
	// Counts of the layers, and of what is not in them.
	Exchanges uint64 `json:"exchanges"`
	Names     uint64 `json:"names"`
	NamesLost uint64 `json:"names_lost"`
	Redacted  uint64 `json:"redacted"`
	Unused    uint64 `json:"unused"`
}

// ParseNet parses run/net.json.
func ParseNet(b []byte) (*Net, error) {
	n := new(Net)
	err := decode(b, n)
	if err == nil {
		err = first(head(n.Schema, SchemaNet, n.RunID), oneOf("mode", n.Mode, NetModes[:]...), optionalDigest("rules", n.Rules), n.check())
	}
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	return n, nil
}

func (n *Net) check() error {
	switch {
	case !distinct(n.Ports):
		return errors.New("ports has a port twice")
	case !distinct(n.Headers):
		return errors.New("match_headers has a header twice")
	case n.Rules != "" && n.Mode != NetModeRecord:
		return fmt.Errorf("rules are of the mode %s", NetModeRecord)
	case n.Unused > 0 && n.Mode != NetModeReplay:
		return fmt.Errorf("unused is of the mode %s", NetModeReplay)
	}
	return nil
}

func distinct[E comparable](list []E) bool {
	seen := make(map[E]bool, len(list))
	for _, e := range list {
		seen[e] = true
	}
	return len(seen) == len(list)
}

// RunEnv is run/env.json: what the command was started with, and what it said.
type RunEnv struct {
	Schema   string   `json:"schema"`
	RunID    string   `json:"run_id"`
	Wrappers []string `json:"wrappers"` // in order, the outermost first
	Command  []string `json:"command"`  // behind them, in text form
	UID      uint32   `json:"uid"`      // that the command ran as
	GID      uint32   `json:"gid"`
	Cwd      string   `json:"cwd"` // of the first wrapper, or the command; in text form
	Env      []EnvVar `json:"env"` // of the first wrapper, or the command; sorted by name
	Stdin    RunBytes `json:"stdin"`
	Stdout   RunBytes `json:"stdout"`
	Stderr   RunBytes `json:"stderr"`
	// Policy is the policy file of runner-exec --policy, a blob.
	Policy *RunBytes `json:"policy,omitempty"`
}

// EnvVar is one variable.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"` // in text form; a secret is redacted
}

// RunBytes are the bytes of a standard stream, or of a file.
type RunBytes struct {
	Bytes  uint64 `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Wrappers are the wrappers, as run/env.json names them.
var Wrappers = [...]string{StageBox, StageClock, StageNet}

// ParseRunEnv parses run/env.json.
func ParseRunEnv(b []byte) (*RunEnv, error) {
	e := new(RunEnv)
	err := decode(b, e)
	if err == nil {
		err = first(head(e.Schema, SchemaRunEnv, e.RunID), e.check())
	}
	if err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	return e, nil
}

func (e *RunEnv) check() error {
	if len(e.Command) == 0 {
		return errors.New("command is empty")
	}
	if !strings.HasPrefix(e.Cwd, "/") {
		return fmt.Errorf("cwd is %.100q, expected an absolute path", e.Cwd)
	}
	for _, w := range e.Wrappers {
		if err := oneOf("wrappers", w, Wrappers[:]...); err != nil {
			return err
		}
	}
	if !distinct(e.Wrappers) {
		return errors.New("wrappers has one twice")
	}
	for _, v := range e.Env {
		if err := notEmpty("env.name", v.Name); err != nil {
			return err
		}
	}
	all := map[string]RunBytes{"stdin": e.Stdin, "stdout": e.Stdout, "stderr": e.Stderr}
	if e.Policy != nil {
		all["policy"] = *e.Policy
	}
	for key, s := range all {
		if err := first(notEmpty(key+".sha256", s.SHA256), optionalDigest(key+".sha256", s.SHA256)); err != nil {
			return err
		}
	}
	return nil
}

// RunDocument is a document about the run.
type RunDocument struct {
	Schema, Member, File string
	Parse                func([]byte) (value any, runID string, err error)
}

// RunDocuments are all of them, in the order of a joined stream.
var RunDocuments = [...]RunDocument{
	{SchemaBox, MemberRunBox, "box-v0.schema.json", documentParser(ParseBox, func(x *Box) string { return x.RunID })},
	{SchemaClock, MemberRunClock, "clock-v0.schema.json", documentParser(ParseClock, func(c *Clock) string { return c.RunID })},
	{SchemaRunEnv, MemberRunEnv, "env-v0.schema.json", documentParser(ParseRunEnv, func(e *RunEnv) string { return e.RunID })},
	{SchemaNet, MemberRunNet, "net-v0.schema.json", documentParser(ParseNet, func(n *Net) string { return n.RunID })},
}

func documentParser[T any](parse func([]byte) (*T, error), id func(*T) string) func([]byte) (any, string, error) {
	return func(b []byte) (any, string, error) {
		v, err := parse(b)
		if err != nil {
			return nil, "", err
		}
		return v, id(v), nil
	}
}

// MaxRunDocument bounds each of them, in bytes.
const MaxRunDocument = 4 << 20
