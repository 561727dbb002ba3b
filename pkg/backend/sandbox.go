package backend

import (
	"context"
	"time"
)

// Sandboxes owns the lifetime of the worlds of one provider. A provider whose
// worlds cannot be made or ended has none.
//
// Methods may run at the same time. Errors are *fault.Error; a sandbox that
// does not exist is BACKEND_WORLD_GONE, decided by the service's status and
// never by words. What a service lacks is BACKEND_UNSUPPORTED before any
// request.
type Sandboxes interface {
	// Create makes one and returns when it runs. Every one carries a life
	// limit at the server and a label, so that Strays finds it.
	Create(ctx context.Context, spec SandboxSpec) (Sandbox, error)
	// List gives those of the account that match, newest first.
	List(ctx context.Context, filter SandboxFilter) ([]Sandbox, error)
	// Info gives one.
	Info(ctx context.Context, id string) (Sandbox, error)
	// Extend lets it live for life from now on; it never shortens.
	Extend(ctx context.Context, id string, life time.Duration) (Sandbox, error)
	// Pause keeps it without running it. One that is paused stays so.
	Pause(ctx context.Context, id string) (Sandbox, error)
	// Resume runs it again for life. One that runs goes on.
	Resume(ctx context.Context, id string, life time.Duration) (Sandbox, error)
	// Kill ends and deletes it, also a paused one. It reports whether there was
	// one: gone already is no error.
	Kill(ctx context.Context, id string) (bool, error)
	// Strays gives those made by afield from this state directory that nobody
	// uses any more: of a command that has ended, or of a profile row that has
	// another one by now. Those of Create are nobody's strays.
	Strays(ctx context.Context) ([]Sandbox, error)
	// Snapshot stores its present state under name ("" = none) and gives what
	// a new one can be made from.
	Snapshot(ctx context.Context, id, name string) (Snapshot, error)
}

// SandboxSpec is a request for a sandbox. Zero values take those of the
// profile's row.
type SandboxSpec struct {
	Template string        // what it is made from
	Life     time.Duration // until the server ends it
	Env      map[string]string
	Labels   map[string]string
	OnExpiry string // "kill" or "pause"
}

// SandboxFilter selects sandboxes; zero values select all.
type SandboxFilter struct {
	State  string // "running" or "paused"
	Labels map[string]string
	Limit  int // 0 = all
}

// Sandbox is what is known of one. Times that are not known are zero.
type Sandbox struct {
	ID        string
	State     string // "running", "paused", or the service's own word
	CreatedAt time.Time
	ExpiresAt time.Time
	Labels    map[string]string
	// Owned: it was made by afield, which its label tells.
	Owned bool
}

// Snapshot is a stored state.
type Snapshot struct {
	ID    string
	Names []string
}

// SnapshotKeeper is a Sandboxes whose service can list and delete snapshots.
type SnapshotKeeper interface {
	// Snapshots gives those of the account.
	Snapshots(ctx context.Context) ([]Snapshot, error)
	// DeleteSnapshot deletes one. It reports whether there was one: gone already
	// is no error.
	DeleteSnapshot(ctx context.Context, id string) (bool, error)
}
