package main

import (
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// initialised is a line of the runtime's trace of initialisers.
var initialised = regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) bytes, (\d+) allocs$`)

// initTrace gives the packages of this program, which links all that afield
// does, in the order of their initialisation.
func initTrace(t *testing.T) [][]string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return initialised.FindAllStringSubmatch(string(out), -1)
}

// The heap has its huge page before the packages that touch most of it are
// initialised.
func TestHugePageComesFirst(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("huge pages are asked for on Linux only")
	}
	at := map[string]int{}
	for i, p := range initTrace(t) {
		at[p[1]] = i + 1
	}
	ours := at[module+"/pkg/hugepage"]
	for _, heavy := range []string{"golang.org/x/crypto/ssh", "gopkg.in/yaml%2ev3", "net/http", "unicode"} {
		if ours == 0 || at[heavy] < ours {
			t.Errorf("%s is number %d to be initialised, the huge page number %d", heavy, at[heavy], ours)
		}
	}
}

// No package of ours does work that counts before main: what it needs it makes
// when it is needed (design.md 6).
func TestOwnInitialisersAreSmall(t *testing.T) {
	const most = 1024 // bytes
	for _, p := range initTrace(t) {
		if n, _ := strconv.Atoi(p[2]); strings.HasPrefix(p[1], module+"/") && n > most {
			t.Errorf("%s allocates %d bytes before main, want at most %d", p[1], n, most)
		}
	}
}
