package remotefs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/afield-dev/afield/pkg/fault"
)

// State is what an owner knows of a file (remotefs.md 17).
type State int

// The states. Unseen is what holds for everything that nothing is known of.
const (
	Unseen State = iota
	SeenAbsent
	SeenPresent
)

// Observation is a state with the version of what was seen.
type Observation struct {
	State   State
	Version string // with SeenPresent
}

// Ledger keeps the observations of one owner in one world in a file, which
// outlives the process. All methods may run at the same time, in several
// processes too.
type Ledger struct {
	path  string
	world string
	locks Locker
}

// ledgerFile is what is stored: by world and key the version that was seen, ""
// for an absence.
type ledgerFile struct {
	Version int                          `json:"version"`
	Seen    map[string]map[string]string `json:"seen"`
}

const ledgerVersion = 1

// OpenLedger gives the ledger of owner below stateDir. No I/O; the file comes
// with the first observation. Owners are isolated, whatever their names hold.
func OpenLedger(stateDir, owner, world string) *Ledger {
	sum := sha256.Sum256([]byte(owner))
	name := hex.EncodeToString(sum[:16])
	return &Ledger{
		path:  filepath.Join(stateDir, "observed", name+".json"),
		world: world,
		locks: NewLocks(stateDir, "observed:"+name),
	}
}

// Look gives what is known of a key. A ledger that is lost or damaged knows
// nothing.
func (l *Ledger) Look(key string) Observation {
	version, ok := l.load().Seen[l.world][key]
	switch {
	case !ok:
		return Observation{}
	case version == "":
		return Observation{State: SeenAbsent}
	}
	return Observation{State: SeenPresent, Version: version}
}

// Record keeps an observation.
func (l *Ledger) Record(ctx context.Context, key string, o Observation) error {
	unlock, err := l.locks.Lock(ctx, l.world)
	var none *NoLockError
	if err != nil && !errors.As(err, &none) {
		return l.failed(err)
	}
	if err == nil {
		defer unlock()
	}
	f := l.load()
	if f.Seen[l.world] == nil {
		f.Seen[l.world] = map[string]string{}
	}
	if o.State == Unseen {
		delete(f.Seen[l.world], key)
	} else {
		f.Seen[l.world][key] = o.Version
	}
	if err := l.save(f); err != nil {
		return l.failed(err)
	}
	return nil
}

func (l *Ledger) failed(err error) error {
	e := fault.Wrap(err, fault.FSIOError, "observe", l.path, "cannot record what was seen: %s", reason(err))
	return e.WithHint("put AFIELD_STATE_DIR on a disk that can be written")
}

func (l *Ledger) load() ledgerFile {
	f := ledgerFile{Version: ledgerVersion}
	b, err := os.ReadFile(l.path)
	if err == nil && json.Unmarshal(b, &f) != nil || f.Version != ledgerVersion {
		f = ledgerFile{Version: ledgerVersion}
	}
	if f.Seen == nil {
		f.Seen = map[string]map[string]string{}
	}
	return f
}

// save replaces the file in one step.
func (l *Ledger) save(f ledgerFile) error {
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(l.path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = tmp.Write(b)
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), l.path)
	}
	if err != nil {
		if gone := os.Remove(tmp.Name()); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}
