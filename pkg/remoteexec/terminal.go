package remoteexec

import (
	"context"

	"github.com/afield-dev/afield/pkg/fault"
)

// OpenTerminal implements Runtime.
func (p *processes) OpenTerminal(ctx context.Context, spec TerminalSpec) (Terminal, error) {
	if err := p.open("terminal"); err != nil {
		return nil, err
	}
	if err := checkTerminal(spec); err != nil {
		return nil, err
	}
	return nil, fault.New(fault.BackendUnsupported, "terminal", "", "%s has no terminals", p.facts.Backend)
}
