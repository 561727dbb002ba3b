package cmd

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	startedFields = "backend id kind name pid startedAt"
	infoFields    = startedFields + " argv exitCode offset problem signal state"
	partFields    = "base64 from lossy nextOffset text"
	exitFields    = " exit exit.exitCode exit.signal"
)

// The fields of what is held are stated a second time, by hand (design.md 2).
func TestHeldJSONFields(t *testing.T) {
	t.Parallel()
	h := newKept(t, t.TempDir())
	h.setProfile("version: 1\nbackend: local\n")
	list := prefixed("[].", infoFields)
	for _, tt := range []struct {
		args, fields string
		status       int
	}{
		{"term open -- cat", startedFields, 0},
		{"term open --shell-session --grace 100ms", startedFields, 0},
		{"term write pty-1 x", "bytes id", 0},
		{"term wait-for pty-1 --pattern x", "from groups id match nextOffset", 0},
		{"term read pty-1", "id exit " + partFields, 0},
		{"term inspect pty-1", "inputWaiting processGroupId", 0},
		{"term screen pty-1", "alternate cols cursor cursor.col cursor.row cursor.visible id lines lossy rows title", 0},
		{"term signal pty-1 SIGKILL", errorFields, 3},
		{"term run pty-2 -- true", "exitCode id output reset signal timedOut truncated", 0},
		{"term list", list, 0},
		{"job start -- sh -c exit", startedFields, 0},
		{"job wait job-3", infoFields, 0},
		{"job read job-3", "id" + exitFields + " " + partFields, 0},
		{"job read job-3 --stream both", "id" + exitFields + " stdout stderr " + prefixed("stdout.", partFields) + " " + prefixed("stderr.", partFields), 0},
		{"job list", list, 0},
		{"job stop job-3", "stopped", 0},
		{"keeper list", prefixed("[].", "backend callers connected held id idleMs log pid socket startedAt state version"), 0},
		{"keeper status", "backend callers connected held id idleMs log pid socket startedAt state version", 0},
	} {
		words := strings.Fields(tt.args)
		end := slices.Index(words, "--")
		if end < 0 {
			end = len(words)
		}
		out, errs, status := h.run(slices.Insert(words, end, "--json")...)
		if status != tt.status {
			t.Fatalf("%s: status %d\n%s%s", tt.args, status, out, errs)
		}
		if status != 0 {
			out = errs
		}
		want := strings.Fields(tt.fields)
		if status != 0 {
			want = append(want, "error")
		}
		slices.Sort(want)
		if d := cmp.Diff(want, fieldsOf(t, []byte(out))); d != "" {
			t.Errorf("%s: fields differ (-want +got):\n%s\n%s", tt.args, d, out)
		}
	}
}
