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
