package stream

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

const vectorDir = "../../testdata/vectors/stream"

// vector is one kernel.raw stream with at most one fault, and the class of the
// refusal. Its file holds the line `expect: CLASS`, an empty line, and the bytes.
type vector struct{ expect, bytes string }

func vectors() map[string]vector {
	const raw, other = schemas.StreamRaw, "run_02"
	h, one, two := header(raw, run), record(run, 1), record(run, 2)
	body := h + one + two
	end := trailer(raw, run, 2, body, "complete")
	whole := body + end
	// with changes a record and seals the stream anew: the change is the only fault.
	with := func(old, new string) string { return seal(strings.Replace(one, old, new, 1), two) }
	cheapH, cheapEnd := cheap(h, one+two, end)
	cheapBody := cheapH + one + two
	return map[string]vector{
		"ok_crc32c":           {"ok", cheapBody + cheapEnd},
		"crc32c":              {"digest", strings.Replace(cheapBody, "s1", "s3", 1) + cheapEnd},
		"crc32c_of_header":    {"digest", strings.Replace(cheapBody, `"v0"`, `"v1"`, 1) + cheapEnd},
		"crc32c_upper_hex":    {"digest", cheapBody + upper(cheapEnd, `"crc32c":"`, 8)},
		"crc32c_not_named":    {"form", body + cheapEnd},
		"crc32c_named_sha256": {"form", cheapBody + trailer(raw, run, 2, cheapBody, "complete")},
		"crc32c_and_sha256":   {"form", cheapBody + strings.Replace(cheapEnd, `"crc32c"`, `"sha256":"`+strings.Repeat("0", 64)+`","crc32c"`, 1)},
		"crc32c_cut":          {"truncated", cheapBody},
		"trailer_no_checksum": {"form", body + strings.Replace(end, end[strings.Index(end, `,"sha256"`):strings.Index(end, `,"status"`)], "", 1)},
		"checksum_unknown":    {"form", strings.Replace(cheapBody, `"crc32c"`, `"md5"`, 1) + cheapEnd},
		"checksum_default":    {"form", strings.Replace(cheapBody, `"crc32c"`, `"sha256"`, 1) + end},
		"checksum_empty":      {"form", strings.Replace(cheapBody, `"crc32c"`, `""`, 1) + end},
		"ok":                  {"ok", whole},
		"ok_empty":            {"ok", seal()},
		"ok_partial":          {"ok", body + trailer(raw, run, 2, body, "partial")},

		"empty":               {"truncated", ""},
		"header_only":         {"truncated", h},
		"header_cut":          {"truncated", h[:len(h)-1]},
		"no_trailer":          {"truncated", body},
		"no_final_newline":    {"truncated", strings.TrimSuffix(whole, "\n")},
		"record_cut":          {"truncated", body[:len(body)-9]},
		"no_header":           {"not_stream", one + two + trailer(raw, run, 2, one+two, "complete")},
		"wrong_stream":        {"not_stream", strings.ReplaceAll(whole, raw, schemas.StreamJoined)},
		"bom":                 {"not_stream", "\xef\xbb\xbf" + whole},
		"blank_first":         {"not_stream", "\n" + whole},
		"header_unknown_key":  {"not_stream", strings.Replace(whole, `"version"`, `"colour":1,"version"`, 1)},
		"header_bad_run_id":   {"form", strings.ReplaceAll(whole, run, "run/01")},
		"header_not_compact":  {"form", strings.Replace(whole, `,"tool"`, `, "tool"`, 1)},
		"header_missing_key":  {"form", strings.Replace(whole, `,"version":"v0"`, ``, 1)},
		"crlf":                {"form", strings.ReplaceAll(whole, "\n", "\r\n")},
		"count_low":           {"count", body + trailer(raw, run, 1, body, "complete")},
		"count_high":          {"count", body + trailer(raw, run, 3, body, "complete")},
		"record_lost":         {"count", h + one + end},
		"record_twice":        {"count", h + one + one + two + end},
		"digest":              {"digest", strings.Replace(body, "s1", "s3", 1) + end},
		"digest_of_header":    {"digest", strings.Replace(body, `"v0"`, `"v1"`, 1) + end},
		"records_swapped":     {"digest", h + two + one + end},
		"trailing_newline":    {"trailing", whole + "\n"},
		"trailing_space":      {"trailing", whole + " "},
		"two_trailers":        {"trailing", whole + end},
		"two_streams":         {"trailing", whole + whole},
		"mixed_run_id":        {"mixed_run", seal(one, record(other, 2))},
		"trailer_of_other":    {"mixed_run", body + trailer(raw, other, 2, body, "complete")},
		"run_id_not_second":   {"mixed_run", with(`"run_id":"run_01","stage":"s1"`, `"stage":"s1","run_id":"run_01"`)},
		"two_headers":         {"mixed_run", seal(h, two)},
		"blank_line":          {"form", seal(one, "\n", two)},
		"nul":                 {"form", with("s1", "s\x00")},
		"control_character":   {"form", with("s1", "s\t")},
		"bad_utf8":            {"form", with("é", "\xe9")},
		"utf8_surrogate":      {"form", with("é", "\xed\xa0\x80")},
		"not_json":            {"form", seal("hello\n", two)},
		"array":               {"form", seal("[]\n", two)},
		"space_first":         {"form", with("{", " {")},
		"space_last":          {"form", with("}\n", "} \n")},
		"schema_not_first":    {"form", with(`{"schema":"runner.stage_health.v0","run_id":"run_01"`, `{"run_id":"run_01","schema":"runner.stage_health.v0"`)},
		"trailer_not_compact": {"form", body + strings.Replace(end, `,"sha256"`, `, "sha256"`, 1)},
		"trailer_key_order":   {"form", body + strings.Replace(end, `"status":"complete"}`, `"status":"complete","status":"complete"}`, 1)},
		"trailer_upper_hex":   {"digest", body + upper(end, `"sha256":"`, 64)},
		"trailer_bad_status":  {"form", body + trailer(raw, run, 2, body, "failed")},
		"trailer_no_status":   {"form", body + strings.Replace(end, `,"status":"complete"`, ``, 1)},
		"trailer_other_name":  {"form", body + trailer(schemas.StreamJoined, run, 2, body, "complete")},
		"trailer_exponent":    {"form", body + strings.Replace(end, `"records":2`, `"records":2e0`, 1)},
	}
}

// upper has the n digits after a key in upper case.
func upper(trailer, key string, n int) string {
	start, end, _ := strings.Cut(trailer, key)
	return start + key + strings.ToUpper(end[:n]) + end[n:]
}

func TestVectors(t *testing.T) {
	want := vectors()
	if testkit.Update() {
		testkit.Must(t, os.RemoveAll(vectorDir))
		testkit.Must(t, os.MkdirAll(vectorDir, 0o755))
		for name, v := range want {
			testkit.Must(t, os.WriteFile(filepath.Join(vectorDir, name), []byte("expect: "+v.expect+"\n\n"+v.bytes), 0o644))
		}
	}
	list, err := os.ReadDir(vectorDir)
	testkit.Must(t, err)
	if len(list) != len(want) {
		t.Errorf("%d vectors in %s, expected %d", len(list), vectorDir, len(want))
	}
	for _, f := range list {
		b, err := os.ReadFile(filepath.Join(vectorDir, f.Name()))
		testkit.Must(t, err)
		head, body, ok := bytes.Cut(b, []byte("\n\n"))
		expect, ok2 := strings.CutPrefix(string(head), "expect: ")
		if !ok || !ok2 {
			t.Errorf("%s: expected a line `expect: CLASS` and an empty line", f.Name())
			continue
		}
		if v := want[f.Name()]; v.expect != expect || v.bytes != string(body) {
			t.Errorf("%s differs from what this test would write", f.Name())
		}
		_, tr, err := read(bytes.NewReader(body))
		if got := classOf(t, err); got != expect {
			t.Errorf("%s: %s (%v), want %s", f.Name(), got, err, expect)
		}
		if (tr != nil) != (expect == "ok") {
			t.Errorf("%s: trailer %v", f.Name(), tr)
		}
	}
}
