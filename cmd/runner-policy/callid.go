package main

import (
	"strconv"
	"unicode/utf8"

	"github.com/runner-evidence/runner/cmd/internal/jsonrpc"
	"github.com/runner-evidence/runner/schemas"
)

// maxCallID is the longest id of a tool call, in bytes.
const maxCallID = 256

// metaKeys are the keys of params._meta under which clients put the id of a tool call.
var metaKeys = []string{"claudecode/toolUseId", "callId", "_codex_apps", "copilot/toolCallId", "tool_call_id"}

// callID is the id of a tool call and the place where it was found.
type callID struct{ id, source string }

// findCallID looks for the client's own id of a call, in the order of the specification.
func findCallID(meta, arguments any, more []string) (callID, bool) {
	if m, ok := meta.(map[string]any); ok {
		for _, keys := range [][]string{metaKeys, more} {
			for _, key := range keys {
				v, source := m[key], "params._meta."+key
				if key == "_codex_apps" {
					apps, _ := v.(map[string]any)
					v, source = apps["call_id"], source+".call_id"
				}
				if text, ok := usable(v); ok {
					return callID{text, source}, true
				}
			}
		}
	}
	if args, ok := arguments.(map[string]any); ok {
		if m, ok := args["_meta"].(map[string]any); ok {
			if text, ok := usable(m["tool_call_id"]); ok {
				return callID{text, "params.arguments._meta.tool_call_id"}, true
			}
		}
	}
	return callID{}, false
}

func usable(v any) (string, bool) {
	text, ok := v.(string)
	if !ok || text == "" || len(text) > maxCallID {
		return "", false
	}
	for _, r := range text {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return "", false
		}
	}
	return text, utf8.ValidString(text)
}

// declaredID is the id that the proxy makes for a call to which the client gives none.
// It contains the JSON-RPC id; for a notification, which has none, the call's number.
func declaredID(name string, of jsonrpc.ID, call uint64) callID {
	text, form := of.Text()
	if of.Key == "" {
		text, form = strconv.FormatUint(call, 10), "notification"
	}
	return callID{"mcp:" + name + ":" + form + ":" + text, schemas.CallIDDeclared}
}
