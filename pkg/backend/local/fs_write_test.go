package local

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

func write(t *testing.T, f remotefs.FS, path, content string) remotefs.WriteOutcome {
	t.Helper()
	out, err := f.WriteText(context.Background(), remotefs.AtPath(path, ""),
		remotefs.WriteRequest{Content: strings.NewReader(content), Size: -1, Mode: -1})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The version of each outcome is the version of a stat made right after (case
// 172), with a lock file between processes as well.
func TestVersionsAreFreshAfterAChange(t *testing.T) {
	dir := t.TempDir()
	f := remotefs.New(NewDriver(dir), remotefs.Options{Locks: remotefs.NewLocks(t.TempDir(), "test")})
	ctx := context.Background()
	check := func(version string) {
		t.Helper()
		_, info, err := f.Stat(ctx, remotefs.AtPath("a", ""))
		if err != nil || info.Version != version {
			t.Fatalf("stat gives %v, %v; the outcome had %s", info, err, version)
		}
	}
	created, err := f.WriteText(ctx, remotefs.AtPath("a", ""), remotefs.WriteRequest{
		Content: strings.NewReader("one"), Size: 3, Mode: -1, Intent: remotefs.IntentCreate})
	if err != nil {
		t.Fatal(err)
	}
	check(created.Version)
	check(write(t, f, "a", "two").Version)
	edited, err := f.EditText(ctx, remotefs.AtPath("a", ""), remotefs.EditRequest{Edits: []remotefs.Edit{{Old: "two", New: "three"}}})
	if err != nil {
		t.Fatal(err)
	}
	check(edited.Version)
	_, err = f.EditText(ctx, remotefs.AtPath("a", ""), remotefs.EditRequest{Version: created.Version, Edits: []remotefs.Edit{{Old: "x", New: "y"}}})
	if !fault.Is(err, fault.FSStaleVersion) {
		t.Fatalf("stale guard: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("left behind: %v, %v", entries, err)
	}
}

// Writing in place keeps the inode, and so every other name of it.
func TestWriteInPlaceKeepsLinks(t *testing.T) {
	dir := t.TempDir()
	f := remotefs.New(NewDriver(dir), remotefs.Options{})
	write(t, f, "a", "a rather long beginning")
	if err := os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("é", 1<<20) // more than is checked before any I/O
	_, err := f.WriteText(context.Background(), remotefs.AtPath("a", ""), remotefs.WriteRequest{
		Content: strings.NewReader(long), Size: -1, Mode: -1, InPlace: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteText(context.Background(), remotefs.AtPath("a", ""), remotefs.WriteRequest{
		Content: strings.NewReader(long + "\xFF"), Size: -1, Mode: -1, InPlace: true})
	if !fault.Is(err, fault.FSNotText) {
		t.Fatalf("invalid text: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "b")); err != nil || string(b) != long {
		t.Fatalf("the other name has %d bytes, %v", len(b), err)
	}
	_, err = f.EditText(context.Background(), remotefs.AtPath("b", ""), remotefs.EditRequest{
		InPlace: true, Edits: []remotefs.Edit{{Old: "é", New: "", All: true}}})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || len(b) != 0 {
		t.Fatalf("the other name has %d bytes, %v", len(b), err)
	}
}
