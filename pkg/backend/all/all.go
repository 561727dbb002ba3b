// Package all lists the built-in backends. It is the only place that names
// them.
package all

import (
	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/box"
	"github.com/afield-dev/afield/pkg/backend/e2b"
	"github.com/afield-dev/afield/pkg/backend/external"
	"github.com/afield-dev/afield/pkg/backend/local"
	"github.com/afield-dev/afield/pkg/backend/ssh"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// Providers are the built-in backends.
func Providers() backend.Registry {
	return backend.Registry{
		local.Provider(),
		box.Provider(),
		external.Provider(),
		ssh.Provider(),
		e2b.Provider(),
	}
}

// Host gives what arranges and looks through the entries of this machine, for
// commands that move trees to and from it.
func Host() remotefs.Arranger { return local.NewDriver("/") }
