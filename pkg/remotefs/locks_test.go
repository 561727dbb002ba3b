package remotefs

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/afield-dev/afield/pkg/fault"
)

// noLocks is a state directory on a disk without locks.
type noLocks struct{}

func (noLocks) Lock(context.Context, string) (func(), error) {
	return nil, &NoLockError{Err: syscall.ENOLCK}
}

// Without a lock a guarded change is refused with a next step, and another goes
// on with a warning (design.md 4.23).
func TestWithoutALock(t *testing.T) {
	var log strings.Builder
	d := &double{pieces: []string{"old"}, size: -1, version: "v1"}
	f := New(doubleWriter{d}, Options{Locks: noLocks{}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	guarded := text("new")
	guarded.Intent, guarded.Version = IntentReplace, "v1"
	e := wantCode(t, second(f.WriteText(ctx, AtPath("a", ""), guarded)), fault.FSIOError)
	if !strings.Contains(e.Hint, "AFIELD_STATE_DIR") || !errors.Is(e, syscall.ENOLCK) {
		t.Errorf("%+v", e)
	}
	edit := one("old", "new")
	edit.Version = "v1"
	wantCode(t, second(f.EditText(ctx, AtPath("a", ""), edit)), fault.FSIOError)
	if log.Len() > 0 {
		t.Errorf("a refusal was logged: %s", log.String())
	}
	edit.Version = ""
	create := text("new")
	create.Intent = IntentCreate
	for _, err := range []error{
		second(f.WriteText(ctx, AtPath("a", ""), text("new"))), second(f.WriteText(ctx, AtPath("a", ""), create)),
		second(f.EditText(ctx, AtPath("a", ""), edit)),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(log.String(), "without a lock"); n < 3 {
		t.Errorf("%d warnings: %s", n, log.String())
	}
}

func TestStateDirectoryThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var none *NoLockError
	if _, err := NewLocks(filepath.Join(file, "state"), "w").Lock(ctx, "k"); !errors.As(err, &none) {
		t.Errorf("error %v", err)
	}
}

// Lockers of one state directory exclude each other, those of other keys and
// worlds do not, and the files are closed to others.
func TestLocksExclude(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "state")
	first, second := NewLocks(dir, "w"), NewLocks(dir, "w")
	unlock, err := first.Lock(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	for _, free := range []struct {
		locks Locker
		key   string
	}{{first, "other"}, {second, "other"}, {NewLocks(dir, "x"), "k"}} {
		release, err := free.locks.Lock(ctx, free.key)
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
	if taken := tryLock(t, dir, second, "k"); taken {
		t.Error("two hold one lock")
	}
	waiting, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := second.Lock(waiting, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	unlock()
	release, err := second.Lock(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	release()
	for path, mode := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "fs.lock"): 0o600} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
	}
}

// tryLock reports whether a lock is free, without waiting.
func tryLock(t *testing.T, dir string, l Locker, key string) bool {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "fs.lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	taken, err := tryRange(f, l.(*fileLocks).offset(key))
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

// Within a process turns come in order of arrival, and one who gives up leaves
// the line.
func TestQueueKeepsTheOrder(t *testing.T) {
	var q queues
	unlock, err := q.Lock(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	var order []int
	var done sync.WaitGroup
	gone, giveUp := context.WithCancel(ctx)
	for i := range 5 {
		mine := ctx
		if i == 2 {
			mine = gone
		}
		done.Go(func() {
			release, err := q.Lock(mine, "k")
			if err != nil {
				return
			}
			order = append(order, i) // the lock guards it
			release()
		})
		for inLine(&q, "k") <= i {
			runtime.Gosched()
		}
	}
	giveUp()
	for inLine(&q, "k") > 4 {
		runtime.Gosched()
	}
	unlock()
	done.Wait()
	if len(order) != 4 || order[0] != 0 || order[1] != 1 || order[2] != 3 || order[3] != 4 {
		t.Errorf("order %v", order)
	}
	if len(q.waiting) != 0 {
		t.Errorf("left in line: %v", q.waiting)
	}
}

func inLine(q *queues, key string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting[key])
}
