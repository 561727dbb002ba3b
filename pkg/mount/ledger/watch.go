package ledger

import (
	"context"
	"os"
	"time"
)

// watchInterval is how often a watched session is looked at.
const watchInterval = 100 * time.Millisecond

// Watch calls changed at once and after each change of the session until ctx
// ends, which is no error, or changed fails.
func (st *Store) Watch(ctx context.Context, id string, changed func() error) error {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	last := st.mark(id)
	for {
		if err := changed(); err != nil {
			return err
		}
		for st.mark(id) == last {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil
			}
		}
		last = st.mark(id)
	}
}

// mark differs between two states of a session.
type mark struct {
	size     int64
	modified time.Time
}

func (st *Store) mark(id string) mark {
	info, err := os.Stat(st.JournalPath(id))
	if err != nil {
		return mark{}
	}
	return mark{info.Size(), info.ModTime()}
}
