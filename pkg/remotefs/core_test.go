package remotefs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/afield-dev/afield/pkg/fault"
)

var ctx = context.Background()

func wantCode(t *testing.T, err error, code fault.Code) *fault.Error {
	t.Helper()
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("error %v (%s), want %s", err, fault.CodeOf(err), code)
	}
	return e
}

func calls(t *testing.T, d *double, want string) {
	t.Helper()
	if got := strings.Join(d.calls, " "); got != want {
		t.Errorf("calls: %q, want %q", got, want)
	}
	d.calls = nil
}

func text(content string) WriteRequest {
	return WriteRequest{Content: strings.NewReader(content), Size: int64(len(content)), Mode: -1}
}

func one(old, fresh string) EditRequest { return EditRequest{Edits: []Edit{{Old: old, New: fresh}}} }

// What can be told without the backend sends it nothing (cases 1 to 4, 28, 57,
// 126, 173, 232 to 234).
func TestNothingIsSentInVain(t *testing.T) {
	d := &double{pieces: []string{"x"}, size: -1, version: "v1"}
	f := New(doubleWriter{d}, Options{})
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for _, p := range []string{"", "   ", "\t\r\n", "\uFEFF", "a\x00b"} {
		_, err := f.Resolve(ctx, p, "")
		wantCode(t, err, fault.FSNotFound)
		_, _, err = f.Lstat(ctx, p, "")
		wantCode(t, err, fault.FSNotFound)
		_, err = f.ReadText(ctx, AtPath(p, ""))
		wantCode(t, err, fault.FSNotFound)
		_, err = f.WriteText(ctx, AtPath(p, ""), text("x"))
		wantCode(t, err, fault.FSNotFound)
	}
	_, err := f.Resolve(ctx, "a", "c\x00wd")
	wantCode(t, err, fault.FSNotFound)
	_, err = f.ReadBytes(ctx, AtPath("a", ""), -1)
	wantCode(t, err, fault.Usage)
	_, err = f.WriteText(ctx, AtPath("a", ""), text("a\xFF"))
	wantCode(t, err, fault.FSNotText)
	_, err = f.EditText(ctx, AtPath("a", ""), EditRequest{})
	wantCode(t, err, fault.Usage)
	for _, err := range []error{
		second(f.Resolve(ended, "a", "")), third(f.Stat(ended, AtPath("a", ""))), third(f.Lstat(ended, "a", "")),
		third(f.ListDir(ended, AtPath("a", ""))), second(f.ReadText(ended, AtPath("a", ""))),
		second(f.ReadBytes(ended, AtPath("a", ""), 1)), second(f.WriteText(ended, AtPath("a", ""), text("x"))),
		second(f.EditText(ended, AtPath("a", ""), one("x", "y"))),
	} {
		wantCode(t, err, fault.FSAborted)
	}
	calls(t, d, "")
}

func second[A any](_ A, err error) error        { return err }
func third[A, B any](_ A, _ B, err error) error { return err }

// Each primitive by path is one call of the driver, an edit two, and a guard adds
// none (design.md 3: no layer may add a round trip).
func TestRoundTripsOfADriverThatWrites(t *testing.T) {
	d := &double{pieces: []string{"old"}, size: -1, version: "v1"}
	f := New(doubleWriter{d}, Options{})
	must := func(err error, want string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		calls(t, d, want)
	}
	must(second(f.Resolve(ctx, "a", "")), "canon")
	must(third(f.Stat(ctx, AtPath("a", ""))), "stat")
	must(third(f.Lstat(ctx, "a", "")), "lstat")
	must(third(f.ListDir(ctx, AtPath("a", ""))), "list")
	must(second(f.ReadText(ctx, AtPath("a", ""))), "open")
	must(second(f.ReadBytes(ctx, AtPath("a", ""), 10)), "open")
	must(second(f.WriteText(ctx, AtPath("a", ""), text("new"))), "write")
	w := text("new")
	w.Intent, w.Version, w.BasisMax = IntentReplace, "v1", 100
	must(second(f.WriteText(ctx, AtPath("a", ""), w)), "write")
	must(second(f.EditText(ctx, AtPath("a", ""), one("old", "new"))), "open write")
	guarded := one("old", "new")
	guarded.Version = "v1"
	must(second(f.EditText(ctx, AtTarget(Target{Key: "/w/a", Display: "a"}), guarded)), "open write")
	if last := d.writes[len(d.writes)-1]; last.Intent != IntentReplace || last.Version != "v1" || last.Size != 3 {
		t.Errorf("the edit was written as %+v", last)
	}
	d.missing = true
	wantCode(t, second(f.EditText(ctx, AtPath("a", ""), one("old", "new"))), fault.FSStaleVersion)
	calls(t, d, "open")
}

// An unguarded edit that was overtaken before it had its lock reads again; one
// with a guard does not.
func TestAnOvertakenEditReadsAgain(t *testing.T) {
	d := &double{pieces: []string{"one two"}, size: -1, version: "v1"}
	d.write = func(w WriteSpec, content string) (WriteResult, error) {
		if w.Version == "v1" {
			d.pieces, d.version = []string{"one 2"}, "v2"
			return WriteResult{}, &fault.Error{Code: fault.FSStaleVersion}
		}
		return WriteResult{Version: "v3", Bytes: int64(len(content))}, nil
	}
	f := New(doubleWriter{d}, Options{})
	e := one("one", "1")
	e.BasisMax = 100
	out, err := f.EditText(ctx, AtPath("a", ""), e)
	if err != nil || *out.After != "1 2" || out.Version != "v3" {
		t.Fatalf("%+v, %v", out, err)
	}
	calls(t, d, "open write open write")
	d.version, e.Version = "v1", "v1"
	wantCode(t, second(f.EditText(ctx, AtPath("a", ""), e)), fault.FSStaleVersion)
	calls(t, d, "open write")
}

// A commit whose outcome is unknown is reported as that, is not tried again, and
// is no mere cancellation (case 187, S-13).
func TestUnknownOutcome(t *testing.T) {
	d := &double{version: "v1"}
	during, cancel := context.WithCancel(ctx)
	d.write = func(WriteSpec, string) (WriteResult, error) {
		cancel()
		return WriteResult{}, &fault.Error{Code: fault.FSIOError, Retry: fault.RetryUnknown,
			Message: "the connection was lost; the commit state is unknown"}
	}
	f := New(doubleWriter{d}, Options{})
	e := wantCode(t, second(f.WriteText(during, AtPath("a", ""), text("x"))), fault.FSIOError)
	if e.Retry != fault.RetryUnknown || !strings.Contains(e.Message, "unknown") || e.Path != "/w/a" {
		t.Errorf("%+v", e)
	}
	calls(t, d, "write")
}

// The error of content passes through a driver as it is.
func TestContentThatBreaksOff(t *testing.T) {
	d := &double{version: "v1"}
	f := New(doubleWriter{d}, Options{})
	broken := errors.New("broken pipe on the host")
	for _, n := range []int{10, checkFirst + 10, 3 * checkFirst} {
		w := WriteRequest{Content: io.MultiReader(strings.NewReader(strings.Repeat("a", n)), failing{broken}), Size: -1, Mode: -1}
		_, err := f.WriteText(ctx, AtPath("a", ""), w)
		wantCode(t, err, fault.FSIOError)
		if !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// A driver that can do neither kind of change is a world to read.
func TestAWorldToRead(t *testing.T) {
	f := New(&double{version: "v1"}, Options{})
	wantCode(t, second(f.WriteText(ctx, AtPath("a", ""), text("x"))), fault.BackendUnsupported)
	wantCode(t, second(f.EditText(ctx, AtPath("a", ""), one("a", "b"))), fault.BackendUnsupported)
}

func TestErrorsOfADriverGetCodeAndWords(t *testing.T) { // remotefs.md 11
	for _, c := range []struct {
		err  error
		code fault.Code
		says string
	}{
		{syscall.ENOENT, fault.FSNotFound, `cannot read "a": not found`},
		{fs.ErrNotExist, fault.FSNotFound, `cannot read "a": not found`},
		{syscall.ENOTDIR, fault.FSNotFound, `cannot read "a": a parent path segment is not a directory`},
		{syscall.EACCES, fault.FSPermissionDenied, `cannot read "a": permission denied`},
		{syscall.EPERM, fault.FSPermissionDenied, `cannot read "a": permission denied`},
		{syscall.ELOOP, fault.FSIOError, `cannot read "a": ` + syscall.ELOOP.Error()},
		{syscall.ENAMETOOLONG, fault.FSIOError, `cannot read "a": ` + syscall.ENAMETOOLONG.Error()},
		{&fs.PathError{Op: "open", Path: "/secret/key", Err: syscall.EIO}, fault.FSIOError, `cannot read "a": input/output error`},
		{&fault.Error{Code: fault.FSNotRegularFile}, fault.FSNotRegularFile, `cannot read "a": not a regular file`},
		{&fault.Error{Code: fault.FSNotDirectory}, fault.FSNotDirectory, `cannot read "a": not a directory`},
		{&fault.Error{Code: fault.FSStaleVersion}, fault.FSStaleVersion, `cannot read "a": file changed since it was read`},
		{&fault.Error{Code: fault.FSStaleVersion, Err: fs.ErrNotExist}, fault.FSStaleVersion, `cannot read "a": file no longer exists`},
		{&fault.Error{Code: fault.FSNotObserved}, fault.FSNotObserved, `cannot overwrite existing "a" without reading it first`},
		{&fault.Error{Code: fault.BackendUnreachable, Message: "said already"}, fault.BackendUnreachable, "said already"},
	} {
		e := wantCode(t, mapError(c.err, "read", "a"), c.code)
		if e.Message != c.says || e.Op != "read" || e.Path != "a" {
			t.Errorf("%v: %+v", c.err, e)
		}
	}
	if e := wantCode(t, mapChange(syscall.ENOENT, "write", "a"), fault.FSIOError); !errors.Is(e, syscall.ENOENT) {
		t.Errorf("%+v", e)
	}
}

// A refused write ends the reading of content that goes on, and one that is
// cancelled while its content blocks ends at once.
func TestContentIsLeftAlone(t *testing.T) {
	d := &double{version: "v1", write: func(WriteSpec, string) (WriteResult, error) { return WriteResult{}, nil }}
	f := New(doubleWriter{d}, Options{})
	w := WriteRequest{Content: endless{}, Size: checkFirst, Mode: -1}
	wantCode(t, second(f.WriteText(ctx, AtPath("a", ""), w)), fault.FSIOError)
	r, feed := io.Pipe()
	blocked, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := f.WriteText(blocked, AtPath("a", ""), WriteRequest{Content: r, Size: -1, Mode: -1})
		ended <- err
	}()
	if _, err := feed.Write([]byte("some")); err != nil {
		t.Fatal(err)
	}
	cancel()
	wantCode(t, <-ended, fault.FSAborted)
	feed.Close() // the read under way ends with its source
}

// endless gives letters without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}
