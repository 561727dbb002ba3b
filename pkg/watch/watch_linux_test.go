package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/afield-dev/afield/pkg/backend/local"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// follow runs a watch, does each step once the events of the one before came, and
// compares what was told.
func follow(t *testing.T, dir string, watch func(context.Context, func(Event) error) error, steps []step) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	events := make(chan Event)
	done := make(chan error, 1)
	go func() {
		done <- watch(ctx, func(e Event) error {
			select {
			case events <- e:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	if e := <-events; e.Kind != Ready {
		t.Fatalf("%+v", e)
	}
	for _, s := range steps {
		s.do()
		for _, want := range s.want {
			select {
			case e := <-events:
				got := strings.TrimSpace(string(e.Kind) + " " + rel(dir, e.Path) + " " + rel(dir, e.From))
				if d := cmp.Diff(want, got); d != "" {
					t.Fatalf("%s", d)
				}
			case err := <-done:
				t.Fatalf("ended: %v", err)
			case <-ctx.Done():
				t.Fatalf("%q did not come", want)
			}
		}
	}
	cancel()
	for {
		select {
		case <-events:
		case err := <-done:
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			return
		}
	}
}

func rel(dir, p string) string { return strings.TrimPrefix(strings.TrimPrefix(p, dir), "/") }

// step is something done and the events it must give, in order.
type step struct {
	do   func()
	want []string
}

func stepsIn(t *testing.T, dir string, native bool) []step {
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	steps := []step{
		{func() { must(os.Mkdir(at("d"), 0o755)) }, []string{"created d"}},
		{func() { must(os.WriteFile(at("d/new\nline"), nil, 0o644)) }, []string{"created d/new\nline"}},
		{func() { must(os.Chmod(at("d/new\nline"), 0o600)) }, []string{"modified d/new\nline"}},
		{func() { must(os.Rename(at("d/new\nline"), at("f"))) }, []string{"renamed f d/new\nline"}},
		{func() { must(os.Rename(at("d"), at("e"))) }, []string{"renamed e d"}},
		{func() { must(os.Mkdir(at("e/in"), 0o755)) }, []string{"created e/in"}},
		{func() { must(os.Remove(at("f"))) }, []string{"removed f"}},
		{func() { must(os.RemoveAll(at("e"))) }, []string{"removed e/in", "removed e"}},
	}
	if !native {
		// Gone in one step, so that no look falls between; then in byte order.
		away := filepath.Join(t.TempDir(), "e")
		steps[len(steps)-1] = step{func() { must(os.Rename(at("e"), away)) }, []string{"removed e", "removed e/in"}}
	}
	return steps
}

func TestPoll(t *testing.T) {
	dir := t.TempDir()
	walker := local.NewDriver(dir)
	follow(t, dir, func(ctx context.Context, emit func(Event) error) error {
		return Poll(ctx, walker, []Root{{Dir: dir}}, time.Millisecond, emit)
	}, stepsIn(t, dir, false))
}

func TestNative(t *testing.T) {
	dir := t.TempDir()
	walker := local.NewDriver(dir)
	follow(t, dir, func(ctx context.Context, emit func(Event) error) error {
		return Native(ctx, walker, []Root{{Dir: dir}}, emit)
	}, stepsIn(t, dir, true))
}

// One entry is watched without its neighbours, also while it is not there.
func TestOneEntry(t *testing.T) {
	dir := t.TempDir()
	walker := local.NewDriver(dir)
	file := filepath.Join(dir, "f")
	steps := []step{
		{func() {
			os.WriteFile(filepath.Join(dir, "other"), nil, 0o644)
			os.WriteFile(file, nil, 0o644)
		}, []string{"created f"}},
		{func() { os.Remove(filepath.Join(dir, "other")); os.Remove(file) }, []string{"removed f"}},
	}
	follow(t, dir, func(ctx context.Context, emit func(Event) error) error {
		return Native(ctx, walker, []Root{{Dir: dir, Only: "f"}}, emit)
	}, steps)
	follow(t, dir, func(ctx context.Context, emit func(Event) error) error {
		return Poll(ctx, walker, []Root{{Dir: dir, Only: "f"}}, time.Millisecond, emit)
	}, steps)
}

// A lost event is said, and what came meanwhile is watched.
func TestOverflow(t *testing.T) {
	var kinds []Kind
	n := &native{ctx: t.Context(), walker: local.NewDriver("/"), emit: func(e Event) error {
		kinds = append(kinds, e.Kind)
		return nil
	}, dirs: map[int32]string{}, only: map[string]string{}, moved: &Event{Kind: Removed, Path: "/x", Type: remotefs.TypeFile}}
	if err := n.overflow(); err != nil || len(kinds) != 2 || kinds[0] != Removed || kinds[1] != Overflow {
		t.Errorf("%v %v", kinds, err)
	}
}
