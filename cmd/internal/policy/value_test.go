package policy

import "testing"

// Decode is as strict as the contract, and keeps numbers as they were written.
func TestDecode(t *testing.T) {
	for _, bad := range []string{``, `{"a":1,"a":2}`, `{"a":{"b":1,"\u0062":2}}`, "{\"a\":\"\xff\"}", `{"a":"\ud800"}`, `{} {}`, `{"a":01}`,
		`{"a":NaN}`, `[1,]`, `{"a":1}x`} {
		if v, err := Decode([]byte(bad)); err == nil {
			t.Errorf("%s was taken as %v", bad, v)
		}
	}
	for _, good := range []string{`{"a":1e99999}`, `[18446744073709551616]`, ` {"a":"\ud83d\ude00"} `, `null`} {
		if _, err := Decode([]byte(good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}
