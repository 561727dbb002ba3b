package search

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// Arguments are ripgrep's own, each value one of them (case 295, 296, 297).
func TestArguments(t *testing.T) {
	want := []string{"--no-config", "--files", "--glob=**/*.ts", "--no-ignore", "--hidden", "--null",
		"--glob=!**/.git", "--glob=!**/.git/**", "--glob=!**/.svn", "--glob=!**/.svn/**", "--glob=!**/.hg", "--glob=!**/.hg/**",
		"--glob=!**/.bzr", "--glob=!**/.bzr/**", "--glob=!**/.jj", "--glob=!**/.jj/**", "--glob=!**/.sl", "--glob=!**/.sl/**"}
	if d := cmp.Diff(want, globArgs(GlobRequest{Pattern: "**/*.ts"})); d != "" {
		t.Error(d)
	}
	got := grepArgs(GrepRequest{Pattern: "x", Include: "*.{ts,tsx}", Path: "-leading-dash"})
	if d := cmp.Diff([]string{"--no-config", "--json", "--regexp=x", "--glob=*.{ts,tsx}", "--", "-leading-dash"}, got); d != "" {
		t.Error(d)
	}
	for _, p := range []string{"$(rm -rf /)", "`id`", `"'`, "a\nb", "--flag"} {
		if got := grepArgs(GrepRequest{Pattern: p})[2]; got != "--regexp="+p {
			t.Errorf("%q", got)
		}
	}
}

// Status and messages decide the code (case 299, 300).
func TestVerdict(t *testing.T) {
	report := func(code int, signal string, cut bool) remoteexec.Report {
		r := remoteexec.Report{Outcome: remoteexec.Outcome{ExitCode: code, Signal: signal}}
		r.Stdout.Truncated = cut
		return r
	}
	for _, tt := range []struct {
		r    remoteexec.Report
		text string
		want fault.Code
	}{
		{report(0, "", false), "", ""},
		{report(1, "", false), "", ""},
		{report(2, "", false), "regex parse error: x", fault.SearchInvalidPattern},
		{report(2, "", false), "error parsing glob 'x'", fault.SearchInvalidPattern},
		{report(2, "", false), "permission denied", fault.SearchFailed},
		{report(0, "SIGKILL", false), "", fault.SearchFailed},
		{report(0, "", true), "", fault.SearchRawOutputOverflow},
	} {
		if got := fault.CodeOf(verdict("grep", tt.r, tt.text)); got != tt.want {
			t.Errorf("%+v %q: %s, want %s", tt.r.Outcome, tt.text, got, tt.want)
		}
	}
}

// Include patterns (case 301), previews (302, 303), shown paths (305).
func TestWords(t *testing.T) {
	for include, ok := range map[string]bool{"!*.ts": false, "*.a,*.b": false, "*.{a,b}": true, "": true} {
		if err := (GrepRequest{Pattern: "x", Include: include}).Check(); (err == nil) != ok {
			t.Errorf("%q: %v", include, err)
		}
	}
	for _, tt := range []struct {
		line string
		max  int64
		want string
	}{{"€€€", 4, "€ (line truncated)"}, {"€€€", 9, "€€€"}, {"a\xff", 9, "(line is not valid UTF-8)"}, {"abc", 2, "ab (line truncated)"}} {
		if got, _ := Preview([]byte(tt.line), tt.max); got != tt.want {
			t.Errorf("%q %d: %q", tt.line, tt.max, got)
		}
	}
	for p, want := range map[string]string{"/w/a": "a", "/w": ".", "/x/a": "/x/a", "/ww/a": "/ww/a", "/w/..a": "..a", "./b": "b"} {
		if got := Display("/w", p); got != want {
			t.Errorf("%q: %q, want %q", p, got, want)
		}
	}
}

// Over the cap the first are shown, or one of each top-level entry in turns
// (case 304).
func TestSample(t *testing.T) {
	paths := []string{"a/1", "a/2", "a/3", "b/1", "c"}
	if got := Sample(paths, 3, false); !slices.Equal(got, []string{"a/1", "a/2", "a/3"}) {
		t.Error(got)
	}
	if got := Sample(paths, 4, true); !slices.Equal(got, []string{"a/1", "a/2", "b/1", "c"}) {
		t.Error(got)
	}
	if got := Sample(paths, 5, true); len(got) != 5 {
		t.Error(got)
	}
}

// records that cannot be read fail, those of binary files are dropped.
func TestRecords(t *testing.T) {
	s := &Searcher{Cwd: "/w"}
	line := `{"type":"match","data":{"path":{"text":"/w/a"},"lines":{"text":"x\r\n"},"line_number":1,"absolute_offset":0,"submatches":[{"match":{"text":"x"},"start":0,"end":1}]}}` + "\n"
	m, err := s.parseRecords([]byte(line))
	if err != nil || len(m) != 1 || m[0].Path != "a" || string(m[0].Text) != "x" {
		t.Errorf("%+v %v", m, err)
	}
	begin, end := `{"type":"begin","data":{}}`+"\n", `{"type":"end","data":{"binary_offset":3}}`+"\n"
	if m, err = s.parseRecords([]byte(begin + line + end)); err != nil || len(m) != 0 {
		t.Errorf("binary: %+v %v", m, err)
	}
	for _, bad := range []string{"{", `{"type":"match","data":{"lines":{"text":"x"},"line_number":1}}`,
		`{"type":"match","data":{"path":{"text":"a"},"lines":{"text":"x"}}}`} {
		if _, err := s.parseRecords([]byte(bad)); !fault.Is(err, fault.SearchFailed) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
