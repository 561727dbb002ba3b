package wire_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend/box/boxtest"
	"github.com/afield-dev/afield/pkg/backend/box/wire"
)

// Polls of a creation that fail are tolerated, except those that say that the
// key or the box is no good (upstash-box.md 3.4).
func TestReady(t *testing.T) {
	s := newStand(t, boxtest.Options{Polls: 3})
	b, err := s.Create(t.Context(), wire.CreateFields{Name: "n", Labels: []string{"afield"}})
	if err != nil || b.Status != wire.StateCreating {
		t.Fatal(b, err)
	}
	s.Fault(boxtest.Fault{Match: "GET /v2/box/" + b.ID, Times: 1, Status: 500})
	if b, err = s.Ready(t.Context(), b); err != nil || b.Status != wire.StateIdle {
		t.Fatal(b, err)
	}
	want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 2 * time.Second}
	if len(s.waits) != len(want) {
		t.Errorf("waited %v", s.waits)
	}
	for _, status := range []int{http.StatusUnauthorized, http.StatusNotFound} {
		s.Fault(boxtest.Fault{Match: "GET", Times: 1, Status: status})
		if _, err := s.Ready(t.Context(), wire.Box{ID: b.ID, Status: wire.StateCreating}); wire.StatusOf(err) != status {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestReadyEndsInErrorOrTime(t *testing.T) {
	s := newStand(t, boxtest.Options{})
	s.Fault(boxtest.Fault{Match: "creation fails"})
	b, err := s.Create(t.Context(), wire.CreateFields{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ready(t.Context(), b); !errors.Is(err, wire.ErrCreation) {
		t.Error(err)
	}
	s.ClearFaults()
	s.Fault(boxtest.Fault{Match: "creation hangs"})
	if b, err = s.Create(t.Context(), wire.CreateFields{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ready(t.Context(), b); !errors.Is(err, wire.ErrNotReady) {
		t.Error(err)
	}
}

// The three meanings of 404 can be told apart (upstash-box.md 0, 2).
func TestNotFoundHasThreeMeanings(t *testing.T) {
	s := newStand(t, boxtest.Options{})
	id := s.box()
	_, err := s.ReadRange(t.Context(), id, "/workspace/home/none", 0, 10)
	if state, serr := s.Status(t.Context(), id); wire.StatusOf(err) != 404 || serr != nil || state != wire.StateIdle {
		t.Errorf("missing path: %v, %q %v", err, state, serr)
	}
	if err := s.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	_, err = s.ReadRange(t.Context(), id, "/workspace/home/none", 0, 10)
	_, serr := s.Status(t.Context(), id)
	b, gerr := s.Get(t.Context(), id)
	if wire.StatusOf(err) != 404 || wire.StatusOf(serr) != 404 || gerr != nil || b.Status != wire.StateDeleted {
		t.Errorf("deleted box: %v, %v, %v %v", err, serr, b.Status, gerr)
	}
	if _, gerr = s.Get(t.Context(), "no-such-box"); wire.StatusOf(gerr) != 404 {
		t.Errorf("no such box: %v", gerr)
	}
}

func TestListAndSnapshots(t *testing.T) {
	s := newStand(t, boxtest.Options{})
	b, err := s.Create(t.Context(), wire.CreateFields{Labels: []string{"one"}, Env: map[string]string{"A": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.List(t.Context(), "one")
	if err != nil || len(list) != 1 || list[0].ID != b.ID {
		t.Errorf("%v %v", list, err)
	}
	s.Fault(boxtest.Fault{Match: "GET /v2/box?", Times: 1, Status: 200, Body: `{"boxes":[{"id":"x"}]}`})
	if list, err = s.List(t.Context(), "one"); err != nil || len(list) != 1 || list[0].ID != "x" {
		t.Errorf("%v %v", list, err)
	}
	if err := s.Write(t.Context(), b.ID, "/workspace/home/f", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	snap, err := s.Snapshot(t.Context(), b.ID, "saved")
	if err != nil || snap.Status != "ready" {
		t.Fatal(snap, err)
	}
	copied, err := s.Create(t.Context(), wire.CreateFields{SnapshotID: snap.ID, Ephemeral: true})
	if err != nil {
		t.Fatal(err)
	}
	content, err := s.ReadRange(t.Context(), copied.ID, "/workspace/home/f", 0, 100)
	if err != nil || string(content) != "kept" {
		t.Errorf("%q %v", content, err)
	}
	if all, err := s.Snapshots(t.Context(), ""); err != nil || len(all) != 1 {
		t.Errorf("%v %v", all, err)
	}
	if n, err := s.DeleteSnapshots(t.Context(), snap.ID); err != nil || n != 1 {
		t.Errorf("%d %v", n, err)
	}
	s.ClearJournal()
	if _, err := s.DeleteSnapshots(t.Context()); err == nil || len(s.Journal()) != 0 {
		t.Error("no id would mean all of them")
	}
}

// Content is exact whatever its bytes, and the limits are kept before anything
// is sent.
func TestFiles(t *testing.T) {
	s := newStand(t, boxtest.Options{})
	id := s.box()
	content := bytes.Repeat([]byte{0, 255, 10, 13, 0x80}, 1000)
	odd := "/workspace/home/a \"q\"\n é"
	err := s.Upload(t.Context(), id, []wire.UploadFile{{Path: "/workspace/home/u", Content: content}, {Path: odd, Content: []byte("odd")}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.ReadRange(t.Context(), id, "/workspace/home/u", 2, 3000); err != nil || !bytes.Equal(got, content[2:3002]) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if got, err := s.ReadRange(t.Context(), id, odd, 0, 10); err != nil || string(got) != "odd" {
		t.Errorf("%q, %v", got, err)
	}
	r, err := s.Download(t.Context(), id, "/workspace/home/u")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if r.Close(); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	s.ClearJournal()
	if _, err := s.ReadRange(t.Context(), id, "/x", 0, wire.MaxRange+1); err == nil {
		t.Error("a range above the limit is asked for")
	}
	if err := s.Upload(t.Context(), id, make([]wire.UploadFile, wire.MaxUploadFiles+1)); err == nil {
		t.Error("eleven files are sent")
	}
	if err := s.Upload(t.Context(), id, []wire.UploadFile{{Path: "/x", Content: make([]byte, wire.MaxUpload+1)}}); wire.StatusOf(err) != 413 {
		t.Error(err)
	}
	if n := len(s.Journal()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestFileTree(t *testing.T) {
	s := newStand(t, boxtest.Options{})
	id, dir := s.box(), "/workspace/home/d"
	if err := s.Mkdir(t.Context(), id, dir+"/e", true); err != nil {
		t.Fatal(err)
	}
	if list, err := s.ListFiles(t.Context(), id, dir+"/e"); err != nil || len(list) != 0 {
		t.Errorf("%v %v", list, err)
	}
	if err := s.Write(t.Context(), id, dir+"/f", []byte("123")); err != nil {
		t.Fatal(err)
	}
	if err := s.Rename(t.Context(), id, dir+"/f", dir+"/g"); err != nil {
		t.Fatal(err)
	}
	info, err := s.Stat(t.Context(), id, dir+"/g", true)
	if err != nil || info.Type != "file" || info.Size != 3 {
		t.Errorf("%+v %v", info, err)
	}
	if err := s.Remove(t.Context(), id, dir, false); err == nil {
		t.Error("a directory was removed without being asked for")
	}
	if err := s.Remove(t.Context(), id, dir, true); err != nil {
		t.Error(err)
	}
	if _, err := s.Stat(t.Context(), id, dir, false); wire.StatusOf(err) != 404 {
		t.Error(err)
	}
}
