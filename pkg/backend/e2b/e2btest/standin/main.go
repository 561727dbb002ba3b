// Command standin serves the stand-in for the E2B service until its standard
// input ends. It prints the variables with which clients find it, one on a
// line, and takes two optional arguments: the folder for the sandboxes (default:
// a new one, removed at the end) and a delay for each request. For each line of
// its input it prints what arrived since the last one: how many requests waited
// for one another, how many there were, and of what kinds.
package main

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/afield-dev/afield/pkg/backend/e2b/e2btest"
)

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "standin:", err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	root, delay := "", time.Duration(0)
	if len(args) > 0 {
		root = args[0]
	}
	if len(args) > 1 {
		var err error
		if delay, err = time.ParseDuration(args[1]); err != nil {
			return err
		}
	}
	if root == "" {
		dir, err := os.MkdirTemp("", "afield-standin-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		root = dir
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return err
	}
	s := e2btest.New(e2btest.Options{Root: root, Key: "e2b_" + "0123456789abcdef"})
	defer s.Close()
	if delay > 0 {
		s.Rule(&e2btest.Rule{Method: "*", Delay: delay})
	}
	fmt.Printf("E2B_API_KEY=e2b_0123456789abcdef\nE2B_API_URL=%s\nE2B_SANDBOX_URL=%s\nE2B_ROOT=%s\n", s.APIURL(), s.SandboxURL(), root)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fmt.Println(summary(s.Log()))
		s.ResetLog()
	}
	return lines.Err()
}

// summary tells of requests in one line.
func summary(log []e2btest.Entry) string {
	kinds := map[string]int{}
	for _, e := range log {
		kinds[e.Method]++
	}
	text := fmt.Sprintf("%d in sequence, %d in all:", e2btest.Sequence(log), len(log))
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		text += fmt.Sprintf(" %s×%d", k, kinds[k])
	}
	return text
}
