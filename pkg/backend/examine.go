package backend

import "context"

// Examiner is a World that can tell doctor more than whether it answers.
type Examiner interface {
	// Examine reports checks in order. An error fails its check and carries the
	// next step as its hint. Nothing is changed in the world.
	Examine(ctx context.Context, report func(name, detail string, err error))
}
