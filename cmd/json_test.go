package cmd

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const targetFields = "target target.displayPath target.key target.processPath target.url "

// jsonCommands states the fields of each command a second time, by hand: they
// are added, never renamed or removed, and an absent fact is null and not
// missing (design.md 2).
var jsonCommands = []struct {
	args   string
	stdin  string
	status int
	fields string
}{
	{args: "fs read a.txt", fields: targetFields + "bom bytes text version"},
	{args: "fs read --bytes --max-bytes 99 a.txt", fields: targetFields + "base64 bytes version"},
	{args: "fs view a.txt", fields: targetFields +
		"bom capped lines lines[].number lines[].text nextOffset offset text totalLines version"},
	{args: "fs write w.txt", stdin: "x", fields: targetFields + "bytes diff operation version"},
	{args: "fs write w.txt --basis", stdin: "y", fields: targetFields + "after before bytes diff operation version"},
	{args: "fs write w.txt --diff", stdin: "z", fields: targetFields +
		"bytes diff diff[].newText diff[].oldText diff[].path operation version"},
	{args: "fs edit e.txt --old one --new 1", fields: targetFields + "bytes diff operation replacements version"},
	{args: "fs edit e.txt --old two --new 2 --basis --diff", fields: targetFields +
		"after before bytes diff diff[].newText diff[].oldText diff[].path operation replacements version"},
	{args: "fs stat a.txt", fields: targetFields + "group linkTarget mode mtime owner size type version"},
	{args: "fs lstat a.txt", fields: targetFields + "group linkTarget mode mtime owner size type version"},
	{args: "fs stat nosuch", status: 3, fields: ""},
	{args: "fs ls", fields: targetFields + "entries entries[].name entries[].nameBase64 entries[].size " +
		"entries[].target entries[].target.displayPath entries[].target.key entries[].target.processPath " +
		"entries[].target.url entries[].type entries[].version"},
	{args: "fs mkdir made", fields: targetFields + "created"},
	{args: "fs touch made/f", fields: targetFields + "created"},
	{args: "fs ln -s f made/l", fields: targetFields + "linkTarget"},
	{args: "fs chmod 0644 made/f", fields: targetFields + "mode"},
	{args: "fs cp -r made copied", fields: movedFields},
	{args: "fs mv copied moved", fields: movedFields},
	{args: "fs du made", fields: targetFields + "bytes directories files links others unreadable"},
	{args: "fs tree made", fields: targetFields + "entries entries[].linkTarget entries[].mode entries[].mtime " +
		"entries[].path entries[].pathBase64 entries[].size entries[].type unreadable"},
	{args: "fs rm -r moved", fields: targetFields + "bytes dryRun entries type"},
	{args: "fs push a.txt a.txt", fields: "bytes deleted dryRun retried sent skipped type unchanged"},
	{args: "fs pull a.txt a.txt", fields: "bytes deleted dryRun retried sent skipped type unchanged"},
	{args: "fs patch - --diff", stdin: `[{"path":"p.txt","content":"x"}]`, fields: "dryRun files files[].bytes files[].diff " +
		"files[].diff[].newText files[].diff[].oldText files[].diff[].path files[].operation files[].target " +
		"files[].target.displayPath files[].target.key files[].target.processPath files[].target.url files[].version"},
	{args: "fs write u.txt --content x --set fs.undo=true", fields: targetFields + "bytes diff operation version"},
	{args: "fs undo --list", fields: "[].from [].id [].kept [].op [].path [].time [].undone"},
	{args: "fs glob *.txt", fields: "fallback paths paths[].path paths[].pathBase64 savedPath shown total"},
	{args: "fs grep no-line-like-this", fields: "fallback shown total type"},
	{args: "fs resolve a.txt", fields: "displayPath key processPath url"},
	{args: "fs path a.txt", fields: "path"},
	{args: "fs url a.txt", fields: "url"},
	{args: "fs contains . a.txt", fields: "contains"},
	{args: "keeper list", fields: ""},
	{args: "keeper status", status: 3, fields: ""},
	{args: "keeper stop", fields: "stopped"},
	{args: "mount read a.txt --session j", fields: "change file file.net file.overhead file.saved " +
		"freshness freshness.contextUsed freshness.contextWindow freshness.safe freshness.segments " +
		"freshness.segments[].end freshness.segments[].expired freshness.segments[].level freshness.segments[].pinned " +
		"freshness.segments[].position freshness.segments[].score freshness.segments[].seq freshness.segments[].start " +
		"freshness.segments[].tokens freshness.threshold freshness.worst hash identity kind lines lines[].number " +
		"lines[].text marker mounted mounted[].end mounted[].start nextOffset path reason sent sent[].end sent[].start " +
		"seq session text tokens tokens.overhead tokens.resent tokens.saved tokens.window total total.net " +
		"total.overhead total.saved totalLines truncated valve valve.count valve.limit window window.end window.start"},
	{args: "mount wrote a.txt --session j --content a.txt", fields: "kind mounted mounted[].end mounted[].start reason seq totalLines"},
	{args: "mount edited a.txt --session j", fields: "kind seq"},
	{args: "mount status --session j --check", fields: "contextUsed contextWindow files files[].changed " +
		"files[].coveragePercent files[].hash files[].identity files[].lastKind files[].mountedLines files[].netTokens " +
		"files[].overheadTokens files[].path files[].ranges files[].ranges[].end files[].ranges[].start " +
		"files[].savedTokens files[].segments files[].segments[].end files[].segments[].expired files[].segments[].level " +
		"files[].segments[].pinned files[].segments[].position files[].segments[].score files[].segments[].seq " +
		"files[].segments[].start files[].segments[].tokens files[].stale files[].totalLines files[].worst " +
		"seq session threshold totals totals.cny totals.netTokens totals.overheadTokens totals.savedTokens"},
	{args: "mount context --session j", fields: "contextUsed contextWindow seq"},
	{args: "mount compact --session j --through 0", fields: "droppedFiles droppedSegments seq"},
	{args: "mount rewind --session j --to 1", fields: "droppedFiles droppedSegments seq"},
	{args: "mount fork --session j --to k", fields: "from seq to"},
	{args: "mount forget --session j a.txt", fields: "count forgotten seq"},
	{args: "mount stats", fields: "netTokens savedTokens sessions spentTokens"},
	{args: "mount gc", fields: "kept removed"},
	{args: "exec -- true", fields: execFields},
	{args: "exec -- /nosuch", status: 127, fields: execFields + " " + errorFields},
	{args: "which sh", fields: "path"},
	{args: "version", fields: "arch commit go os protocol version"},
}

const (
	movedFields  = targetFields + "dryRun from from.displayPath from.key from.processPath from.url replaced type"
	streamFields = "base64 bytes incomplete spillPath spillWorld text truncated"
	errorFields  = "error.backend error.code error.exit error.hint error.message error.op error.path error.retryable"
)

var execFields = "durationMs envDropped error exitCode pid signal started stderr " + prefixed("stderr.", streamFields) +
	" stdout " + prefixed("stdout.", streamFields) + " survivors timedOut"

func prefixed(prefix, fields string) string {
	return prefix + strings.ReplaceAll(fields, " ", " "+prefix)
}

func TestJSONFields(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "one\ntwo\n", "e.txt": "one\ntwo\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range jsonCommands {
		t.Run(tt.args, func(t *testing.T) {
			out := runJSON(t, dir, tt.args, tt.stdin, tt.status)
			want := strings.Fields(tt.fields)
			slices.Sort(want)
			if d := cmp.Diff(want, fieldsOf(t, out)); d != "" {
				t.Errorf("fields differ (-want +got):\n%s\n%s", d, out)
			}
		})
	}
}

// runJSON runs the plain binary and gives its stdout.
func runJSON(t *testing.T, dir, args, stdin string, status int) []byte {
	t.Helper()
	words := strings.Fields(args)
	end := slices.Index(words, "--")
	if end < 0 {
		end = len(words)
	}
	c := exec.Command(filepath.Join(binaryDir(t), "afield"), slices.Insert(words, end, "--json")...)
	c.Dir, c.Stdin = dir, strings.NewReader(stdin)
	c.Env = append(os.Environ(), "AFIELD_STATE_DIR="+filepath.Join(dir, ".state"))
	out, err := c.Output()
	if got := c.ProcessState.ExitCode(); got != status {
		t.Fatalf("status %d, want %d (%v)", got, status, err)
	}
	return out
}

// fieldsOf gives the sorted paths of all fields of one JSON document.
func fieldsOf(t *testing.T, out []byte) []string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(out))
	var doc any
	if err := dec.Decode(&doc); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if dec.More() {
		t.Fatalf("more than one document: %s", out)
	}
	seen := map[string]bool{}
	collectFields(doc, "", seen)
	paths := []string{}
	for path := range seen {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

func collectFields(v any, path string, seen map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			at := strings.TrimPrefix(path+"."+name, ".")
			seen[at] = true
			collectFields(value, at, seen)
		}
	case []any:
		for _, value := range v {
			collectFields(value, path+"[]", seen)
		}
	}
}
