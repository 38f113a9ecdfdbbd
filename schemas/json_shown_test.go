package schemas

import (
	"encoding/json"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestMarshalShown: the escapes are those of JSON, and the value is the same.
func TestMarshalShown(t *testing.T) {
	const text = "a\x1b\u009b\u202e\u2028\U000E0041é\U0001F600"
	b, err := MarshalShown(text)
	testkit.Must(t, err)
	if want := `"a\u001b\u009b\u202e\u2028\udb40\udc41é` + "\U0001F600\""; string(b) != want {
		t.Errorf("%s, want %s", b, want)
	}
	var again string
	testkit.Must(t, json.Unmarshal(b, &again))
	if again != text {
		t.Errorf("%q", again)
	}
}
