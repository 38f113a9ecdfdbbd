package archive

import (
	"fmt"
	"strings"
)

// Finding is one thing that is wrong with an archive. Member is empty and Line 0
// (lines count from 1) where it is about the whole archive or a whole member.
type Finding struct {
	Rule    string `json:"rule"`
	Member  string `json:"member,omitempty"`
	Line    int    `json:"line,omitzero"`
	Message string `json:"message"`
}

func (f Finding) String() string {
	var b strings.Builder
	switch {
	case f.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", f.Member, f.Line)
	case f.Member != "":
		b.WriteString(f.Member + ": ")
	}
	return b.String() + f.Rule + ": " + f.Message
}

// Ids of the rules that this package checks. An id never changes its meaning.
const (
	RuleContainer      = "archive.container"
	RuleMemberForm     = "archive.member"
	RuleOrder          = "archive.order"
	RuleLimit          = "archive.limit"
	RuleTrailing       = "archive.trailing"
	RuleMissing        = "member.missing"
	RuleUnknown        = "member.unknown"
	RuleManifestFiles  = "manifest.files"
	RuleManifestPacks  = "manifest.packs"
	RuleSize           = "member.size"
	RuleDigest         = "member.digest"
	RuleDocumentForm   = "document.form"
	RuleDocumentSchema = "document.schema"
	RuleLinesForm      = "lines.form"
	RuleLineSchema     = "line.schema"
	RuleRunID          = "run_id"
	RuleSeq            = "seq"
	RuleEventsPair     = "events.pair"
	RuleSurfaceOrder   = "surface.order"
)

// Rule is a rule that this package checks, in words.
type Rule struct{ ID, Checks string }

// Rules are the rules of this package, in the order in which they are checked.
var Rules = [...]Rule{
	{RuleContainer, "the input is one whole tar stream, plain or in one gzip stream, with intact checksums"},
	{RuleMemberForm, "every tar entry is a regular file with a plain relative name and nothing hidden in its header"},
	{RuleOrder, "the manifest is first, the other members follow in byte order, each once"},
	{RuleLimit, "sizes, ratio, line length, nesting and counts stay within the fixed limits"},
	{RuleTrailing, "nothing follows the end of the tar stream or of the gzip stream"},
	{RuleMissing, "every member that is not optional is there, empty layers too"},
	{RuleUnknown, "there is no other member"},
	{RuleManifestFiles, "the manifest lists every other member under its own path, and nothing else"},
	{RuleManifestPacks, "packs and mappings of the manifest are sorted, each is there once, and a mapping is of a rule of such a pack"},
	{RuleSize, "a member is as long as the manifest says"},
	{RuleDigest, "a member has the SHA-256 that the manifest says"},
	{RuleDocumentForm, "a document is one compact JSON object in canonical form, without a final newline"},
	{RuleDocumentSchema, "a document has the fields, types and values of its schema"},
	{RuleLinesForm, "a layer is lines of at most 1 MiB, each ended by a line feed, none blank"},
	{RuleLineSchema, "a line has the fields, types and values of its schema"},
	{RuleRunID, "every line and document carries the manifest's run_id, made of A-Z a-z 0-9 _ -"},
	{RuleSeq, "lines are numbered 0, 1, 2 and so on"},
	{RuleEventsPair, "events.ndjson is run_started, then run_finished, and no more"},
	{RuleSurfaceOrder, "the sets of the surface are sorted by bytes and without repetition"},
}

// find hands a finding to the visitor.
func (s *reader) find(rule, member string, line int, format string, a ...any) {
	f := Finding{rule, member, line, fmt.Sprintf(format, a...)}
	if s.sum.Findings == 0 {
		s.sum.first = f
	}
	s.sum.Findings++
	if s.visit.Finding != nil {
		s.visit.Finding(f)
	}
}
