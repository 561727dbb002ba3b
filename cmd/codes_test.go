package cmd

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/afield-dev/afield/pkg/fault"
)

// constants gives the codes of pkg/fault/codes.go by the name of the constant.
func constants(t *testing.T) map[string]fault.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../pkg/fault/codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]fault.Code{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for i, name := range spec.Names {
				codes[name.Name] = fault.Code(strings.Trim(spec.Values[i].(*ast.BasicLit).Value, `"`))
			}
		}
		return true
	})
	return codes
}

// Every code has a status and a manual line, each once and in order.
func TestEveryCodeHasAStatusAndAManualLine(t *testing.T) {
	codes := constants(t)
	documented := map[fault.Code]bool{}
	for _, d := range codeDocs() {
		if documented[d.code] {
			t.Errorf("%s has two manual lines", d.code)
		}
		documented[d.code] = true
	}
	for _, code := range codes {
		_, byCause := statusOfCause(fault.New(code, "", "", ""))
		if statusOf(code) == exitDefect && !byCause {
			t.Errorf("%s has no exit status", code)
		}
		if !documented[code] {
			t.Errorf("%s has no manual line", code)
		}
	}
	if len(documented) != len(codes) {
		t.Errorf("%d manual lines for %d codes", len(documented), len(codes))
	}
}

// reachable are the places whose codes a command on the local world can end
// with.
var reachable = []string{"../cmd", "../pkg/remotefs", "../pkg/remoteexec", "../pkg/backend/local", "../pkg/profile"}

// elsewhere are codes that no command on the local world ends with, and what
// proves them instead.
var elsewhere = map[fault.Code]string{
	fault.ExecTransportLost:      "there is no connection to lose: exectest, against a scripted double",
	fault.ExecTransportCorrupt:   "there is no framing: exectest, against a scripted double",
	fault.ExecOutputOverflow:     "a pipe makes the program wait: exectest, against a scripted double",
	fault.ExecDisposing:          "a command does not start programs while it ends: exectest",
	fault.ExecSpawnFailed:        "the kernel has no more processes: exectest",
	fault.ExecCleanupFailed:      "a process that KILL cannot end: exectest, against a scripted double",
	fault.ExecNoForeground:       "terminals that outlive a command: exectest",
	fault.ExecSignalNotDelivered: "terminals that outlive a command: exectest",
	fault.ExecSessionExited:      "terminals that outlive a command: exectest",
	fault.ExecSessionClosing:     "terminals that outlive a command: exectest",
	fault.BackendUnsupported:     "the local world can do all: exectest, against a scripted double",
	fault.BackendWorldGone:       "the local world stays: exectest, against a scripted double",
	fault.BackendProtocol:        "a far world that answers nonsense: the provider's cases",
	fault.PluginCrashed:          "a keeper that ends by itself: TestKeeperKilled; a plugin: the provider's cases",
	fault.BackendInternal:        "a defect of the far side: the provider's cases",
}

// Every code that can be reached now is what a script asserts.
func TestEveryReachableCodeHasAScript(t *testing.T) {
	scripts := scriptTexts(t)
	constants := constants(t)
	for _, name := range usedCodes(t) {
		code := constants[name]
		if code == "" || elsewhere[code] != "" {
			continue
		}
		if !strings.Contains(scripts, `[`+string(code)+`\]`) && !strings.Contains(scripts, `"code":"`+string(code)+`"`) {
			t.Errorf("%s (fault.%s) is in no script", code, name)
		}
	}
}

func scriptTexts(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	var all strings.Builder
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}

// usedCodes gives the names of the constants that the code of the reachable
// packages mentions, without the tables of statuses and manual lines, the suites
// of cases, the layer of background jobs, which no command reaches, and plugins,
// which have cases of their own.
func usedCodes(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, dir := range reachable {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !mayRaise(path) {
				return err
			}
			names = append(names, faultNames(t, path)...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func mayRaise(path string) bool {
	for _, part := range []string{"_test.go", "cmd/exit.go", "cmd/plugin", "cmd/man_codes.go", "cmd/man_errors.go", "/fstest/", "/exectest/", "/remoteexec/shell/"} {
		if strings.Contains(filepath.ToSlash(path), part) {
			return false
		}
	}
	return strings.HasSuffix(path, ".go")
}

func faultNames(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "fault" {
				names = append(names, sel.Sel.Name)
			}
		}
		return true
	})
	return names
}
