package main

import (
	"github.com/runner-evidence/runner/cmd/internal/jsonrpc"
	"github.com/runner-evidence/runner/schemas"
)

// Error codes of answers that the proxy gives itself.
const (
	errParse    = -32700
	errRequest  = -32600
	errParams   = -32602
	errInternal = -32603
	// errDenied lies outside -32768…-32000, which the protocols reserve.
	errDenied = 403
)

// denialKey is the key of a denial in the result's _meta. The reason is not in
// structuredContent, because clients check that against the tool's outputSchema even in
// errors. They would report a broken tool instead of a denial.
const denialKey = "runner-policy/denial"

// denial is what a client can read about a denied call.
type denial struct {
	ReasonCode   string `json:"reason_code"`
	RuleID       string `json:"rule_id,omitempty"`
	ToolCallID   string `json:"tool_call_id"`
	PolicyDigest string `json:"policy_digest"`
}

type textContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type denialResult struct {
	Meta       map[string]denial `json:"_meta"`
	Content    []textContent     `json:"content"`
	IsError    bool              `json:"isError"`
	ResultType string            `json:"resultType,omitempty"`
}

type rpcError struct {
	Code    int        `json:"code"`
	Message string     `json:"message"`
	Data    *errorData `json:"data,omitempty"`
}

type errorData struct {
	ReasonCode   string `json:"reason_code"`
	RuleID       string `json:"rule_id,omitempty"`
	ToolCallID   string `json:"tool_call_id,omitempty"`
	PolicyDigest string `json:"policy_digest,omitempty"`
}

// deniedAnswer is the line that answers a denied call. modern is for the stateless
// protocol, asError for an answer as a JSON-RPC error.
func deniedAnswer(to jsonrpc.ID, message string, d denial, modern, asError bool) []byte {
	text := d.ReasonCode + ": " + message // the model reads this
	if asError {
		return errorLine(to, rpcError{errDenied, text, &errorData{d.ReasonCode, d.RuleID, d.ToolCallID, d.PolicyDigest}})
	}
	r := denialResult{Meta: map[string]denial{denialKey: d}, Content: []textContent{{"text", text}}, IsError: true}
	if modern {
		r.ResultType = "complete"
	}
	return answerLine(to, "result", r)
}

// refusals are the errors that answer refused messages, by reason code.
var refusals = map[string]rpcError{
	schemas.ReasonBadJSON:      {Code: errParse, Message: "the line is not one JSON value"},
	schemas.ReasonBadUTF8:      {Code: errParse, Message: "the line is not valid UTF-8"},
	schemas.ReasonDuplicateKey: {Code: errRequest, Message: "one object has a key twice"},
	schemas.ReasonCaseKey:      {Code: errRequest, Message: "a key differs from one of the protocol's only in case"},
	schemas.ReasonBatch:        {Code: errRequest, Message: "batches are not accepted"},
	schemas.ReasonTooLong:      {Code: errRequest, Message: "the line is too long"},
	schemas.ReasonTooDeep:      {Code: errRequest, Message: "the message is nested too deeply"},
	schemas.ReasonNotJSONRPC:   {Code: errRequest, Message: "not a JSON-RPC 2.0 message"},
	schemas.ReasonBadID:        {Code: errRequest, Message: "an id must be a string or a whole number"},
	schemas.ReasonIDInUse:      {Code: errRequest, Message: "a request with this id is in flight"},
	schemas.ReasonBadCall:      {Code: errParams, Message: "not a well-formed tools/call"},
	schemas.ReasonLogFailed:    {Code: errInternal, Message: "the decision log cannot be written, so nothing is forwarded"},
	schemas.ReasonTooManyCalls: {Code: errInternal, Message: "too many requests are in flight"},
}

// refusedAnswer is the line that answers a refused message.
func refusedAnswer(to jsonrpc.ID, code string) []byte {
	e := refusals[code]
	e.Message, e.Data = "runner-policy: "+e.Message, &errorData{ReasonCode: code}
	return errorLine(to, e)
}

// goneAnswer is the line that answers a request for which there is no answer of the
// server.
func goneAnswer(to jsonrpc.ID, why string) []byte {
	return errorLine(to, rpcError{Code: errInternal, Message: "runner-policy: " + why})
}

func errorLine(to jsonrpc.ID, e rpcError) []byte { return answerLine(to, "error", e) }

func answerLine(to jsonrpc.ID, key string, v any) []byte {
	b, err := schemas.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: the strings were checked to be valid UTF-8
	}
	out := append([]byte(`{"jsonrpc":"2.0","id":`), to.Raw...)
	out = append(append(append(out, ",\""...), key...), "\":"...)
	return append(append(out, b...), "}\n"...)
}
