package rego

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
)

// builtin is a function of Rego that OPA leaves to whoever runs the module.
type builtin struct {
	name   string
	params []kind
	run    func(c *call, a []any) (any, error)
}

// call is what a builtin knows besides its arguments.
type call struct {
	ctx    context.Context
	policy *Policy
	name   string
}

// room bounds what a builtin makes, in bytes.
func (c *call) room() int { return c.policy.options.Result }

// tooMuch ends the evaluation: what a builtin would make is beyond its bounds.
func (c *call) tooMuch(format string, a ...any) error {
	return faultf("%s: %s", c.name, fmt.Sprintf(format, a...))
}

// kind is the type of an argument. An argument of another type makes the call undefined.
type kind int

const (
	anything kind = iota
	str
	num
	arr
	obj
)

var errType = fmt.Errorf("an argument of another type")

func (k kind) is(v any) bool {
	is := true
	switch k {
	case str:
		_, is = v.(string)
	case num:
		_, is = v.(json.Number)
	case arr:
		_, is = v.([]any)
	case obj:
		_, is = v.(object)
	}
	return is
}

func (b *builtin) apply(c *call, args []any) (any, error) {
	for n, k := range b.params {
		if !k.is(args[n]) {
			return nil, errType
		}
	}
	return b.run(c, args)
}

// nowName is the builtin that is only there with a time of the options.
const nowName = "time.now_ns"

// refused are the builtins that would make a decision depend on more than the policy, the data and the
// input, with the reason.
var refused = map[string]string{
	nowName:                  "the clock is not part of the input",
	"http.send":              "the network is not part of the input",
	"net.lookup_ip_addr":     "the network is not part of the input",
	"rand.intn":              "it is random",
	"uuid.rfc4122":           "it is random",
	"opa.runtime":            "the machine is not part of the input",
	"providers.aws.sign_req": "it is for requests, and signs with the clock",
	"io.jwt.decode_verify":   "it compares with the clock",
	"io.jwt.encode_sign":     "some signatures are random",
	"io.jwt.encode_sign_raw": "some signatures are random",
	"crypto.x509.parse_and_verify_certificates":              "it compares with the clock",
	"crypto.x509.parse_and_verify_certificates_with_options": "it compares with the clock",
	"trace":              "a decision has no other output",
	"print":              "a decision has no other output",
	"internal.print":     "a decision has no other output; build without --debug",
	"internal.test_case": "it is for tests",
}

// builtins are those that are known here, by name. A tool that uses no such policy does not wait for them.
var builtins = sync.OnceValue(func() map[string]*builtin {
	all := map[string]*builtin{}
	for _, group := range [][]builtin{stringBuiltins, regexBuiltins, encodingBuiltins, hashBuiltins, timeBuiltins, netBuiltins,
		unitBuiltins, versionBuiltins, objectBuiltins, patchBuiltins, castBuiltins} {
		for _, b := range group {
			all[b.name] = &b
		}
	}
	return all
})

// texts are the strings of an array or a set.
func texts(v any) ([]string, error) {
	list, err := members(v)
	if err != nil {
		return nil, err
	}
	all := make([]string, len(list))
	for i, m := range list {
		s, is := m.(string)
		if !is {
			return nil, errType
		}
		all[i] = s
	}
	return all, nil
}

// members are those of an array or a set.
func members(v any) ([]any, error) {
	switch v := v.(type) {
	case []any:
		return v, nil
	case set:
		return v, nil
	}
	return nil, errType
}

// values makes an array of strings.
func values(list []string) []any {
	all := make([]any, len(list))
	for i, s := range list {
		all[i] = s
	}
	return all
}
