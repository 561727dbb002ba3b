package script

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// odd are names that a program must not look into.
var odd = []string{"a b", "new\nline", "-rf", "it's", "$(id)", `back\slash`, "\xff", "*", "é"}

// A walk finds every entry by its exact name with its facts, in each shell and
// with each find.
func TestWalkFindsEveryName(t *testing.T) {
	eachShell(t, func(t *testing.T, env []string) {
		dir := t.TempDir()
		want := []string{"d", "d/empty"}
		os.MkdirAll(filepath.Join(dir, "d/empty"), 0o750)
		os.MkdirAll(filepath.Join(dir, "d/.afield-1.tmp/x"), 0o700)
		os.MkdirAll(filepath.Join(dir, ".git/x"), 0o700)
		at := time.Unix(981173106, 123456789)
		for _, name := range odd {
			p := filepath.Join(dir, "d", name)
			if err := os.WriteFile(p, []byte("12345"), 0o640); err != nil {
				t.Fatal(err)
			}
			os.Chtimes(p, at, at)
			want = append(want, "d/"+name)
		}
		os.Symlink("../x\ny ", filepath.Join(dir, "d/link"))
		want = append(want, "d/link")
		c := Walk(dir, false, 0, []string{".git"})
		var got []string
		trouble, err := ReadWalk(run(t, env, c, ""), c, func(f Found) error {
			got = append(got, f.Path)
			switch {
			case f.Path == "d/link" && (f.Kind != 'l' || f.Link != "../x\ny "):
				t.Errorf("link: %+v", f)
			case f.Path == "d" && (f.Kind != 'd' || f.Mode != 0o750):
				t.Errorf("directory: %+v", f)
			case f.Path == "d/a b" && (f.Kind != 'f' || f.Size != 5 || f.Mode != 0o640 || !f.ModTime.Equal(at)):
				t.Errorf("file: %+v", f)
			}
			return nil
		})
		if err != nil || trouble != "" {
			t.Fatalf("%q %v", trouble, err)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("got %q\nwant %q", got, want)
		}
	})
}

// What moves and copies never replaces with the flag n, and stages beside the
// target.
func TestPlaceNeverReplaces(t *testing.T) {
	eachShell(t, func(t *testing.T, env []string) {
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		os.WriteFile(at("f"), []byte("f"), 0o600)
		os.WriteFile(at("g"), []byte("g"), 0o600)
		os.MkdirAll(at("d/sub"), 0o700)
		os.Mkdir(at("e"), 0o700)
		os.Symlink("nowhere", at("l"))
		for _, c := range []Call{Move(at("f"), at("g"), true), Move(at("d"), at("e"), true), Copy(at("d"), at("e"), false),
			Copy(at("f"), at("l"), true), Move(at("f"), at("e"), false), Symlink("x", at("g")), Mkdir(at("g"), -1, false)} {
			if err := ReadDone(run(t, env, c, ""), c); err == nil {
				t.Errorf("%s %v replaced something", c.Name, c.Words)
			}
		}
		for _, c := range []Call{Copy(at("d"), at("d2"), true), Move(at("d2"), at("d3"), true), Copy(at("f"), at("f2\n"), true),
			Move(at("f2\n"), at("l"), false)} {
			if err := ReadDone(run(t, env, c, ""), c); err != nil {
				t.Errorf("%s %v: %v", c.Name, c.Words, err)
			}
		}
		names, _ := filepath.Glob(dir + "/.afield*")
		if _, err := os.Stat(at("d3/sub")); err != nil || len(names) > 0 {
			t.Errorf("%v %v", err, names)
		}
		if b, err := os.ReadFile(at("l")); err != nil || string(b) != "f" {
			t.Errorf("%q %v", b, err)
		}
	})
}

// Removal with all that is inside refuses the root, the home directory and what
// holds it.
func TestRemoveKeepsTheHome(t *testing.T) {
	eachShell(t, func(t *testing.T, env []string) {
		home := t.TempDir()
		env = append(env[:1:1], "HOME="+home)
		for _, path := range []string{"/", home, filepath.Dir(home)} {
			c := Remove(path, true)
			if err := ReadDone(run(t, env, c, ""), c); err == nil || err.Error() != string(Guard) {
				t.Errorf("%s: %v", path, err)
			}
		}
		sub := filepath.Join(home, "sub\n")
		os.MkdirAll(filepath.Join(sub, "x"), 0o700)
		c := Remove(sub, true)
		if err := ReadDone(run(t, env, c, ""), c); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(sub); err == nil {
			t.Error("still there")
		}
	})
}
