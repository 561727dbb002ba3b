package ssh

import (
	"context"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/script"
)

// tree is a started program seen from other sessions.
type tree struct {
	world   *World
	started script.Started
}

// PID is the id of the program, which leads its session and group.
func (t *tree) PID() int { return t.started.PID }

// Signal delivers to the whole tree.
func (t *tree) Signal(ctx context.Context, name string) error {
	c := script.Kill(t.started, strings.TrimPrefix(name, "SIG"))
	var d script.Delivery
	err := t.world.sh.ask(ctx, c, func(a *script.Answer) (err error) {
		d, err = script.ReadDelivery(a, c)
		return err
	})
	if err == nil && d == script.Refused {
		err = fault.New(fault.ExecSignalNotDelivered, "signal", "", "%s could not be delivered to process %d", name, t.PID())
	}
	return err
}

// Members lists the live members of the tree.
func (t *tree) Members(ctx context.Context) (pids []int, err error) {
	c := script.Members(t.started)
	err = t.world.sh.ask(ctx, c, func(a *script.Answer) (err error) {
		pids, err = script.ReadMembers(a, c)
		return err
	})
	return pids, err
}

// Terminate runs the whole ladder in the world with one request.
func (t *tree) Terminate(ctx context.Context, grace time.Duration) (survivors []int, err error) {
	c := script.End(t.started, grace)
	err = t.world.sh.ask(ctx, c, func(a *script.Answer) (err error) {
		survivors, err = script.ReadMembers(a, c)
		return err
	})
	return survivors, err
}

// WaitQuiescent waits in the world until nothing of the tree lives.
func (t *tree) WaitQuiescent(ctx context.Context) error {
	c := script.Quiet(t.started)
	return t.world.sh.ask(ctx, c, func(a *script.Answer) error {
		_, err := script.ReadMembers(a, c)
		return err
	})
}

// Release has nothing to free: the session ends by itself.
func (t *tree) Release() {}

// HardKill ends the connections; the watchers in the world end the trees.
func (t *tree) HardKill() { t.world.sh.close() }
