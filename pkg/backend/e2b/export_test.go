package e2b

import "github.com/afield-dev/afield/pkg/remotefs"

// Driver gives the driver behind the files of a world.
func (w *World) Driver() remotefs.Driver { return &Driver{w.session} }

// ID gives the id of a world's sandbox.
func (w *World) ID() string { return w.session.id() }
