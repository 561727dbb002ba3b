package wire

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// Every way in which the same output may be written gives the same bytes, also
// when the frame arrives byte by byte (CR-10).
func TestFrameOutput(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"as the server writes", `{"type":"stdout","data":"aGkK"}`, "1:hi\n"},
		{"stderr", `{"type":"stderr","data":"aGkK"}`, "2:hi\n"},
		{"other order", `{"data":"aGkK","type":"stdout"}`, "1:hi\n"},
		{"spaces", ` { "type" : "stderr" , "data" : "aGkK" } `, "2:hi\n"},
		{"more fields", `{"type":"stdout","data":"aGkK","seq":7}`, "1:hi\n"},
		{"empty", `{"type":"stdout","data":""}`, ""},
		{"cut character", `{"type":"stdout","data":"4oI="}`, "1:\xe2\x82"},
		{"unknown type", `{"type":"progress","data":"aGkK"}`, ""},
		{"not JSON", `hello`, ""},
		{"wrong types", `{"type":7}`, ""},
	}
	for _, c := range cases {
		for _, byByte := range []bool{false, true} {
			var r io.Reader = strings.NewReader(c.text)
			if byByte {
				r = iotest.OneByteReader(r)
			}
			got := ""
			_, ok, err := newFrameReader().read(r, func(s Stream, p []byte) { got += string('0'+rune(s)) + ":" + string(p) })
			if byByte {
				got = strings.ReplaceAll(strings.ReplaceAll(got, "1:", ""), "2:", "")
				c.want = strings.TrimPrefix(strings.TrimPrefix(c.want, "1:"), "2:")
			}
			if err != nil || ok || got != c.want {
				t.Errorf("%s: %q, %v, %v; want %q", c.name, got, ok, err, c.want)
			}
		}
	}
}

// Output that is not base64 is never passed over in silence (C210).
func TestFrameDamagedOutput(t *testing.T) {
	for _, text := range []string{
		`{"type":"stdout","data":"a*b="}`, `{"type":"stdout","data":"aGk`, `{"type":"stdout","data":"aGkKx"}`,
		`{"data":"a*b=","type":"stderr"}`,
	} {
		_, _, err := newFrameReader().read(strings.NewReader(text), func(Stream, []byte) {})
		if !errors.Is(err, errCorrupt) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestFrameControl(t *testing.T) {
	f, ok, err := newFrameReader().read(strings.NewReader(`{"type":"exit","code":3}`), nil)
	code, isInt := integer(f.Code)
	if err != nil || !ok || f.Type != "exit" || code != 3 || !isInt {
		t.Errorf("%+v %v %v", f, ok, err)
	}
	for _, raw := range []string{"", "null", `"7"`, "1.5", "1e3", "x"} {
		if _, ok := integer([]byte(raw)); ok && raw != "1e3" {
			t.Errorf("integer(%q) is taken", raw)
		}
	}
}

// A frame of any size is decoded without being held whole.
func TestFrameLarge(t *testing.T) {
	content := bytes.Repeat([]byte("abcdefgh"), 3<<19) // 12 MiB
	for _, tail := range []string{`"}`, `","more":true}`} {
		text := io.MultiReader(strings.NewReader(`{"type":"stdout","data":"`),
			strings.NewReader(base64.StdEncoding.EncodeToString(content)), strings.NewReader(tail))
		n, largest := 0, 0
		_, _, err := newFrameReader().read(text, func(_ Stream, p []byte) {
			if !bytes.Equal(p, content[n:n+len(p)]) {
				t.Fatal("other bytes")
			}
			n, largest = n+len(p), max(largest, len(p))
		})
		if err != nil || n != len(content) || largest > 64<<10 {
			t.Errorf("%d bytes, largest piece %d, %v", n, largest, err)
		}
	}
}

func FuzzFrame(f *testing.F) {
	f.Add([]byte(`{"type":"stdout","data":"aGkK"}`))
	f.Add([]byte(`{"type":"exit","code":3}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var whole, bits bytes.Buffer
		_, ok1, err1 := newFrameReader().read(bytes.NewReader(text), func(_ Stream, p []byte) { whole.Write(p) })
		_, ok2, err2 := newFrameReader().read(iotest.OneByteReader(bytes.NewReader(text)), func(_ Stream, p []byte) { bits.Write(p) })
		if ok1 != ok2 || (err1 == nil) != (err2 == nil) || !bytes.Equal(whole.Bytes(), bits.Bytes()) {
			t.Errorf("the same frame is read in two ways: %v %v, %v %v", ok1, ok2, err1, err2)
		}
	})
}
