package e2b_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend/e2b/e2btest"
	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// Quirk 15: a path through a file is an internal error of the daemon; to a
// caller nothing is there, while another internal error stays one.
func TestQuirkPathThroughAFile(t *testing.T) {
	t.Parallel()
	s := newService(t, e2btest.Options{})
	b := s.Start(time.Hour)
	w, dir := s.inSandbox(t, b)
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client(b).Stat(t.Context(), dir+"/f/x"); wire.CodeOf(err) != wire.CodeInternal {
		t.Errorf("the daemon says %v", err)
	}
	if _, info, err := w.Files().Stat(t.Context(), remotefs.AtPath("f/x", "")); info != nil || err != nil {
		t.Errorf("stat: %+v %v", info, err)
	}
	if _, info, err := w.Files().Lstat(t.Context(), "f/x", ""); info != nil || err != nil {
		t.Errorf("lstat: %+v %v", info, err)
	}
	if _, err := w.Files().ReadText(t.Context(), remotefs.AtPath("f/x", "")); !fault.Is(err, fault.FSNotDirectory) && !fault.Is(err, fault.FSNotFound) {
		t.Errorf("read: %v", err)
	}
	s.Rule(&e2btest.Rule{Method: "Stat", Status: 500, Text: `{"code":"internal","message":"input/output error"}`})
	if _, info, err := w.Files().Stat(t.Context(), remotefs.AtPath("g", "")); !fault.Is(err, fault.FSIOError) {
		t.Errorf("a failing disk: %+v %v", info, err)
	}
}

// Quirk 16: a look at a link gives size and time of the link and type and mode
// of what it leads to. Facts are never mixed: stat gives the target's, lstat the
// link's own with the text that it holds.
func TestQuirkFactsOfLinks(t *testing.T) {
	t.Parallel()
	s := newService(t, e2btest.Options{})
	b := s.Start(time.Hour)
	w, dir := s.inSandbox(t, b)
	if err := os.WriteFile(filepath.Join(dir, "target"), []byte("twelve bytes"), 0o640); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"link": "./target", "dangling": "no\nwhere", "loop": "loop"} {
		if err := os.Symlink(text, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		_, info, err := w.Files().Lstat(t.Context(), name, "")
		if err != nil || info.Type != remotefs.TypeSymlink || info.LinkTarget != text || info.Size != int64(len(text)) {
			t.Errorf("lstat %s: %+v %v", name, info, err)
		}
	}
	mixed, err := s.client(b).Stat(t.Context(), dir+"/link")
	if err != nil || mixed.Size != 8 || mixed.Mode != 0o640 || mixed.Type != wire.TypeFile {
		t.Errorf("the daemon gives %+v %v", mixed, err)
	}
	_, info, err := w.Files().Stat(t.Context(), remotefs.AtPath("link", ""))
	if err != nil || info.Size != 12 || info.Mode != 0o640 || info.Type != remotefs.TypeFile || info.LinkTarget != "" {
		t.Errorf("stat: %+v %v", info, err)
	}
	if _, info, err := w.Files().Stat(t.Context(), remotefs.AtPath("dangling", "")); info != nil || err != nil {
		t.Errorf("stat of a dangling link: %+v %v", info, err)
	}
}

// Quirk 20: removing what is not there succeeds, so nothing is concluded from
// it: cleaning up twice is no failure, and a refused write leaves nothing.
func TestQuirkRemovalOfTheAbsent(t *testing.T) {
	t.Parallel()
	s := newService(t, e2btest.Options{})
	b := s.Start(time.Hour)
	w, dir := s.inSandbox(t, b)
	if err := s.client(b).Call(t.Context(), wire.MethodRemove, wire.PathRequest{Path: dir + "/none"}, nil); err != nil {
		t.Errorf("the daemon says %v", err)
	}
	write := func(intent remotefs.Intent) error {
		_, err := w.Files().WriteText(t.Context(), remotefs.AtPath("f", ""), text("x", intent))
		return err
	}
	if err := write(remotefs.IntentNone); err != nil {
		t.Fatal(err)
	}
	// The staged file of a refused write is gone before we remove it.
	gone := 0
	s.Rule(&e2btest.Rule{Method: "Remove", Before: func() {
		found, _ := filepath.Glob(filepath.Join(b.Home, ".afield", "st", "*"))
		for _, f := range found {
			os.Remove(f)
			gone++
		}
	}})
	if err := write(remotefs.IntentCreate); !fault.Is(err, fault.FSNotObserved) {
		t.Errorf("error %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(b.Home, ".afield", "st", "*")); gone == 0 || len(left) != 0 {
		t.Errorf("%d removed before, left %v", gone, left)
	}
}
