package undo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// Many writers lose no record, and IDs stay apart.
func TestRecordsOfManyWriters(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s := NewStore(dir, "w", 1<<20, time.Hour)
			for j := range 5 {
				if err := s.Add(t.Context(), Record{Op: Write, Key: fmt.Sprint(i, j)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	list, err := NewStore(dir, "w", 1<<20, time.Hour).List()
	if err != nil || len(list) != 40 || list[39].ID != 40 {
		t.Errorf("%d %v", len(list), err)
	}
	if other, err := NewStore(dir, "other", 1, time.Hour).List(); err != nil || len(other) != 0 {
		t.Errorf("another world: %v %v", other, err)
	}
}

// Images are dropped by size, the oldest first, and records by age.
func TestBounds(t *testing.T) {
	s := NewStore(t.TempDir(), "w", 25, time.Hour)
	var sums []string
	for i := range 4 {
		sum, err := s.Keep(fmt.Appendf(nil, "content %d.", i)) // 10 bytes
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum)
		if err := s.Add(t.Context(), Record{Op: Write, Had: true, Before: sum}); err != nil {
			t.Fatal(err)
		}
	}
	for i, sum := range sums {
		b, err := s.Image(sum)
		if kept := err == nil; kept != (i >= 2) || kept && string(b) != fmt.Sprintf("content %d.", i) {
			t.Errorf("image %d: %q %v", i, b, err)
		}
	}
	os.WriteFile(filepath.Join(s.dir, sums[3]), []byte("damaged"), 0o600)
	if _, err := s.Image(sums[3]); !fault.Is(err, fault.FSIOError) {
		t.Errorf("damaged: %v", err)
	}
	s.maxAge = 0
	if err := s.Add(context.Background(), Record{Op: Write}); err != nil {
		t.Fatal(err)
	}
	if list, _ := s.List(); len(list) != 0 {
		t.Errorf("old records: %v", list)
	}
}
