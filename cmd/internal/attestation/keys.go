package attestation

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"strings"
)

// Algorithms of keys.
const (
	Ed25519 = "ed25519"
	P256    = "p256"
)

// MaxKey is the length of a key file, in bytes.
const MaxKey = 64 << 10

// PrivateKey is a key that signs.
type PrivateKey struct{ key crypto.Signer }

// PublicKey is a key that verifies.
type PublicKey struct {
	key  any
	name string
}

// String is the key's algorithm and the SHA-256 of its DER form:
// openssl pkey -pubin -outform DER | sha256sum.
func (k *PublicKey) String() string { return k.name }

// Generate makes a key.
func Generate(algorithm string) (*PrivateKey, error) {
	if algorithm == P256 {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		return &PrivateKey{k}, err
	}
	_, k, err := ed25519.GenerateKey(rand.Reader)
	return &PrivateKey{k}, err
}

// PEM is the key as PKCS #8.
func (k *PrivateKey) PEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// Public is the key that verifies what this one signs.
func (k *PrivateKey) Public() (*PublicKey, error) { return public(k.key.Public()) }

// PEM is the key as SubjectPublicKeyInfo.
func (k *PublicKey) PEM() ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(k.key)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), err
}

func public(key any) (*PublicKey, error) {
	algorithm := Ed25519
	switch k := key.(type) {
	case ed25519.PublicKey:
	case *ecdsa.PublicKey:
		if algorithm = P256; k.Curve != elliptic.P256() {
			return nil, fmt.Errorf("an ECDSA key on %s, expected ed25519 or P-256", k.Curve.Params().Name)
		}
	default:
		return nil, fmt.Errorf("a key of another kind (%T), expected ed25519 or P-256", key)
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	sum := sha256.Sum256(der)
	return &PublicKey{key, algorithm + " sha256:" + hex.EncodeToString(sum[:])}, err
}

// ParsePrivate reads a private key in PEM: PKCS #8, or SEC 1.
func ParsePrivate(b []byte) (*PrivateKey, error) {
	block, err := onlyBlock(b, "PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	var key any
	if block.Type == "EC PRIVATE KEY" {
		key, err = x509.ParseECPrivateKey(block.Bytes)
	} else {
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a key of another kind (%T), expected ed25519 or P-256", key)
	}
	if _, err := public(signer.Public()); err != nil {
		return nil, err
	}
	return &PrivateKey{signer}, nil
}

// ParsePublic reads a public key in PEM: SubjectPublicKeyInfo.
func ParsePublic(b []byte) (*PublicKey, error) {
	block, err := onlyBlock(b, "PUBLIC KEY")
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	return public(key)
}

// onlyBlock finds the one key of a file. The parameters that openssl writes before an EC key are no key.
func onlyBlock(b []byte, want string) (key *pem.Block, err error) {
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case block.Type == "EC PARAMETERS":
		case strings.Contains(block.Type, "OPENSSH"):
			return nil, fmt.Errorf("a key in the form of OpenSSH, expected PEM: make one with runner-attest --generate-key FILE, or openssl genpkey -algorithm ed25519")
		case strings.Contains(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != "":
			return nil, fmt.Errorf("an encrypted key, which is not supported: decrypt it with openssl pkey -in FILE, for cosign's own keys there is no way")
		case strings.HasSuffix(block.Type, "PRIVATE KEY") && want == "PUBLIC KEY":
			return nil, fmt.Errorf("a private key, expected the public one: openssl pkey -in FILE -pubout")
		case block.Type != want && block.Type != "EC "+want:
			return nil, fmt.Errorf("a PEM block %.60q, expected %q", block.Type, want)
		case key != nil:
			return nil, fmt.Errorf("more than one key, expected one")
		default:
			key = block
		}
	}
	if key == nil {
		return nil, fmt.Errorf("no key in PEM: expected -----BEGIN %s-----", want)
	}
	return key, nil
}

// sign signs a message: the same one always in the same way (ECDSA by RFC 6979).
func (k *PrivateKey) sign(message []byte) ([]byte, error) {
	if _, is := k.key.(ed25519.PrivateKey); is {
		return k.key.Sign(nil, message, crypto.Hash(0))
	}
	sum := sha256.Sum256(message)
	return k.key.Sign(nil, sum[:], crypto.SHA256)
}

func (k *PublicKey) verifies(message, sig []byte) bool {
	switch key := k.key.(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(key, message, sig)
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(message)
		return ecdsa.VerifyASN1(key, sum[:], sig)
	}
	return false
}
