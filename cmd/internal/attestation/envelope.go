package attestation

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// PayloadType is the DSSE payload type of an in-toto statement.
const PayloadType = "application/vnd.in-toto+json"

// bundleType is the media type of the Sigstore bundle that an envelope can be in.
const bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// MaxFile is the length of a file of envelopes, in bytes.
const MaxFile = 64 << 20

// maxSignatures bounds the signatures of one envelope: each costs a verification for each key.
const maxSignatures = 64

// Envelope is a DSSE envelope. Its key ids are hints that nothing relies on: they are written empty,
// because two conventions for them exclude each other in the field.
type Envelope struct {
	PayloadType string      `json:"payloadType"`
	Payload     string      `json:"payload"` // base64
	Signatures  []Signature `json:"signatures"`

	body []byte // what was signed
}

// Signature is one signature of an envelope.
type Signature struct {
	KeyID string `json:"keyid"`
	Sig   string `json:"sig"` // base64
}

// bundle is the part of a Sigstore bundle that is needed to verify with a key.
type bundle struct {
	MediaType            string   `json:"mediaType"`
	VerificationMaterial material `json:"verificationMaterial"`
	Envelope             Envelope `json:"dsseEnvelope"`
}

type material struct {
	PublicKey struct {
		Hint string `json:"hint"`
	} `json:"publicKey"`
	TLogEntries []struct{} `json:"tlogEntries"`
}

// Seal makes an envelope without signatures.
func Seal(statement []byte) *Envelope {
	return &Envelope{PayloadType: PayloadType, Payload: base64.StdEncoding.EncodeToString(statement), Signatures: []Signature{}, body: statement}
}

// Body is what was signed. Only what Signers found signed may be believed to be the signers' word.
func (e *Envelope) Body() []byte { return e.body }

// pae is DSSE's encoding of what is signed: the type and the body, each with its length.
func (e *Envelope) pae() []byte {
	return append(fmt.Appendf(nil, "DSSEv1 %d %s %d ", len(e.PayloadType), e.PayloadType, len(e.body)), e.body...)
}

// Sign adds the signature of a key.
func (e *Envelope) Sign(k *PrivateKey) error {
	sig, err := k.sign(e.pae())
	if err == nil {
		e.Signatures = append(e.Signatures, Signature{Sig: base64.StdEncoding.EncodeToString(sig)})
	}
	return err
}

// Signers returns which of the keys have signed, each once however often it did.
func (e *Envelope) Signers(keys []*PublicKey) (signed []*PublicKey) {
	message := e.pae()
	for _, k := range keys {
		for _, s := range e.Signatures {
			if sig, err := decode64(s.Sig); err == nil && k.verifies(message, sig) {
				signed = append(signed, k)
				break
			}
		}
	}
	return signed
}

// Line is the envelope as one line of an .intoto.jsonl file, or as a Sigstore bundle.
func (e *Envelope) Line(sigstore bool) ([]byte, error) {
	var v any = e
	if sigstore {
		v = &bundle{MediaType: bundleType, VerificationMaterial: material{TLogEntries: []struct{}{}}, Envelope: *e}
	}
	b, err := schemas.Marshal(v)
	return append(b, '\n'), err
}

// Parse reads the envelopes of a file: one in each line, as itself or in a Sigstore bundle, or one
// document in many lines. The error says which is wrong.
func Parse(b []byte) ([]*Envelope, error) {
	if e, err := parse(b); err == nil {
		return []*Envelope{e}, nil
	}
	var list []*Envelope
	number := 0
	for line := range bytes.Lines(b) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		e, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		list = append(list, e)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("there is no envelope in it")
	}
	return list, nil
}

func parse(b []byte) (*Envelope, error) {
	var file struct {
		Envelope
		MediaType string    `json:"mediaType"`
		Wrapped   *Envelope `json:"dsseEnvelope"`
	}
	if err := schemas.UnmarshalOpen(b, &file); err != nil {
		return nil, fmt.Errorf("not a DSSE envelope: %w", err)
	}
	e := &file.Envelope
	if file.Wrapped != nil {
		if e.Payload != "" || !strings.HasPrefix(file.MediaType, "application/vnd.dev.sigstore.bundle") {
			return nil, fmt.Errorf("mediaType is %.100q, expected that of a Sigstore bundle with nothing but a dsseEnvelope", file.MediaType)
		}
		e = file.Wrapped
	}
	body, err := decode64(e.Payload)
	switch {
	case e.PayloadType == "" || e.Payload == "":
		return nil, fmt.Errorf("not a DSSE envelope: expected payloadType, payload and signatures")
	case err != nil:
		return nil, fmt.Errorf("the payload is not base64: %w", err)
	case len(e.Signatures) > maxSignatures:
		return nil, fmt.Errorf("%d signatures, at most %d are looked at", len(e.Signatures), maxSignatures)
	}
	e.body = body
	return e, nil
}

// decode64 takes standard and URL-safe base64, as DSSE demands, with or without padding.
func decode64(s string) ([]byte, error) {
	s = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(s), "=")
	return base64.RawStdEncoding.Strict().DecodeString(s)
}
