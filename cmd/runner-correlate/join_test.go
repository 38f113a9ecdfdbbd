package main

import (
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// joinCases are runs whose SDK sends no ids: which of its calls are found by their arguments.
var joinCases = map[string]struct{ policy, sdk, joins, codes string }{
	"one call": {"allow S 0 mcp:1 read_file 100-200 completed /work #a", "started c1 read_file #a\ncompleted c1 read_file", "mcp:1=c1", ""},
	"several, with arguments of their own": {"allow S 0 mcp:1 read_file 100-120 completed /work #a\nallow S 1 mcp:2 read_file 121-200 completed /work #b",
		"started c2 read_file #b\ncompleted c2 read_file\nstarted c1 read_file #a\ncompleted c1 read_file", "mcp:1=c1 mcp:2=c2", ""},
	"a prefix":                             {"allow S 0 mcp:1 read_file 100-200 completed /work #a", "started c1 fs_read_file #a\ncompleted c1 fs_read_file", "mcp:1=c1", "sdk_tool_name_prefixed:c1"},
	"a denied call":                        {"deny S 0 mcp:1 read_file 100-105 /etc #a", "started c1 read_file #a", "mcp:1=c1", "sdk_tool_call_failed:c1"},
	"a denied call that the SDK completed": {"deny S 0 mcp:1 read_file 100-105 /etc #a", "started c1 read_file #a\ncompleted c1 read_file", "mcp:1=c1", "sdk_completed_denied_call:c1"},
	"twice the same arguments": {"allow S 0 mcp:1 read_file 100-120 completed /work #a\nallow S 1 mcp:2 read_file 121-200 completed /work #a", "started c1 read_file #a\ncompleted c1 read_file", "",
		"policy_call_not_in_sdk:mcp:1 policy_call_not_in_sdk:mcp:2 sdk_tool_call_without_policy_binding:c1"},
	"the SDK reports two": {"allow S 0 mcp:1 read_file 100-200 completed /work #a", "started c1 read_file #a\ncompleted c1 read_file\nstarted c2 read_file #a\ncompleted c2 read_file", "",
		"policy_call_not_in_sdk:mcp:1 sdk_tool_call_without_policy_binding:c1 sdk_tool_call_without_policy_binding:c2"},
	"another tool":        {"allow S 0 mcp:1 read_file 100-200 completed /work #a", "started c1 delete #a\ncompleted c1 delete", "", "policy_call_not_in_sdk:mcp:1 sdk_tool_call_without_policy_binding:c1"},
	"an id of the client": {"allow S 0 tc_9 read_file 100-200 completed /work #a", "started c1 read_file #a\ncompleted c1 read_file", "", "policy_call_not_in_sdk:tc_9 sdk_tool_call_without_policy_binding:c1"},
	"other arguments":     {"allow S 0 mcp:1 read_file 100-200 completed /work #a", "started c1 read_file #b\ncompleted c1 read_file", "", "policy_call_not_in_sdk:mcp:1 sdk_tool_call_without_policy_binding:c1"},
	"equal tools, two of one digest": {"allow S 0 mcp:1 read_file 100-120 completed /work #a\nallow S 1 mcp:2 echo 121-200 completed /work #a",
		"started c1 read_file #a\ncompleted c1 read_file\nstarted c2 echo #a\ncompleted c2 echo", "mcp:1=c1 mcp:2=c2", ""},
	"an id that is joined already": {"allow S 0 c1 read_file 100-120 completed /work #a\nallow S 1 mcp:2 read_file 121-200 completed /work #b", "started c1 read_file #b\ncompleted c1 read_file", "",
		"policy_call_not_in_sdk:mcp:2"},
}

func joinWorld(policy, sdk string) world {
	kernel := strings.ReplaceAll(agent, "\t210 unlink /work/b\n", "")
	return world{kernel: kernel, policy: "session S 20 30 25\n" + policy + "\nend S", sdk: sdk + "\nfinished"}
}

// TestJoin: a call without the SDK's id is found by its tool and its arguments, where both are unique.
func TestJoin(t *testing.T) {
	for name, c := range joinCases {
		t.Run(name, func(t *testing.T) {
			j := joinWorld(c.policy, c.sdk).run(t)
			var joins []string
			for _, b := range j.report.Bindings {
				if b.Join != "" {
					joins = append(joins, b.ToolCallID+"="+b.SDKCallID)
				}
				if (b.Join == schemas.JoinDigest) != (b.SDKCallID != "") {
					t.Errorf("%+v", b)
				}
			}
			if got := strings.Join(joins, " "); got != c.joins {
				t.Errorf("joined %q, expected %q", got, c.joins)
			}
			var about []string
			for code := range strings.FieldsSeq(j.codes()) {
				if strings.HasPrefix(code, "sdk_") || strings.HasPrefix(code, "policy_call") {
					about = append(about, code)
				}
			}
			if got := strings.Join(about, " "); got != c.codes {
				t.Errorf("codes %q, expected %q", got, c.codes)
			}
			if n := strings.Count(strings.Join(j.policy, "\n"), "arguments_digest"); n != len(joins) {
				t.Errorf("%d digests in the policy layer, %d joined calls", n, len(joins))
			}
		})
	}
}
