package schemas

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/goccy/go-json/jsontext"

	"github.com/runner-evidence/runner/schemas/pattern"
)

// What a command says that it wants to have done outside of its box. Nothing of it is done by the run, and all of it
// is self-reported (ARCHIVE.md, "Intents").

// Types of intents whose payload this package knows. The set is open.
const (
	IntentFilesWrite  = "files.write"
	IntentHTTPRequest = "http.request"
)

// Bounds of an intent.
const (
	MaxIntentType   = 64  // bytes of intent_type
	MaxIntentKey    = 256 // bytes of idempotency_key
	MaxIntentLabels = 32
	MaxIntentLabel  = 64        // bytes of one label
	MaxIntentDepth  = 15        // objects and arrays in one another, the payload included; with the line, as many as an archive may have
	MaxIntentAmount = 1<<53 - 1 // every reader of JSON has it exactly
)

// Intent is one line of layers/intents.ndjson, and of the log that it is made from.
type Intent struct {
	Schema     string `json:"schema"`
	RunID      string `json:"run_id"`
	Seq        uint64 `json:"seq"`
	IntentType string `json:"intent_type"`
	// Payload is one object, with its keys in byte order and each number as it was written.
	Payload        jsontext.Value `json:"payload"`
	IdempotencyKey string         `json:"idempotency_key,omitempty"` // each once in a run; "": none
	Labels         []string       `json:"labels,omitempty"`          // sorted, each once
	Amount         *uint64        `json:"amount,omitempty"`          // in the smallest unit of what it counts; nil: none
}

// Forms of texts, as the JSON Schema has them.
const (
	intentTypeForm  = `^[a-z0-9_-]+(\.[a-z0-9_-]+)+$`
	intentKeyForm   = `^[!-~]([ -~]*[!-~])?$`
	intentLabelForm = `^[a-z0-9_.-]+$`
)

var intentType, intentKey, intentLabel = pattern.New(intentTypeForm), pattern.New(intentKeyForm), pattern.New(intentLabelForm)

// LineFault is an error of a parser that says which of the reasons of the layer's log it is.
type LineFault struct {
	Why string // one of LayerLog.Whys
	Err error
}

func (f *LineFault) Error() string { return f.Err.Error() }
func (f *LineFault) Unwrap() error { return f.Err }

func because(why string, err error) error {
	if err == nil {
		return nil
	}
	if f := new(LineFault); errors.As(err, &f) {
		return err
	}
	return &LineFault{why, err}
}

// ParseIntent parses one line of layers/intents.ndjson, with its keys in any order. An error says why as a LineFault.
func ParseIntent(line []byte) (*Intent, error) {
	i := new(Intent)
	if err := i.parse(line); err != nil {
		return nil, fmt.Errorf("intent: %w", err)
	}
	return i, nil
}

func (i *Intent) parse(line []byte) error {
	if len(line) > MaxLogLine {
		return because(WhyField, fmt.Errorf("the line has %d bytes, at most %d", len(line), MaxLogLine))
	}
	var keys map[string]jsontext.Value
	if err := Unmarshal(line, &keys); err != nil || keys == nil {
		return because(WhyJSON, errors.Join(err, errors.New("expected one object")))
	}
	if string(keys["schema"]) != `"`+SchemaIntent+`"` {
		return because(WhySchema, fmt.Errorf("schema is %.100q, expected %q", keys["schema"], SchemaIntent))
	}
	if err := Unmarshal(line, i); err != nil {
		return because(WhyField, err)
	}
	if err := head(i.Schema, SchemaIntent, i.RunID); err != nil {
		return because(WhyRunID, err)
	}
	if len(i.IntentType) > MaxIntentType || !intentType.MatchString(i.IntentType) {
		return because(WhyType, fmt.Errorf("intent_type is %.100q, expected a name such as %s", i.IntentType, IntentFilesWrite))
	}
	if err := i.checkKeys(keys); err != nil {
		return because(WhyField, err)
	}
	payload, err := canonicalObject(i.Payload, MaxIntentDepth)
	if err != nil {
		return because(WhyField, fmt.Errorf("payload: %w", err))
	}
	i.Payload = payload
	return because(WhyField, i.checkPayload())
}

// checkKeys checks that each key is there, or has a value if it is.
func (i *Intent) checkKeys(keys map[string]jsontext.Value) error {
	for _, key := range []string{"run_id", "seq", "payload"} {
		if _, there := keys[key]; !there {
			return fmt.Errorf("key %s is missing", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if string(keys[key]) == "null" {
			return fmt.Errorf("key %s is null", key)
		}
	}
	if _, there := keys["idempotency_key"]; there && (len(i.IdempotencyKey) > MaxIntentKey || !intentKey.MatchString(i.IdempotencyKey)) {
		return fmt.Errorf("idempotency_key is %.100q, expected 1 to %d printable characters of ASCII without blanks at its ends", i.IdempotencyKey, MaxIntentKey)
	}
	if _, there := keys["labels"]; there && (len(i.Labels) == 0 || len(i.Labels) > MaxIntentLabels) {
		return fmt.Errorf("%d labels, expected 1 to %d", len(i.Labels), MaxIntentLabels)
	}
	for n, l := range i.Labels {
		if len(l) > MaxIntentLabel || !intentLabel.MatchString(l) {
			return fmt.Errorf("label is %.100q, expected 1 to %d of a-z, 0-9, _, . and -", l, MaxIntentLabel)
		}
		if n > 0 && i.Labels[n-1] >= l {
			return fmt.Errorf("labels is not sorted and unique at %q", l)
		}
	}
	if i.Amount != nil && *i.Amount > MaxIntentAmount {
		return fmt.Errorf("amount is %d, at most %d", *i.Amount, uint64(MaxIntentAmount))
	}
	return nil
}

// IntentKeys are the idempotency keys of a run's intents, of which each is there once. They are kept as digests, because
// they may be long.
type IntentKeys map[[16]byte]struct{}

// Add takes in the key of the next intent. It returns false if an intent before has it.
func (k IntentKeys) Add(i *Intent) bool {
	if i.IdempotencyKey == "" {
		return true
	}
	sum := sha256.Sum256([]byte(i.IdempotencyKey))
	key := [16]byte(sum[:16])
	_, twice := k[key]
	k[key] = struct{}{}
	return !twice
}

// checkPayload checks the payload of a type that is known.
func (i *Intent) checkPayload() error {
	switch i.IntentType {
	case IntentFilesWrite:
		_, err := i.FileWrite()
		return err
	case IntentHTTPRequest:
		_, err := i.HTTPRequest()
		return err
	}
	return nil
}
