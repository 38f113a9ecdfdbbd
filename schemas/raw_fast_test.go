package schemas

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// strictly compares what Parse says of a line with what the strict parser alone says: the event, or the message.
func strictly(t *testing.T, usual, strict *RawParser, line []byte) {
	t.Helper()
	var a, b RawEvent
	err, want := usual.read(line, &a, true), strict.read(line, &b, false)
	switch {
	case (err == nil) != (want == nil), err != nil && err.Error() != want.Error():
		t.Fatalf("%s\nParse: %v\nstrict: %v", line, err, want)
	case err == nil && !reflect.DeepEqual(a, b):
		t.Fatalf("%s\nParse:\n%+v\nstrict:\n%+v", line, a, b)
	}
}

// The part for usual lines changes no result and no message, whatever is wrong with a line, and where.
func TestRawUsual(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	usual, strict := NewRawParser(testRun), NewRawParser(testRun)
	const bytesOf = `",:{}[]\-.eE+09a` + "\x00\x1f\x7f\xc3\xa9\xff "
	for range 3000 {
		e := randomRaw(r)
		if r.IntN(2) == 0 {
			e = RawEvent{Seq: r.Uint64() >> r.IntN(64), Op: "openat", KtimeNS: r.Uint64() >> r.IntN(64), PID: 17, TID: 18,
				CPUSeq: r.Uint64() >> r.IntN(64), Has: RawHas(r.UintN(16)) | HasProbe, Ret: int64(r.Uint64()) >> r.IntN(64), Path: []byte("/a/é")}
		}
		line := e.AppendJSON(nil, testRun)
		strictly(t, usual, strict, line)
		for range 20 {
			at := len(rawStart) - 100 + r.IntN(len(line)-len(rawStart)+100)
			changed := bytes.Clone(line)
			switch r.IntN(3) {
			case 0:
				changed[at] = bytesOf[r.IntN(len(bytesOf))]
			case 1:
				changed = append(changed[:at], changed[at+1:]...)
			default:
				changed = append(changed[:at:at], append([]byte{bytesOf[r.IntN(len(bytesOf))]}, line[at:]...)...)
			}
			strictly(t, usual, strict, changed)
		}
	}
	for i := range rawStart {
		strictly(t, usual, strict, []byte(rawStart[:i]))
	}
}

// digits reads what strconv reads, wherever the number ends.
func TestDigits(t *testing.T) {
	numbers := []uint64{0, 1, 9, 10, 99999999, 100000000, 1234567890123456, 9999999999999999999, 10000000000000000000, math.MaxUint64}
	r := rand.New(rand.NewPCG(23, 24))
	for range 2000 {
		numbers = append(numbers, r.Uint64()>>r.IntN(64))
	}
	for _, v := range numbers {
		text := strconv.FormatUint(v, 10)
		for _, after := range []string{"", ",", "}", "/", ":", `,"a"`, "\x00", "\xb9\xff\xff\xff\xff\xff\xff\xff\xff", "e99999999", "a", ".000000000", strings.Repeat("}", 9)} {
			got, end := digits([]byte(" "+text+after), 1)
			want, wantEnd := v, 1+len(text)
			if len(text) > 19 {
				want, wantEnd = 0, 1
			}
			if got != want || end != wantEnd {
				t.Fatalf("digits of %q: %d to %d", text+after, got, end)
			}
			if _, end := digits([]byte("0"+text+after), 0); end != 0 {
				t.Fatalf("a leading zero is read: %q", "0"+text+after)
			}
		}
	}
	for c := range 256 {
		if c-'0' >= 0 && c-'0' <= 9 {
			continue
		}
		for n := range 12 {
			text := append(bytes.Repeat([]byte("7"), n), bytes.Repeat([]byte{byte(c)}, 12)...)
			if _, end := digits(text, 0); end != n {
				t.Fatalf("digits of %q end at %d", text, end)
			}
		}
	}
}
