package e2b_test

import (
	"testing"

	"github.com/afield-dev/afield/pkg/backend/e2b/e2btest"
	"github.com/afield-dev/afield/pkg/fault"
)

// ladder is in the script that ends a tree, and in no other.
const ladder = "for s in $3"

// C192: a stop that cannot be delivered fails the wait; a second one, once that
// is mended, succeeds. C193: one that says yes while the tree lives fails too.
func TestLadderThatFails(t *testing.T) {
	t.Parallel()
	survives := e2btest.Frames(
		`{"event":{"start":{"pid":4194000}}}`, `{"event":{"data":{"stdout":"NDE5NDMwMwo="}}}`,
		`{"event":{"end":{"exitCode":9,"exited":true,"status":"exit status 9"}}}`)
	for name, rule := range map[string]*e2btest.Rule{
		"not delivered": {Status: 500, Text: `{"code":"internal","message":"no more processes"}`},
		"not obeyed":    {Status: 200, Text: survives},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, b, w := prepared(t)
			h := spawnMarked(t, w, nil, "sleep 600 >/dev/null 2>&1 & exit 0")
			if _, err := h.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			rule.Method, rule.Body = "Start", ladder
			s.Rule(rule)
			within(t, "the stop that fails", func() {
				h.Terminate()
				if gone, err := h.WaitForExit(t.Context()); gone || !fault.Is(err, fault.ExecCleanupFailed) {
					t.Errorf("gone %v, %v", gone, err)
				}
			})
			if rule.Used() != 1 || len(b.Processes()) != 1 {
				t.Errorf("the rule was used %d times, processes %v", rule.Used(), b.Processes())
			}
			s.ReleaseAll()
			within(t, "the second stop", func() {
				h.Terminate()
				if gone, err := h.WaitForExit(t.Context()); !gone || err != nil {
					t.Errorf("gone %v, %v", gone, err)
				}
			})
			if n := len(b.Processes()); n != 0 {
				t.Errorf("%d processes are left", n)
			}
		})
	}
}

// C194: a sandbox that is gone while a tree is stopped, looked at, or entered
// proves that nothing of it runs.
func TestSandboxGoneMeansQuiescent(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"stop": ladder, "look": "empty || echo"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, b, w := prepared(t)
			h := spawnMarked(t, w, nil, "echo up; exec sleep 600")
			<-h.Started()
			rule := s.Rule(&e2btest.Rule{Method: "Start", Body: body, Times: 1, Before: b.Expire, Cut: -1})
			if name == "look" {
				if left := h.Survivors(); len(left) != 0 {
					t.Errorf("survivors %v", left)
				}
			} else {
				h.Terminate()
			}
			if _, err := h.Wait(t.Context()); !fault.Is(err, fault.BackendWorldGone) {
				t.Errorf("error %v", err)
			}
			if gone, err := h.WaitForExit(t.Context()); !gone || err != nil {
				t.Errorf("gone %v, %v", gone, err)
			}
			if rule.Used() != 1 {
				t.Errorf("the rule was used %d times", rule.Used())
			}
		})
	}
	t.Run("start", func(t *testing.T) {
		t.Parallel()
		s, b, w := prepared(t)
		s.Rule(&e2btest.Rule{Method: "Start", Body: marked, Times: 1, Before: b.Expire, Cut: -1})
		h := spawnMarked(t, w, nil, "sleep 600")
		if _, err := h.Wait(t.Context()); !fault.Is(err, fault.BackendWorldGone) {
			t.Errorf("error %v", err)
		}
		if gone, err := h.WaitForExit(t.Context()); !gone || err != nil {
			t.Errorf("gone %v, %v", gone, err)
		}
	})
}
