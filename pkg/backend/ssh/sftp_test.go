package ssh_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/ssh"
	"github.com/afield-dev/afield/pkg/backend/ssh/sshdtest"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/remotefs/fstest"
)

const sftpOnly = "ForceCommand internal-sftp"

// A host that allows nothing but SFTP has files with weak versions, and says of
// processes that it has none.
func TestSFTPOnly(t *testing.T) {
	t.Parallel()
	w := startServer(t, sftpOnly).mustOpen(t, nil)
	if !w.FileDriver().Facts().WeakVersions {
		t.Error("the weakness of the versions is not said")
	}
	if _, _, _, err := run(t, w.Processes(), remoteexec.Spec{Argv: []string{"true"}}); !fault.Is(err, fault.BackendUnsupported) {
		t.Errorf("exec: %v", err)
	}
}

// The files of such a host pass the suite, as far as the protocol carries what a
// case needs.
func TestSFTPFilesSuite(t *testing.T) {
	t.Parallel()
	w := startServer(t, sftpOnly).mustOpen(t, nil)
	dir, state, driver := sshdtest.TempDirIn(t, fastParent()), t.TempDir(), w.FileDriver()
	open := func() (remotefs.FS, error) {
		return remotefs.New(driver, remotefs.Options{Locks: remotefs.NewLocks(state, "suite")}), nil
	}
	files, _ := open()
	fstest.Run(t, fstest.Backend{Facts: driver.Facts(), Files: files, Another: open, Driver: driver, World: fstest.MountingHost{},
		Dir: dir, StateDir: state, Root: true, Rounds: 2, Only: func(c fstest.Case) bool { return c.Num != 239 }})
}

// A change that a weak token cannot show is seen by the content that was read
// under it, also by the next command (design.md 4.21).
func TestWeakGuardComparesContent(t *testing.T) {
	t.Parallel()
	s, dir, state := startServer(t, sftpOnly), tempDir(t), t.TempDir()
	another := func() *ssh.World {
		w, err := open(t, s.row(nil), func(r *backend.OpenRequest) { r.StateDir = state })
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	file := dir + "/f"
	at := remotefs.AtPath(file, "")
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	put := func(text string) {
		write(t, file, text)
		os.Chtimes(file, then, then)
	}
	put("one!")
	text, err := another().Files().ReadText(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	put("two!")
	if _, info, _ := another().Files().Stat(t.Context(), at); info.Version != text.Version {
		t.Fatalf("the token shows the change: %s, %s", info.Version, text.Version)
	}
	replace := remotefs.WriteRequest{Content: strings.NewReader("new"), Size: 3, Intent: remotefs.IntentReplace, Version: text.Version, Mode: -1}
	if _, err := another().Files().WriteText(t.Context(), at, replace); !fault.Is(err, fault.FSStaleVersion) || readFile(t, file) != "two!" {
		t.Errorf("write: %v, and the file holds %q", err, readFile(t, file))
	}
	put("one!")
	replace.Content = strings.NewReader("new")
	if _, err := another().Files().WriteText(t.Context(), at, replace); err != nil {
		t.Errorf("unchanged content: %v", err)
	}
}

// A listing of 2,000 names takes as many round trips as one of two; links are
// looked at in one burst.
func TestSFTPListing(t *testing.T) {
	t.Parallel()
	s, dir := startServer(t, sftpOnly), tempDir(t)
	for i := range 2000 {
		write(t, fmt.Sprintf("%s/%04d", dir, i), "x")
	}
	for i := range 50 {
		os.Symlink(fmt.Sprintf("%04d", i), fmt.Sprintf("%s/l%d", dir, i))
	}
	os.Symlink("nowhere", dir+"/dangling")
	os.Symlink("loop", dir+"/loop")
	c := &counter{}
	w, err := open(t, s.row(nil), func(r *backend.OpenRequest) { r.Trace = c.trace })
	if err != nil {
		t.Fatal(err)
	}
	_, entries, err := w.Files().ListDir(t.Context(), remotefs.AtPath(dir, ""))
	if err != nil || len(entries) != 2052 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	kinds := map[remotefs.Type]int{}
	for _, e := range entries {
		kinds[e.Type]++
		if strings.HasPrefix(e.Name, "l") && e.Name != "loop" && e.Target.Key != filepath.Join(dir, fmt.Sprintf("%04s", e.Name[1:])) {
			t.Errorf("%s leads to %s", e.Name, e.Target.Key)
		}
	}
	if kinds[remotefs.TypeFile] != 2050 || kinds[remotefs.TypeOther] != 2 {
		t.Errorf("kinds %v", kinds)
	}
	if _, err := w.Files().ReadText(context.Background(), remotefs.AtPath(dir+"/0000", "")); err != nil {
		t.Errorf("the library's requests do not work beside ours: %v", err)
	}
}

// Without its extensions a server makes and replaces nothing in one step; that is
// said, and nothing is half-written.
func TestSFTPWithoutExtensions(t *testing.T) {
	t.Parallel()
	w := startServer(t, "ForceCommand internal-sftp -P posix-rename,hardlink,fsync,statvfs").mustOpen(t, nil)
	dir := tempDir(t)
	write(t, dir+"/old", "old")
	for _, name := range []string{"old", "new"} {
		intent := map[string]remotefs.Intent{"old": remotefs.IntentNone, "new": remotefs.IntentCreate}[name]
		_, err := w.Files().WriteText(t.Context(), remotefs.AtPath(dir+"/"+name, ""), remotefs.WriteRequest{
			Content: strings.NewReader("x"), Size: 1, Intent: intent, Mode: -1})
		if !fault.Is(err, fault.BackendUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 || readFile(t, dir+"/old") != "old" {
		t.Errorf("left: %v", left)
	}
}
