package exectest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// lastCase is the number of the specification's last case.
const lastCase = 330

// keeper of a case that neither the suite nor the core's own tests can hold.
type keeper string

const (
	inSSH      keeper = "pkg/backend/ssh"
	inE2B      keeper = "pkg/backend/e2b"
	inBox      keeper = "pkg/backend/box"
	inBackends keeper = "each remote backend, with its own connection to cut, delay or prepare"
	inOwners   keeper = "pkg/backend/e2b and pkg/backend/box: the owner of a sandbox"
	inTerm     keeper = "pkg/keeper and cmd: persistent shell sessions"
	inProfile  keeper = "pkg/profile"
	inProgram  keeper = "cmd: the whole program"
	nowhere    keeper = "nowhere: the case asks for nothing that can be tested"
)

// elsewhere lists the cases that are tested where their subject is.
func elsewhere() map[keeper][]string {
	return map[keeper][]string{
		inSSH:      {"160", "213-215"},
		inE2B:      {"74", "156", "169", "197", "207", "245", "261", "262"},
		inBox:      {"61-63", "88", "201"},
		inBackends: {"46", "73", "84-87", "132", "209", "212", "320"},
		inOwners:   {"316", "322-328", "330"},
		inTerm:     {"269-290"},
		inProfile:  {"297", "329"},
		inProgram:  {"317"},
		// C147 is about a backend that cannot spill: the core spills for all. C308
		// waits for a command wrapper. C321 claims nothing.
		nowhere: {"147", "308", "321"},
	}
}

// Every case of the specification is run by the suite, named by a test of the
// core or of the local world, or listed with its keeper, and no case twice in
// the list or needlessly.
func TestEveryCaseHasAKeeper(t *testing.T) {
	tested := map[int]string{}
	for _, c := range Cases() {
		note(tested, c.ID, "the suite")
	}
	for _, dir := range []string{"..", "../shell", "../../backend/local"} {
		noteTests(t, tested, dir)
	}
	listed := map[int]keeper{}
	for who, ranges := range elsewhere() {
		for _, r := range ranges {
			for _, n := range numbers(t, r) {
				if other, twice := listed[n]; twice {
					t.Errorf("C%d is listed for %s and for %s", n, other, who)
				}
				listed[n] = who
			}
		}
	}
	for n := 1; n <= lastCase; n++ {
		switch {
		case tested[n] == "" && listed[n] == "":
			t.Errorf("C%d is neither tested nor listed", n)
		case tested[n] != "" && listed[n] != "":
			t.Errorf("C%d is listed for %s although %s has it", n, listed[n], tested[n])
		}
	}
}

// The numbers of the suite are unique and in range.
func TestCaseNumbers(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases() {
		if seen[c.ID] || c.Name == "" || c.Run == nil {
			t.Errorf("case %q %q is incomplete or there twice", c.ID, c.Name)
		}
		seen[c.ID] = true
	}
}

var caseNumber = regexp.MustCompile(`\bC(\d+)\b`)

func note(tested map[int]string, text, where string) {
	for _, m := range caseNumber.FindAllStringSubmatch(text, -1) {
		var n int
		fmt.Sscan(m[1], &n)
		tested[n] = where
	}
}

// noteTests notes the cases that the comments of test functions name.
func noteTests(t *testing.T, tested map[int]string, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no tests: %v", dir, err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Test") {
				note(tested, f.Doc.Text(), file+" "+f.Name.Name)
			}
		}
	}
}

// numbers reads "7" or "7-9".
func numbers(t *testing.T, text string) (all []int) {
	t.Helper()
	var from, to int
	if n, _ := fmt.Sscanf(text, "%d-%d", &from, &to); n == 1 {
		to = from
	}
	if from < 1 || to < from || to > lastCase {
		t.Fatalf("%q is no range of cases", text)
	}
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}
