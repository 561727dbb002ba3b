package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"testing"

	"github.com/afield-dev/afield/pkg/remotefs/fstest"
)

// The suite prepares a world by its shell as well as by system calls, and runs
// without the testing package: a part of it, on this machine, with the same
// result.
func TestFilesSuiteByShell(t *testing.T) {
	b := suite(t)
	b.World = fstest.Shell{Exec: func(stdin []byte, argv ...string) ([]byte, error) {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stdin = bytes.NewReader(stdin)
		out, err := cmd.Output()
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = fmt.Errorf("%w: %s", err, failed.Stderr)
		}
		return out, err
	}}
	b.Rounds = 1
	b.Only = func(c fstest.Case) bool { return c.Num%8 == 0 || c.Num == 59 || c.Num == 53 || c.Num == 82 }
	counts := map[string]int{}
	err := fstest.Check(context.Background(), b, func(r fstest.Result) {
		counts[r.Outcome]++
		if r.Outcome == "failed" {
			t.Errorf("case %d, %s: %s", r.Case.Num, r.Case.Name, r.Reason)
		}
	})
	if err != nil || counts["passed"] < 30 {
		t.Errorf("%v, %v", counts, err)
	}
	t.Logf("%v", counts)
}
