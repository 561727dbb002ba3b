package fstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// env is what a case works with: an empty directory of its own, and words for
// what cases do. A failure of the world ends the case.
type env struct {
	TB
	Backend
	ctx  context.Context
	dir  string
	ends []func()
}

// run runs one case in a directory of its own.
func run(t TB, b Backend, c Case) {
	e := &env{TB: t, Backend: b, ctx: context.Background(), dir: path.Join(b.Dir, fmt.Sprintf("case%03d", c.Num))}
	defer func() {
		for _, end := range slices.Backward(e.ends) {
			end()
		}
		if err := b.World.Remove(e.dir); err != nil {
			t.Errorf("removing %s: %v", e.dir, err)
		}
	}()
	e.must(b.World.Remove(e.dir))
	e.must(b.World.Mkdir(e.dir))
	c.run(e)
}

// atEnd runs f when the case has ended.
func (e *env) atEnd(f func()) { e.ends = append(e.ends, f) }

// must ends the case if the world could not be prepared.
func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatalf("preparing: %v", err)
	}
}

// path gives a path below the case's directory.
func (e *env) path(name string) string { return path.Join(e.dir, name) }

// at names a file of the case.
func (e *env) at(name string) remotefs.At { return remotefs.AtPath(name, e.dir) }

// file stores content in a file of the case.
func (e *env) file(name, content string) {
	e.Helper()
	e.must(e.World.Write(e.path(name), []byte(content)))
}

func (e *env) mkdir(name string) {
	e.Helper()
	e.must(e.World.Mkdir(e.path(name)))
}

// link makes name a link to a name of the case, or to an absolute path.
func (e *env) link(to, name string) {
	e.Helper()
	e.must(e.World.Symlink(to, e.path(name)))
}

func (e *env) chmod(name string, mode int) {
	e.Helper()
	e.must(e.World.Chmod(e.path(name), mode))
}

// lstat looks at a file of the case; nil = absent.
func (e *env) lstat(name string) *Entry {
	e.Helper()
	entry, err := e.World.Lstat(e.path(name))
	e.must(err)
	return entry
}

// holds compares the bytes of a file.
func (e *env) holds(name, want string) {
	e.Helper()
	got, err := e.World.Read(e.path(name))
	if err != nil || string(got) != want {
		e.Errorf("%s holds %s, %v; want %s", name, short(string(got)), err, short(want))
	}
}

// mode compares the permission bits of a file.
func (e *env) mode(name string, want int) {
	e.Helper()
	if entry := e.lstat(name); entry == nil || entry.Mode != want {
		e.Errorf("%s is %+v, want mode %04o", name, entry, want)
	}
}

// newMode is the mode of a new file.
func (e *env) newMode() int {
	mask, err := e.World.Umask()
	e.must(err)
	return 0o666 &^ mask
}

// kind compares the type of an entry.
func (e *env) kind(name string, want Kind) {
	e.Helper()
	if entry := e.lstat(name); entry == nil || entry.Kind != want {
		e.Errorf("%s is %+v, want kind %d", name, entry, want)
	}
}

// gone holds that nothing has a name.
func (e *env) gone(names ...string) {
	e.Helper()
	for _, name := range names {
		if entry := e.lstat(name); entry != nil {
			e.Errorf("%s is there: %+v", name, entry)
		}
	}
}

// clean holds that no staging is left below the case's directory (case 167).
func (e *env) clean() {
	e.Helper()
	tree, err := e.World.Tree(e.dir)
	e.must(err)
	for _, name := range tree {
		if strings.Contains(name, ".afield-") {
			e.Errorf("staging is left: %s", name)
		}
	}
}

// fails holds that err has one of the codes.
func (e *env) fails(err error, codes ...fault.Code) {
	e.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || !slices.Contains(codes, f.Code) {
		e.Errorf("error %v (%q), want %v", err, fault.CodeOf(err), codes)
		return
	}
	if f.Message == "" || f.Op == "" {
		e.Errorf("the error does not say what was tried: %+v", f)
	}
}

// says holds that an error's message holds a text.
func (e *env) says(err error, text string) {
	e.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		e.Errorf("error %v, want one that says %q", err, text)
	}
}

// refused runs a change that fails with one of the codes and leaves the named
// file as it was, and no staging.
func (e *env) refused(name string, change func() error, codes ...fault.Code) error {
	e.Helper()
	before, content := e.look(name)
	err := change()
	e.fails(err, codes...)
	after, still := e.look(name)
	if before != after || content != still {
		e.Errorf("%s was %+v with %s and is %+v with %s", name, before, short(content), after, short(still))
	}
	e.clean()
	return err
}

// look gives what can be compared of an entry.
func (e *env) look(name string) (Entry, string) {
	e.Helper()
	entry := e.lstat(name)
	if entry == nil {
		return Entry{Kind: -1}, ""
	}
	if entry.Kind != Regular {
		return *entry, ""
	}
	content, err := e.World.Read(e.path(name))
	if err != nil {
		content = nil // may not be read by this user either
	}
	return *entry, string(content)
}

// version gives the version of a file that is there.
func (e *env) version(name string) string {
	e.Helper()
	_, info, err := e.Files.Stat(e.ctx, e.at(name))
	if err != nil || info == nil || info.Version == "" {
		e.Fatalf("stat %s: %+v, %v", name, info, err)
	}
	return info.Version
}

// fresh holds that a version is that of a stat made now (case 172).
func (e *env) fresh(t remotefs.Target, version string) {
	e.Helper()
	_, info, err := e.Files.Stat(e.ctx, remotefs.AtTarget(t))
	if err != nil || info == nil || info.Version != version {
		e.Errorf("the outcome has version %q, a stat right after gives %+v, %v", version, info, err)
	}
}

// want describes a write.
func want(content string) remotefs.WriteRequest {
	return remotefs.WriteRequest{Content: strings.NewReader(content), Size: int64(len(content)), Mode: -1,
		BasisMax: remotefs.DefaultBasisMax}
}

// guarded adds a guard to a write: a version, or "" for "only where nothing is".
func guarded(w remotefs.WriteRequest, version string) remotefs.WriteRequest {
	w.Intent, w.Version = remotefs.IntentReplace, version
	if version == "" {
		w.Intent = remotefs.IntentCreate
	}
	return w
}

// write writes and holds what is true of every write that succeeds.
func (e *env) write(at remotefs.At, w remotefs.WriteRequest) remotefs.WriteOutcome {
	e.Helper()
	out, err := e.Files.WriteText(e.ctx, at, w)
	if err != nil {
		e.Fatalf("write: %v", err)
	}
	e.fresh(out.Target, out.Version)
	e.clean()
	return out
}

// put is a write that is expected to fail.
func (e *env) put(name string, w remotefs.WriteRequest) func() error {
	return func() error {
		_, err := e.Files.WriteText(e.ctx, e.at(name), w)
		return err
	}
}

// edit edits and holds what is true of every edit that succeeds.
func (e *env) edit(name, old, fresh, guard string) remotefs.EditOutcome {
	e.Helper()
	out, err := e.Files.EditText(e.ctx, e.at(name), change(old, fresh, guard))
	if err != nil {
		e.Fatalf("edit: %v", err)
	}
	e.fresh(out.Target, out.Version)
	e.clean()
	return out
}

// change describes an edit.
func change(old, fresh, guard string) remotefs.EditRequest {
	return remotefs.EditRequest{Edits: []remotefs.Edit{{Old: old, New: fresh}}, Version: guard,
		BasisMax: remotefs.DefaultBasisMax}
}

// alter is an edit that is expected to fail.
func (e *env) alter(name, old, fresh, guard string) func() error {
	return func() error {
		_, err := e.Files.EditText(e.ctx, e.at(name), change(old, fresh, guard))
		return err
	}
}

// resolve resolves a path of the case.
func (e *env) resolve(name string) remotefs.Target {
	e.Helper()
	t, err := e.Files.Resolve(e.ctx, name, e.dir)
	if err != nil {
		e.Fatalf("resolve %q: %v", name, err)
	}
	return t
}

// same compares two values.
func same[V comparable](e *env, what string, got, want V) {
	e.Helper()
	if got != want {
		e.Errorf("%s: got %s, want %s", what, short(fmt.Sprint(got)), short(fmt.Sprint(want)))
	}
}

// text compares an optional text; want "<nil>" is none.
func (e *env) text(what string, got *string, want string) {
	e.Helper()
	if got == nil {
		same(e, what, "<nil>", want)
		return
	}
	same(e, what, *got, want)
}

// short keeps a message readable.
func short(s string) string {
	if len(s) > 120 {
		return fmt.Sprintf("%q… (%d bytes)", s[:120], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// cancelled gives a context that has ended.
func (e *env) cancelled() context.Context {
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	return ctx
}

// big is more content than is checked before any I/O and read ahead.
const big = 2 << 20

// late gives content whose end comes only after act was called: what act does
// happens after the guard was looked at and before anything is published. A
// failure of act fails the write.
func late(act func() error) remotefs.WriteRequest {
	body := bytes.NewReader(bytes.Repeat([]byte("n"), big))
	return remotefs.WriteRequest{Content: io.MultiReader(body, &actor{act}), Size: big, Mode: -1}
}

// actor is an empty reader that does something first.
type actor struct{ act func() error }

func (a *actor) Read([]byte) (int, error) {
	if act := a.act; act != nil {
		a.act = nil
		if err := act(); err != nil {
			return 0, err
		}
	}
	return 0, io.EOF
}
