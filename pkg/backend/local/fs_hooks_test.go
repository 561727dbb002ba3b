package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// hooked gives files in an empty directory, with hooks.
func hooked(t *testing.T, h hooks) (remotefs.FS, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := NewDriver(dir)
	d.hooks = h
	return remotefs.New(d, remotefs.Options{}), dir
}

func store(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func holds(t *testing.T, path, want string) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != want {
		t.Errorf("%s holds %q, %v; want %q", path, b, err, want)
	}
}

// only holds what a directory has.
func only(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if strings.Join(names, " ") != strings.Join(want, " ") {
		t.Errorf("%s has %q, want %q", dir, names, want)
	}
}

func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Errorf("error %v (%s), want %s", err, fault.CodeOf(err), code)
	}
}

func create(f remotefs.FS, path string) error {
	_, err := f.WriteText(context.Background(), remotefs.AtPath(path, ""), remotefs.WriteRequest{
		Content: strings.NewReader("new"), Size: 3, Mode: -1, Intent: remotefs.IntentCreate})
	return err
}

func replace(f remotefs.FS, path string) error {
	_, err := f.WriteText(context.Background(), remotefs.AtPath(path, ""), remotefs.WriteRequest{
		Content: strings.NewReader("new"), Size: 3, Mode: -1})
	return err
}

func TestChildRemovedBeforeItIsProbed(t *testing.T) { // case 80
	var dir string
	f, dir := hooked(t, hooks{beforeProbe: func() { os.Remove(filepath.Join(dir, "gone")) }})
	store(t, filepath.Join(dir, "gone"), "x")
	store(t, filepath.Join(dir, "here"), "x")
	_, list, err := f.ListDir(context.Background(), remotefs.AtPath(".", ""))
	if err != nil || len(list) != 2 || list[0].Type != remotefs.TypeOther || list[0].Version != "" || list[0].Size != -1 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestListingCancelledBetweenChildren(t *testing.T) { // case 81
	ctx, cancel := context.WithCancel(context.Background())
	f, dir := hooked(t, hooks{beforeProbe: cancel})
	store(t, filepath.Join(dir, "a"), "x")
	_, _, err := f.ListDir(ctx, remotefs.AtPath(".", ""))
	wantCode(t, err, fault.FSAborted)
}

func TestFileReplacedBetweenStatAndOpen(t *testing.T) { // cases 107, 108, 109
	for name, c := range map[string]struct {
		put  func(path string) error
		code fault.Code
	}{
		"nothing":   {func(string) error { return nil }, fault.FSNotFound},
		"directory": {func(p string) error { return os.Mkdir(p, 0o755) }, fault.FSNotRegularFile},
		"FIFO":      {func(p string) error { return syscall.Mkfifo(p, 0o644) }, fault.FSNotRegularFile},
	} {
		t.Run(name, func(t *testing.T) {
			var path string
			f, dir := hooked(t, hooks{beforeOpen: func() {
				if err := errorOf(os.Remove(path), c.put(path)); err != nil {
					t.Error(err)
				}
			}})
			path = filepath.Join(dir, "f")
			store(t, path, "x")
			_, err := f.ReadText(context.Background(), remotefs.AtPath("f", ""))
			wantCode(t, err, c.code)
		})
	}
}

func TestFileGrownBetweenStatAndOpen(t *testing.T) { // case 120
	var path string
	f, dir := hooked(t, hooks{beforeOpen: func() { os.WriteFile(path, make([]byte, 1<<20), 0o644) }})
	path = filepath.Join(dir, "f")
	store(t, path, "four")
	_, err := f.ReadBytes(context.Background(), remotefs.AtPath("f", ""), 4)
	wantCode(t, err, fault.FSTooLarge)
}

func TestStagingThatIsThereAlready(t *testing.T) { // case 168
	f, dir := hooked(t, hooks{stageName: func() string { return ".afield-0.tmp" }})
	if err := os.Mkdir(filepath.Join(dir, ".afield-0.tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	store(t, filepath.Join(dir, ".afield-0.tmp", "content"), "theirs")
	wantCode(t, replace(f, "f"), fault.FSIOError)
	holds(t, filepath.Join(dir, ".afield-0.tmp", "content"), "theirs")
	only(t, dir, ".afield-0.tmp")
}

func TestStagingCannotBeRemovedAfterwards(t *testing.T) { // case 169
	f, dir := hooked(t, hooks{remove: func(string) error { return syscall.EBUSY }})
	for _, write := range []func(remotefs.FS, string) error{create, replace} {
		if err := write(f, "f"); err != nil {
			t.Error(err)
		}
		holds(t, filepath.Join(dir, "f"), "new")
	}
	// The link of a creation stays in the staging directory; the version must be
	// that of the file all the same.
	out, err := f.WriteText(context.Background(), remotefs.AtPath("g", ""), remotefs.WriteRequest{
		Content: strings.NewReader("x"), Size: 1, Mode: -1, Intent: remotefs.IntentCreate})
	if err != nil {
		t.Fatal(err)
	}
	_, info, err := f.Stat(context.Background(), remotefs.AtPath("g", ""))
	if err != nil || info.Version != out.Version {
		t.Errorf("stat gives %+v, %v; the outcome had %s", info, err, out.Version)
	}
}

func TestStagingCannotBeRemovedAfterAFailure(t *testing.T) { // case 170
	f, dir := hooked(t, hooks{
		link:   func(_, to string) error { os.WriteFile(to, []byte("theirs"), 0o644); return syscall.EEXIST },
		remove: func(string) error { return syscall.EBUSY },
	})
	err := create(f, "f")
	wantCode(t, err, fault.FSNotObserved)
	for _, part := range []string{"cannot overwrite", syscall.EBUSY.Error()} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not mention %q", err, part)
		}
	}
	if !errors.Is(err, syscall.EBUSY) {
		t.Errorf("the second failure is not among the causes of %v", err)
	}
	holds(t, filepath.Join(dir, "f"), "theirs")
}

func TestCreateWithoutHardLinks(t *testing.T) { // case 171
	for _, errno := range []error{syscall.EPERM, syscall.EOPNOTSUPP} {
		f, dir := hooked(t, hooks{link: func(string, string) error { return errno }})
		if err := create(f, "f"); err != nil {
			t.Fatal(err)
		}
		wantCode(t, create(f, "f"), fault.FSNotObserved)
		holds(t, filepath.Join(dir, "f"), "new")
		only(t, dir, "f")
	}
}

func TestEntryGoneWhenARefusalIsInspected(t *testing.T) { // case 180
	f, dir := hooked(t, hooks{link: func(string, string) error { return syscall.EEXIST }})
	wantCode(t, create(f, "f"), fault.FSNotObserved)
	only(t, dir)
}

func TestLinkFailsOtherwise(t *testing.T) { // case 181
	f, dir := hooked(t, hooks{link: func(string, string) error { return syscall.EIO }})
	wantCode(t, create(f, "f"), fault.FSIOError)
	only(t, dir)
	f, dir = hooked(t, hooks{
		link:    func(string, string) error { return syscall.EEXIST },
		inspect: func(string) error { return syscall.EACCES },
	})
	err := create(f, "f")
	wantCode(t, err, fault.FSIOError)
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("the cause of %v is not that of the inspection", err)
	}
	only(t, dir)
}

// Nothing else of this package runs while the mask of the process is another.
func TestNewFilesUnderAMaskOfAll(t *testing.T) { // case 152
	f, dir := hooked(t, hooks{})
	old := syscall.Umask(0o777)
	err := replace(f, "f")
	syscall.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(filepath.Join(dir, "f"))
	if err != nil || st.Mode().Perm() != 0 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
}
