package fstest

import (
	"fmt"
	"runtime"
)

// protocol is a TB for one case outside of the testing package. It remembers
// the first failure.
type protocol struct {
	failed  string
	skipped string
}

func (p *protocol) Helper() {}

func (p *protocol) Logf(string, ...any) {}

func (p *protocol) Errorf(format string, args ...any) {
	if p.failed == "" {
		p.failed = fmt.Sprintf(format, args...)
	}
}

func (p *protocol) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	runtime.Goexit()
}

func (p *protocol) Skipf(format string, args ...any) {
	p.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
