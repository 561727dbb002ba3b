package script

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// world makes a directory whose path has no links.
func world(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, text, path string) {
	t.Helper()
	if err := os.Symlink(text, path); err != nil {
		t.Fatal(err)
	}
}

func kindOf(err error) Kind {
	var f *Failure
	if errors.As(err, &f) {
		return f.Kind
	}
	return ""
}

func stat(t *testing.T, env []string, path string) (Entry, error) {
	c := Stat(path, false)
	return ReadStat(run(t, env, c, ""), c)
}

// Identity is that of remotefs.md 2.3, flavour R (cases 13 to 32).
func TestStatGivesTheCanonicalPath(t *testing.T) {
	eachShell(t, func(t *testing.T, env []string) {
		w := world(t)
		put(t, w+"/real.txt", "hello")
		os.MkdirAll(w+"/rd/sub", 0o755)
		link(t, "real.txt", w+"/l1")
		link(t, w+"/l1", w+"/l2")
		link(t, "rd/sub", w+"/ld")
		link(t, "nowhere", w+"/d")
		link(t, "../"+filepath.Base(w)+"/rd/./sub/..", w+"/up")
		for given, want := range map[string]string{
			"/real.txt": "/real.txt", "/l1": "/real.txt", "/l2": "/real.txt", "/ld": "/rd/sub",
			"/ld/new/deep": "/rd/sub/new/deep", "/d": "/nowhere", "/d/child": "/nowhere/child",
			"/up": "/rd", "/missing": "/missing", "/real.txt/x": "/real.txt/x",
		} {
			e, err := stat(t, env, w+given)
			if err != nil || e.Key != w+want {
				t.Errorf("%s: %q, %v; want %q", given, e.Key, err, want)
			}
		}
		for _, name := range []string{"你好\nfile.ts", "end\n", "\nstart", "it's", "$(id)`id`", `a\b`, "-rf", "\xff\xfe"} {
			put(t, w+"/"+name, "x")
			link(t, name, w+"/to-"+name)
			if e, err := stat(t, env, w+"/to-"+name); err != nil || e.Key != w+"/"+name || e.Facts == nil {
				t.Errorf("link to %q: %+v, %v", name, e, err)
			}
		}
		if e, err := stat(t, env, "/"); err != nil || e.Key != "/" || !e.Facts.IsDirectory() {
			t.Errorf("root: %+v, %v", e, err)
		}
	})
}

// Facts are exact, absence is an answer, loops and long names are errors (cases
// 24 to 26, 49 to 60).
func TestStatTellsFacts(t *testing.T) {
	eachShell(t, func(t *testing.T, env []string) {
		w := world(t)
		put(t, w+"/f", "hello")
		os.Chmod(w+"/f", 0o751|fs.ModeSetuid)
		e, err := stat(t, env, w+"/f")
		if err != nil || !e.Facts.IsRegular() || e.Facts.Size != 5 || e.Facts.Perm() != 0o4751 || e.Facts.Owner == "" {
			t.Fatalf("facts: %+v, %v", e.Facts, err)
		}
		info, _ := os.Stat(w + "/f")
		if !e.Facts.ModTime.Equal(info.ModTime()) {
			t.Errorf("time %v, want %v", e.Facts.ModTime, info.ModTime())
		}
		st := info.Sys().(*syscall.Stat_t)
		if !strings.HasPrefix(e.Facts.Version, fmt.Sprintf("%d:%d:5:", st.Dev, st.Ino)) {
			t.Errorf("version %q", e.Facts.Version)
		}
		os.Chmod(w+"/f", 0o640)
		if after, _ := stat(t, env, w+"/f"); after.Facts.Version == e.Facts.Version {
			t.Error("a chmod is not seen")
		}
		for _, name := range []string{"none", "none/deep", "f/x"} {
			if e, err := stat(t, env, w+"/"+name); err != nil || e.Facts != nil || e.NotDir != (name == "f/x") {
				t.Errorf("%s: %+v, %v", name, e.Facts, err)
			}
		}
		link(t, "loop2", w+"/loop1")
		link(t, "loop1", w+"/loop2")
		if _, err := stat(t, env, w+"/loop1"); !errors.Is(err, syscall.ELOOP) {
			t.Errorf("loop: %v", err)
		}
		if _, err := stat(t, env, w+"/"+strings.Repeat("n", 256)); !errors.Is(err, syscall.ENAMETOOLONG) {
			t.Errorf("long name: %v", err)
		}
		link(t, "f", w+"/l")
		link(t, ".", w+"/here")
		c := Lstat(w + "/here/l")
		if e, err := ReadStat(run(t, env, c, ""), c); err != nil || !e.Facts.IsLink() || e.Link != "f" || e.Key != w+"/l" {
			t.Errorf("lstat: %+v, %v", e, err)
		}
	})
}

// A listing has every name, and what links lead to (cases 64 to 82).
func TestList(t *testing.T) {
	eachShell(t, func(t *testing.T, env []string) {
		w := world(t)
		names := []string{".h", "-rf", "a b", "new\nline", "quote's", `dq"`, `back\slash`, "*", "..x", "$HOME", "#", "bad\xffname",
			"x\n81a4 1 2 3 2026-01-01 00:00:00.0 +0000 2026-01-01 00:00:00.0 +0000 " + strings.ReplaceAll(w[:1], "/", "") + "y"}
		for _, n := range names {
			put(t, w+"/"+n, "123")
		}
		os.Mkdir(w+"/dir", 0o755)
		os.MkdirAll(w+"/other/deep", 0o755)
		link(t, "dir", w+"/to-dir")
		link(t, "other/deep/../../a b", w+"/to-file")
		link(t, "missing", w+"/dangling")
		link(t, "loop", w+"/loop")
		c := List(w, false)
		key, children, err := ReadList(run(t, env, c, ""), c)
		if err != nil || key != w {
			t.Fatalf("%q, %v", key, err)
		}
		got := map[string]Child{}
		for _, child := range children {
			got[child.Name] = child
		}
		if len(got) != len(names)+6 {
			t.Fatalf("%d names: %+v", len(got), children)
		}
		for i, n := range names {
			if i%4 != 0 {
				if child := got[n]; child.Facts == nil || child.Facts.Size != 3 {
					t.Errorf("%q: %+v", n, child)
				}
				continue
			}
			direct, err := stat(t, env, w+"/"+n)
			if child := got[n]; err != nil || child.Facts == nil || child.Facts.Version != direct.Facts.Version || child.Key != w+"/"+n {
				t.Errorf("%q: %+v, %v", n, child, err)
			}
		}
		if d := got["to-dir"]; d.Facts == nil || !d.Facts.IsDirectory() || d.Key != w+"/dir" {
			t.Errorf("link to directory: %+v", d)
		}
		if f := got["to-file"]; f.Facts == nil || f.Facts.Size != 3 || f.Key != w+"/a b" {
			t.Errorf("link to file: %+v", f)
		}
		if d := got["dangling"]; d.Facts != nil || d.Key != w+"/missing" {
			t.Errorf("dangling: %+v", d)
		}
		if l := got["loop"]; l.Facts != nil {
			t.Errorf("loop: %+v", l)
		}
		for path, kind := range map[string]Kind{w + "/none": NotFound, w + "/a b": NotDirectory} {
			c := List(path, false)
			if _, _, err := ReadList(run(t, env, c, ""), c); kindOf(err) != kind {
				t.Errorf("%s: %v, want %s", path, err, kind)
			}
		}
		os.Mkdir(w+"/empty", 0o755)
		c = List(w+"/empty", false)
		if _, children, err := ReadList(run(t, env, c, ""), c); err != nil || len(children) != 0 {
			t.Errorf("empty: %v, %v", children, err)
		}
	})
}

// Content comes with the facts of the opened file (cases 87, 88, 113, 117).
func TestRead(t *testing.T) {
	eachShell(t, func(t *testing.T, env []string) {
		w := world(t)
		content := "\x00\xff'\"\\\r\n" + strings.Repeat("x", 200_000) + "\n"
		put(t, w+"/f", content)
		read := func(path string, limit int64) (Entry, string, error) {
			c := Read(path, false, limit)
			a := run(t, env, c, "")
			e, err := ReadStat(a, c)
			if err != nil {
				return e, "", err
			}
			rest, err := io.ReadAll(a)
			return e, string(rest), err
		}
		e, got, err := read(w+"/f", -1)
		direct, _ := stat(t, env, w+"/f")
		if err != nil || got != content || e.Facts.Version != direct.Facts.Version {
			t.Fatalf("%d bytes, %+v, %v", len(got), e.Facts, err)
		}
		if _, _, err := read(w+"/f", int64(len(content)-1)); kindOf(err) != TooLarge {
			t.Errorf("limit: %v", err)
		}
		if _, got, err := read(w+"/f", int64(len(content))); err != nil || got != content {
			t.Errorf("at the limit: %d bytes, %v", len(got), err)
		}
		if err := syscall.Mkfifo(w+"/fifo", 0o644); err != nil {
			t.Fatal(err)
		}
		for path, kind := range map[string]Kind{w + "/fifo": NotRegular, w: NotRegular, w + "/none": NotFound, w + "/f/x": NotFound} {
			if _, _, err := read(path, -1); kindOf(err) != kind {
				t.Errorf("%s: %v, want %s", path, err, kind)
			}
		}
		if _, got, err := read("/proc/version", -1); err != nil || got == "" {
			t.Errorf("/proc/version: %q, %v", got, err)
		}
	})
}

type writer struct {
	t   *testing.T
	env []string
}

func (w writer) write(path, content string, change func(*WriteSpec)) (Written, error) {
	w.t.Helper()
	spec := WriteSpec{Path: path, Intent: Any, Size: int64(len(content)), Mode: -1, NewMode: -1}
	if change != nil {
		change(&spec)
	}
	c := Write(spec)
	if content == "" {
		content = Empty
	}
	a := run(w.t, w.env, c, content)
	if _, err := ReadAdmitted(a, c); err != nil {
		return Written{}, err
	}
	return ReadWrite(a)
}

// residue lists what staging has left.
func residue(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(dir + "/.afield-*")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func mustHold(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != content {
		t.Errorf("%s holds %.40q, %v", path, got, err)
	}
	if info, err := os.Stat(path); err == nil && info.Mode()&(fs.ModePerm|fs.ModeSetuid) != mode {
		t.Errorf("%s has mode %v, want %v", path, info.Mode(), mode)
	}
}

// A guarded write publishes in one step or leaves all as it was (cases 127 to
// 161).
func TestWrite(t *testing.T) {
	eachShell(t, func(t *testing.T, env []string) {
		dir, w := world(t), writer{t, env}
		path := dir + "/a/b/it's\n名.txt"
		first, err := w.write(path, "one\x00\xff", func(s *WriteSpec) { s.Intent = Create })
		if err != nil || !first.Created || first.Key != path {
			t.Fatalf("create: %+v, %v", first, err)
		}
		mustHold(t, path, "one\x00\xff", 0o644)
		if e, _ := stat(t, env, path); e.Facts.Version != first.Version {
			t.Errorf("version %q, stat says %q", first.Version, e.Facts.Version)
		}
		if _, err := w.write(path, "two", func(s *WriteSpec) { s.Intent = Create }); kindOf(err) != Exists {
			t.Errorf("create again: %v", err)
		}
		os.Chmod(path, 0o750|fs.ModeSetuid)
		if _, err := w.write(path, "two", func(s *WriteSpec) { s.Intent, s.Version = Replace, first.Version }); kindOf(err) != Stale {
			t.Errorf("stale: %v", err)
		}
		mustHold(t, path, "one\x00\xff", 0o750|fs.ModeSetuid)
		e, _ := stat(t, env, path)
		second, err := w.write(path, "", func(s *WriteSpec) { s.Intent, s.Version = Replace, e.Facts.Version })
		if err != nil || second.Created {
			t.Fatalf("replace: %+v, %v", second, err)
		}
		mustHold(t, path, "", 0o750)
		if e, _ := stat(t, env, path); e.Facts.Version != second.Version {
			t.Errorf("version %q, stat says %q", second.Version, e.Facts.Version)
		}
		if _, err := w.write(path, "short", func(s *WriteSpec) { s.Size = 6 }); kindOf(err) != Short {
			t.Errorf("cut content: %v", err)
		}
		c := Write(WriteSpec{Path: path, Intent: Any, Mode: -1, NewMode: -1})
		if a := run(t, env, c, ""); true {
			if _, err := ReadAdmitted(a, c); err != nil {
				t.Errorf("admit: %v", err)
			}
			if _, err := ReadWrite(a); kindOf(err) != Short {
				t.Errorf("no content and no word of it: %v", err)
			}
		}
		mustHold(t, path, "", 0o750)
		if _, err := w.write(dir+"/none", "x", func(s *WriteSpec) { s.Intent, s.Version = Replace, e.Facts.Version }); kindOf(err) != Gone {
			t.Errorf("replace nothing: %v", err)
		}
		if _, err := w.write(dir+"/m", "x", func(s *WriteSpec) { s.Mode = 0o600 }); err != nil {
			t.Errorf("mode: %v", err)
		}
		mustHold(t, dir+"/m", "x", 0o600)
		if _, err := w.write(dir+"/n", "x", func(s *WriteSpec) { s.NewMode = 0o604 }); err != nil {
			t.Errorf("mode of new files: %v", err)
		}
		mustHold(t, dir+"/n", "x", 0o604)
		for _, name := range []string{"a", "."} {
			if _, err := w.write(dir+"/"+name, "x", nil); kindOf(err) != NotRegular {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := w.write(dir+"/m/child", "x", nil); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("below a file: %v", err)
		}
		if left := residue(t, filepath.Dir(path)); left != nil {
			t.Errorf("left: %q", left)
		}
	})
}

// Writing keeps links and names of full length, and in place keeps the inode
// (cases 153, 156, 158, 160, 165).
func TestWriteKeeps(t *testing.T) {
	eachShell(t, func(t *testing.T, env []string) {
		dir, w := world(t), writer{t, env}
		put(t, dir+"/real", "old")
		link(t, "real", dir+"/l")
		link(t, "nowhere", dir+"/d")
		if got, err := w.write(dir+"/l", "new", nil); err != nil || got.Key != dir+"/real" {
			t.Errorf("through a link: %+v, %v", got, err)
		}
		mustHold(t, dir+"/real", "new", 0o644)
		if got, err := w.write(dir+"/d", "made", func(s *WriteSpec) { s.Intent = Create }); err != nil || got.Key != dir+"/nowhere" {
			t.Errorf("dangling: %+v, %v", got, err)
		}
		if text, _ := os.Readlink(dir + "/d"); text != "nowhere" {
			t.Errorf("the link now says %q", text)
		}
		long := dir + "/" + strings.Repeat("n", 255)
		if _, err := w.write(long, "x", nil); err != nil {
			t.Errorf("long name: %v", err)
		}
		before, _ := os.Stat(dir + "/real")
		if _, err := w.write(dir+"/real", "in place", func(s *WriteSpec) { s.InPlace = true }); err != nil {
			t.Errorf("in place: %v", err)
		}
		if after, _ := os.Stat(dir + "/real"); !os.SameFile(before, after) {
			t.Error("in place made another file")
		}
		mustHold(t, dir+"/real", "in place", 0o644)
	})
}

// Content of unknown length is staged, published or discarded by separate calls.
func TestUploadAndPublish(t *testing.T) {
	eachShell(t, func(t *testing.T, env []string) {
		dir := world(t)
		key, content := dir+"/p/f", strings.Repeat("0123456789", 50_000)
		upload := func() Uploaded {
			c := Upload(key, -1, -1, true)
			up, err := ReadUpload(run(t, env, c, content), c)
			if err != nil || up.Size != int64(len(content)) || up.Folder != Folder(key, c.Nonce) {
				t.Fatalf("upload: %+v, %v", up, err)
			}
			return up
		}
		publish := func(folder string, noReplace bool, version string) (Written, error) {
			c := Publish(key, folder, noReplace, version)
			return ReadPublished(run(t, env, c, ""), c)
		}
		got, err := publish(upload().Folder, true, "")
		if e, _ := stat(t, env, key); err != nil || e.Facts == nil || e.Facts.Version != got.Version {
			t.Fatalf("publish: %+v, %v", got, err)
		}
		if _, err := publish(upload().Folder, true, ""); kindOf(err) != Exists {
			t.Errorf("no-replace: %v", err)
		}
		if _, err := publish(upload().Folder, false, "1:2:3"); kindOf(err) != Stale {
			t.Errorf("guard: %v", err)
		}
		up := upload()
		c := Discard(up.Folder)
		if err := ReadDone(run(t, env, c, ""), c); err != nil {
			t.Errorf("discard: %v", err)
		}
		if _, err := publish(up.Folder, false, ""); kindOf(err) != Lost {
			t.Errorf("publish after discard: %v", err)
		}
		up = upload()
		c = Settle(key, up.Folder)
		s, err := ReadSettle(run(t, env, c, ""), c)
		var sum Sum
		sum.Write([]byte(content))
		if err != nil || !s.Staged || s.Facts == nil || s.Facts.Version != got.Version || s.Sum != sum.String() {
			t.Errorf("settle: %+v, %v", s, err)
		}
		if left := residue(t, dir+"/p"); left != nil {
			t.Errorf("left: %q", left)
		}
	})
}

// Owner, extended attributes and ACL of a replaced file stay (design.md 4.13).
func TestWriteKeepsAttributes(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: needs root to give a file away")
	}
	env := []string{"PATH=/bin:/usr/bin"}
	dir, w := world(t), writer{t, env}
	put(t, dir+"/f", "old")
	os.Chown(dir+"/f", 1, 2)
	if err := syscall.Setxattr(dir+"/f", "user.note", []byte("kept"), 0); err != nil {
		t.Logf("no extended attributes here: %v", err)
	}
	if _, err := w.write(dir+"/f", "new", nil); err != nil {
		t.Fatal(err)
	}
	info, _ := os.Stat(dir + "/f")
	if st := info.Sys().(*syscall.Stat_t); st.Uid != 1 || st.Gid != 2 {
		t.Errorf("owner %d:%d", st.Uid, st.Gid)
	}
}

// A user who may not sees the code of the kernel, not absence (cases 27, 63, 76,
// 77, 112, 124, 162).
func TestPermissions(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: needs root to become another user")
	}
	eachShell(t, func(t *testing.T, env []string) {
		w, err := os.MkdirTemp("/tmp", "script")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(w) })
		os.Chmod(w, 0o777)
		bin := strings.Split(strings.TrimPrefix(env[0], "PATH="), ":")[0]
		for d := bin; d != "/"; d = filepath.Dir(d) {
			if d != "/tmp" {
				os.Chmod(d, 0o755)
			}
		}
		for d, m := range map[string]fs.FileMode{"none": 0, "list": 0o444, "search": 0o111, "fixed": 0o555} {
			os.Mkdir(w+"/"+d, 0o755)
			put(t, w+"/"+d+"/f", "123456")
			os.Chmod(w+"/"+d, m)
		}
		put(t, w+"/secret", "123456")
		os.Chmod(w+"/secret", 0)
		as := func(c Call, content string) *Answer {
			cmd := exec.Command("/bin/bash", "-c", c.Line(true))
			cmd.Env, cmd.Dir = env, "/"
			cmd.Stdin = strings.NewReader(content)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			out, _ := cmd.Output()
			return NewAnswer(strings.NewReader(string(out)))
		}
		denied := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for _, p := range []string{"/none/f", "/none/x/y"} {
			c := Stat(w+p, false)
			_, err := ReadStat(as(c, ""), c)
			denied("stat "+p, err)
		}
		for _, p := range []string{"/none", "/list", "/search"} {
			c := List(w+p, false)
			_, _, err := ReadList(as(c, ""), c)
			denied("list "+p, err)
		}
		c := Read(w+"/secret", false, -1)
		_, err = ReadStat(as(c, ""), c)
		denied("read", err)
		c = Read(w+"/secret", false, 1)
		if _, err = ReadStat(as(c, ""), c); kindOf(err) != TooLarge {
			t.Errorf("limit before permission: %v", err)
		}
		for _, p := range []string{"/fixed/f", "/fixed/new", "/fixed/a/b", "/none/f"} {
			c := Write(WriteSpec{Path: w + p, Intent: Any, Size: 1, Mode: -1, NewMode: -1})
			a := as(c, "x")
			_, err := ReadAdmitted(a, c)
			if err == nil {
				_, err = ReadWrite(a)
			}
			denied("write "+p, err)
		}
		if names, _ := os.ReadDir(w + "/fixed"); len(names) != 1 {
			t.Errorf("left: %v", slices.Collect(func(yield func(string) bool) {
				for _, n := range names {
					yield(n.Name())
				}
			}))
		}
	})
}
