package provider

import (
	"bufio"
	"encoding/json"
	"io"
)

// maxLine bounds one line of a listing, in bytes.
const maxLine = 1 << 20

// lineWriter writes one JSON object a line, in large pieces.
type lineWriter struct{ b *bufio.Writer }

func newLineWriter(w io.Writer) lineWriter { return lineWriter{bufio.NewWriterSize(w, MaxData)} }

func (l lineWriter) write(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	l.b.Write(b)
	return l.b.WriteByte('\n')
}

func (l lineWriter) flush() error { return l.b.Flush() }

// readLines calls f with each line until the end.
func readLines(r io.Reader, f func([]byte) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, MaxData), maxLine)
	for s.Scan() {
		if err := f(s.Bytes()); err != nil {
			return err
		}
	}
	return s.Err()
}
