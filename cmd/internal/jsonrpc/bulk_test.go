package jsonrpc

import (
	"reflect"
	"strings"
	"testing"
)

// TestBulk: the short way through values that nobody asks for gives the same result as
// the plain one, in one piece and in many.
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
			whole := &Scanner{surrogate: true, listTools: true}
			whole.Line(line)
			want := inChunks(&Scanner{surrogate: true, listTools: true, slow: true}, line, 1)
			if got := whole.said(); !reflect.DeepEqual(got, want) {
				t.Errorf("%s\n%+v, want\n%+v", line, got, want)
			}
			for n := 1; n < 40; n += 5 {
				if got := inChunks(&Scanner{surrogate: true, listTools: true}, line, n); !reflect.DeepEqual(got, want) {
					t.Errorf("%s in pieces of %d\n%+v, want\n%+v", line, n, got, want)
				}
			}
		}
	}
}

// BenchmarkBulk shows what the short way gains over the plain one:
//
//	go test ./cmd/internal/jsonrpc -run '^$' -bench Bulk
func BenchmarkBulk(b *testing.B) {
	for _, c := range []struct{ name, unit string }{
		{"numbers", `1234.5,`},
		{"objects", `{"path":"/a/b/c","size":123,"ok":true},`},
		{"texts", `{"type":"text","text":"` + strings.Repeat("a line of a file, as it is. ", 20) + `"},`},
	} {
		line := []byte(`{"result":{"structuredContent":{"a":[` + strings.Repeat(c.unit, (1<<20)/len(c.unit)) + `0]}}}`)
		benchmarkBy(b, c.name+"/fast", line, NewServer())
		benchmarkBy(b, c.name+"/plain", line, &Scanner{surrogate: true, slow: true})
	}
}
