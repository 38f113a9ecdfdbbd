package main

import (
	"reflect"
	"strings"
	"testing"
)

// TestBulk: the short way through what nobody asks about says the same as the long one,
// which pieces of one byte force.
func TestBulk(t *testing.T) {
	for _, inner := range []string{
		`{}`, `[]`, `{"a":-1}`, `{"a":[-1,0,1e5],"b":-1,"c":{"d":-1}}`, `[1,12.5,123 ,4.,5]`, `[1.5e3,1.,2]`, `{"a":1 ,"b" :2, "c":"x\n","d":"é","e":"é\u00e9"}`,
		`[true,false,null,tru]`, `[true,false,null,nullx]`, `[truefalse]`, `{"a":true,"b":{"isError":true,"id":7}}`, `[[[]],{},[{}],{"a":{}}]`,
		`{"a":1,}`, `[1,]`, `{"a"}`, `{,}`, `[}`, `{]`, `[[1}]`, `{"a":[1}`, "[\"\x01\"]", "[\"\xff\"]", `[01]`, `[1x]`, `["a" "b"]`, `{"a":"b":"c"}`, `{"a":1 2}`,
	} {
		for _, form := range []string{
			`{"jsonrpc":"2.0","id":1,"result":{"structuredContent":INNER,"isError":false},"x":INNER}`,
			`{"x":INNER,"result":{"tools":[INNER,{"name":"n","x":INNER}]},"id":"s"}`,
			`{"params":{"_meta":INNER,"arguments":INNER},"error":INNER,"id":-1}`,
		} {
			line := []byte(strings.ReplaceAll(form, "INNER", inner))
			whole := &scanner{surrogate: true, listTools: true}
			whole.line(line)
			want := inChunks(&scanner{surrogate: true, listTools: true}, line, 1)
			if got := whole.said(); !reflect.DeepEqual(got, want) {
				t.Errorf("%s\n%+v, want\n%+v", line, got, want)
			}
			for n := 2; n < 40; n += 5 {
				if got := inChunks(&scanner{surrogate: true, listTools: true}, line, n); !reflect.DeepEqual(got, want) {
					t.Errorf("%s in pieces of %d\n%+v, want\n%+v", line, n, got, want)
				}
			}
		}
	}
}
