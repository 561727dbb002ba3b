package provider

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
)

// maxNoise bounds what a serving side may print before the start line, in bytes.
const maxNoise = 64 << 10

// startLine is the first line of the serving side (plugins.md 31).
func startLine(nonce string) string {
	return fmt.Sprintf("afield-provider %d %s\n", Protocol, nonce)
}

// Announce writes the start line. The serving side does so before its first
// frame.
func Announce(w io.Writer, nonce string) error {
	_, err := io.WriteString(w, startLine(nonce))
	return err
}

// AwaitStart reads up to the start line. Lines before it are noise: of a login
// shell, or of a runtime. r is read no further, so frames follow from it.
func AwaitStart(r *bufio.Reader, nonce string) (noise string, err error) {
	want := startLine(nonce)
	var b strings.Builder
	for b.Len() <= maxNoise {
		line, err := r.ReadSlice('\n')
		if string(line) == want {
			return b.String(), nil
		}
		b.Write(line)
		if err != nil && err != bufio.ErrBufferFull {
			return b.String(), fault.Wrap(err, fault.PluginStartFailed, "start", "", "the provider ended before its start line")
		}
	}
	return b.String(), fault.New(fault.PluginStartFailed, "start", "", "the provider printed more than %d bytes and no start line", maxNoise)
}
