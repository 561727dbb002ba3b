package cmd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// writers is how many processes race for one file.
const writers = 8

// race runs one process for each argument list at once and gives the statuses.
// The processes wait on a pipe until all have been started.
func race(t *testing.T, dir string, argLists [][]string) []int {
	t.Helper()
	r, gate, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	afield := filepath.Join(binaryDir(t), "afield")
	procs := make([]*exec.Cmd, len(argLists))
	for i, args := range argLists {
		c := exec.Command("sh", append([]string{"-c", `read x; exec "$0" "$@" </dev/null`, afield}, args...)...)
		c.Dir, c.Stdin = dir, r
		c.Env = append(os.Environ(), "AFIELD_STATE_DIR="+filepath.Join(dir, ".state"))
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		procs[i] = c
	}
	gate.Close()
	statuses := make([]int, len(procs))
	for i, c := range procs {
		c.Wait()
		statuses[i] = c.ProcessState.ExitCode()
	}
	return statuses
}

// winners gives the indexes of the processes that ended with 0; every other
// must have been refused by its guard.
func winners(t *testing.T, statuses []int) []int {
	t.Helper()
	var won []int
	for i, status := range statuses {
		switch status {
		case exitOK:
			won = append(won, i)
		case exitGuard:
		default:
			t.Fatalf("process %d ended with %d", i, status)
		}
	}
	return won
}

// rounds is 100 where nothing may be left out, else fewer.
func rounds() int {
	if os.Getenv("AFIELD_TEST_REQUIRE") == "" {
		return 10
	}
	return 100
}

// Of many processes with one guard exactly one wins, a hundred times (cases 224
// and 226).
func TestManyWritersWithOneGuard(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, []byte("first"), 0o644); err != nil {
		t.Fatal(err)
	}
	for round := range rounds() {
		out := runJSON(t, dir, "fs stat f", "", exitOK)
		_, rest, _ := strings.Cut(string(out), `"version":"`)
		version, _, _ := strings.Cut(rest, `"`)
		argLists := make([][]string, writers)
		for i := range argLists {
			argLists[i] = []string{"fs", "write", "f", "--if-version", version, "--content", fmt.Sprintf("%d.%d", round, i)}
		}
		won := winners(t, race(t, dir, argLists))
		if len(won) != 1 {
			t.Fatalf("round %d: %d processes won", round, len(won))
		}
		checkContent(t, file, fmt.Sprintf("%d.%d", round, won[0]))
	}
}

// Of many processes that create one file exactly one does, and the content is
// its own (case 228).
func TestManyCreators(t *testing.T) {
	dir := t.TempDir()
	for round := range rounds() / 5 {
		name := fmt.Sprintf("new%d", round)
		argLists := make([][]string, writers)
		for i := range argLists {
			argLists[i] = []string{"fs", "write", name, "--if-absent", "--content", fmt.Sprint(i)}
		}
		won := winners(t, race(t, dir, argLists))
		if len(won) != 1 {
			t.Fatalf("round %d: %d processes created the file", round, len(won))
		}
		checkContent(t, filepath.Join(dir, name), fmt.Sprint(won[0]))
	}
}

// Unguarded edits of different words by several processes are all there in the
// end (case 227).
func TestManyEditorsLoseNothing(t *testing.T) {
	dir := t.TempDir()
	var words, want []string
	argLists := make([][]string, writers)
	for i := range argLists {
		words, want = append(words, fmt.Sprintf("old%d", i)), append(want, fmt.Sprintf("new%d", i))
		argLists[i] = []string{"fs", "edit", "f", "--old", words[i], "--new", want[i]}
	}
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, []byte(strings.Join(words, " ")), 0o644); err != nil {
		t.Fatal(err)
	}
	if won := winners(t, race(t, dir, argLists)); len(won) != writers {
		t.Fatalf("%d of %d edits were made", len(won), writers)
	}
	checkContent(t, file, strings.Join(want, " "))
}

func checkContent(t *testing.T, file, want string) {
	t.Helper()
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Fatalf("%s holds %q, want %q", file, got, want)
	}
}
