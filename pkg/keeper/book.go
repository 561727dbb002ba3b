package keeper

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

const (
	// maxHeld bounds the terminals and jobs of a keeper.
	maxHeld = 256
	// endedTime is how long one that has ended and was not dropped is kept.
	endedTime = time.Hour
)

// book is what a keeper holds.
type book struct {
	k       *keeper
	mu      sync.Mutex
	all     []*held // in the order of their start
	last    int     // number of the last id; 0 = not read yet
	closing bool
}

// add enters a program that is about to be started. Ids are never used again,
// not by a later keeper of the same world either; a name is unique (TS-1).
func (b *book) add(kind Kind, name string) (*held, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closing:
		return nil, fault.New(fault.ExecDisposing, "hold", "", "the keeper is ending").WithRetry(fault.RetrySafe)
	case len(b.all) >= maxHeld:
		return nil, fault.New(fault.BackendConflict, "hold", "", "the keeper holds %d terminals and jobs, which is its limit", maxHeld).
			WithHint("close or drop some of them")
	case name != "" && slices.ContainsFunc(b.all, func(h *held) bool { return h.name == name || h.id == name }):
		return nil, fault.New(fault.ExecNameTaken, "hold", name, "the name %q is taken", name)
	}
	h := &held{book: b, id: b.mint(kind), name: name, kind: kind, began: time.Now(), over: make(chan struct{})}
	b.all = append(b.all, h)
	return h, nil
}

// mint makes an id; b.mu is held. The number is kept in the state directory. If
// it cannot be, ids begin at the time instead.
func (b *book) mint(kind Kind) string {
	path := filepath.Join(b.k.Setup.StateDir, "keeper-"+b.k.Setup.ID+".last")
	if b.last == 0 {
		text, err := os.ReadFile(path)
		b.last, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil && !os.IsNotExist(err) {
			b.last = int(time.Now().Unix())
		}
	}
	b.last++
	if err := os.WriteFile(path, strconv.AppendInt(nil, int64(b.last), 10), 0o600); err != nil {
		b.last = max(b.last, int(time.Now().Unix()))
	}
	word := "pty"
	if kind == KindJob {
		word = "job"
	}
	return fmt.Sprintf("%s-%d", word, b.last)
}

// find gives what an id, or a name, stands for.
func (b *book) find(id string) (*held, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.all {
		if h.public && (h.id == id || h.name == id && id != "") {
			return h, nil
		}
	}
	return nil, fault.New(fault.ExecUnknownSession, "hold", id, "there is no terminal or job %q", id)
}

// publish makes one known: its program runs (TS-3).
func (b *book) publish(h *held) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h.public = true
}

// known gives those that are published.
func (b *book) known() []*held {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []*held
	for _, h := range b.all {
		if h.public {
			list = append(list, h)
		}
	}
	return list
}

// list gives all in the order of their start.
func (b *book) list() []*held {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.all)
}

// remove forgets one; the keeper may rest then.
func (b *book) remove(h *held) {
	b.mu.Lock()
	n := len(b.all)
	b.all = slices.DeleteFunc(b.all, func(x *held) bool { return x == h })
	gone := len(b.all) < n
	b.mu.Unlock()
	if !gone {
		return
	}
	h.release()
	b.k.rest()
}

func (b *book) empty() bool { return b.count() == 0 }

func (b *book) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.all)
}

// shut ends everything that is held.
func (b *book) shut(ctx context.Context) {
	b.mu.Lock()
	b.closing = true
	b.mu.Unlock()
	var all sync.WaitGroup
	for _, h := range b.list() {
		all.Go(func() {
			if err := h.terminate(ctx); err != nil {
				b.k.log.Warn("cannot end what was held", "id", h.id, "error", err)
			}
			h.release()
		})
	}
	all.Wait()
}
