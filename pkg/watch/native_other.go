//go:build !linux

package watch

import (
	"context"
	"time"

	"github.com/afield-dev/afield/pkg/remotefs"
)

// Native watches this machine; here by looking twice a second.
func Native(ctx context.Context, walker remotefs.Arranger, roots []Root, emit func(Event) error) error {
	return Poll(ctx, walker, roots, 500*time.Millisecond, emit)
}
