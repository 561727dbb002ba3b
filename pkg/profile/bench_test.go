package profile

import (
	"fmt"
	"strings"
	"testing"
)

// Case 35: five patches and 200 keys; and what every command pays without any
// configuration. The figures are for scripts/bench.sh and a profiler.
func BenchmarkCompose(b *testing.B) {
	req := Request{Environ: []string{"HOME=/nosuch", "AFIELD_SYSTEM_DIR=/nosuch"}, Dir: "/nosuch", Providers: testProviders()}
	run := func(b *testing.B) {
		for b.Loop() {
			if _, err := Compose(req).Profile(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("default", run)
	var text strings.Builder
	text.WriteString("version: 1\nenv:\n  set:\n")
	for i := range 200 {
		fmt.Fprintf(&text, "    N%d: value\n", i)
	}
	var patches []Patch
	for i := range 5 {
		patches = append(patches, Patch{fmt.Sprintf("p%d@1.0.0", i), []byte(text.String())})
	}
	req.Plugins = func(string) (Plugged, error) { return Plugged{Patches: patches}, nil }
	b.Run("plugins", run)
}
