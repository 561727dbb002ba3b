package e2btest

import "github.com/afield-dev/afield/pkg/backend/e2b/wire"

// Frames gives the body of a stream with these messages and a plain end, for
// the Text of a Rule.
func Frames(messages ...string) string {
	var b []byte
	for _, m := range messages {
		b = wire.AppendEnvelope(b, 0, []byte(m))
	}
	return string(wire.AppendEnvelope(b, wire.FlagEnd, []byte("{}")))
}
