package cmd

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// needTool skips a test that needs a program which is not there, and fails it
// where nothing may be left out.
func needTool(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		missing(t, "needs the program "+name)
	}
}

func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
		t.Fatalf("AFIELD_TEST_REQUIRE is set, and this test %s", what)
	}
	t.Skipf("SKIPPED, NOT PROVEN: %s", what)
}

// canMount reports whether this process may mount, in a namespace of its own.
func canMount() bool {
	return exec.Command("unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt").Run() == nil
}

// awaitThat waits until something holds.
func awaitThat(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(watchdog); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came true that %s", what)
		}
	}
}
