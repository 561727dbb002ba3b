package remotefs

import (
	"testing"

	"go.uber.org/goleak"
)

// No test leaves a goroutine behind: a reader of content, a waiter for a lock.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
