package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/afield-dev/afield"

// listed is what the rules need to know of a package.
type listed struct {
	ImportPath string
	Doc        string
	Imports    []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Imports", "./...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		p.ImportPath = short(p.ImportPath)
		for i, imp := range p.Imports {
			p.Imports[i] = short(imp)
		}
		all = append(all, p)
	}
}

// short gives the path below the module, or the whole path of a foreign one.
func short(path string) string {
	if path == module {
		return "main"
	}
	return strings.TrimPrefix(path, module+"/")
}

// forbidden says what the packages below a path may not import, and why.
var forbidden = []struct{ from, imports, why string }{
	{"pkg/", "cmd", "the command line is a consumer of the packages"},
	{"pkg/", "github.com/spf13/", "flags are parsed in cmd"},
	{"pkg/", "github.com/mattn/go-isatty", "terminals are the business of cmd"},
	{"pkg/", "github.com/schollz/", "progress is drawn in cmd"},
	{"pkg/fault", "pkg/", "fault is the bottom"},
	{"pkg/remotefs", "pkg/backend", "the contract knows no backend"},
	{"pkg/remotefs", "pkg/remoteexec", "the contracts stand side by side"},
	{"pkg/remoteexec", "pkg/backend", "the contract knows no backend"},
	{"pkg/remoteexec", "pkg/remotefs", "the contracts stand side by side"},
	{"pkg/tree", "pkg/backend", "trees work on the contracts, whatever is behind them"},
	{"pkg/tree", "pkg/profile", "trees work on the contracts, whatever is behind them"},
	{"pkg/search", "pkg/backend", "searches work on the contracts, whatever is behind them"},
	{"pkg/search", "pkg/profile", "searches work on the contracts, whatever is behind them"},
	{"pkg/transfer", "pkg/backend", "transfers work on the contracts, whatever is behind them"},
	{"pkg/transfer", "pkg/profile", "transfers work on the contracts, whatever is behind them"},
	{"pkg/patch", "pkg/backend", "patches work on a remotefs.FS, whatever is behind it"},
	{"pkg/watch", "pkg/backend", "a watch works on an Arranger, whatever is behind it"},
	{"pkg/undo", "pkg/backend", "undo works on a remotefs.FS, whatever is behind it"},
	{"pkg/mount", "pkg/backend", "mount works on a remotefs.FS, whatever is behind it"},
	{"pkg/mount", "pkg/profile", "mount works on a remotefs.FS, whatever is behind it"},
	{"pkg/profile", "pkg/mount", "profiles know no command layer"},
	{"pkg/profile", "pkg/plugin", "plugins stand on profiles"},
	{"pkg/backend/", "pkg/profile", "a backend gets checked values"},
}

// Imports point one way: main, cmd, backend/all, a backend, the contracts,
// fault.
func TestImportDirection(t *testing.T) {
	for _, p := range packages(t) {
		for _, imp := range p.Imports {
			for _, rule := range forbidden {
				if strings.HasPrefix(p.ImportPath, rule.from) && !strings.HasPrefix(p.ImportPath, rule.imports) &&
					(imp == rule.imports || strings.HasPrefix(imp, strings.TrimSuffix(rule.imports, "/")+"/")) {
					t.Errorf("%s imports %s: %s", p.ImportPath, imp, rule.why)
				}
			}
			checkBackend(t, p.ImportPath, imp)
			if imp == "gopkg.in/yaml.v3" && p.ImportPath != "pkg/profile" {
				t.Errorf("%s imports yaml: only pkg/profile does", p.ImportPath)
			}
		}
	}
}

// checkBackend holds that a backend imports no other and only backend/all names
// one.
func checkBackend(t *testing.T, from, imp string) {
	name, ok := strings.CutPrefix(imp, "pkg/backend/")
	if !ok || name == "all" || from == "pkg/backend/all" {
		return
	}
	own, _, _ := strings.Cut(name, "/")
	if !strings.HasPrefix(from+"/", "pkg/backend/"+own+"/") {
		t.Errorf("%s imports backend %s: only pkg/backend/all names a backend", from, own)
	}
}

// Each package explains itself.
func TestEveryPackageHasADoc(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}
