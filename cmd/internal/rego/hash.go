package rego

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
)

var hashBuiltins = []builtin{
	{"crypto.md5", []kind{str}, digest(md5.New)},
	{"crypto.sha1", []kind{str}, digest(sha1.New)},
	{"crypto.sha256", []kind{str}, digest(sha256.New)},
	{"crypto.hmac.md5", []kind{str, str}, keyed(md5.New)},
	{"crypto.hmac.sha1", []kind{str, str}, keyed(sha1.New)},
	{"crypto.hmac.sha256", []kind{str, str}, keyed(sha256.New)},
	{"crypto.hmac.sha512", []kind{str, str}, keyed(sha512.New)},
	{"crypto.hmac.equal", []kind{str, str}, func(_ *call, a []any) (any, error) {
		return hmac.Equal([]byte(a[0].(string)), []byte(a[1].(string))), nil
	}},
}

func digest(make func() hash.Hash) func(*call, []any) (any, error) {
	return func(_ *call, a []any) (any, error) {
		h := make()
		h.Write([]byte(a[0].(string)))
		return hex.EncodeToString(h.Sum(nil)), nil
	}
}

// keyed is an HMAC of the first argument with the second as the key.
func keyed(make func() hash.Hash) func(*call, []any) (any, error) {
	return func(_ *call, a []any) (any, error) {
		h := hmac.New(make, []byte(a[1].(string)))
		h.Write([]byte(a[0].(string)))
		return hex.EncodeToString(h.Sum(nil)), nil
	}
}
