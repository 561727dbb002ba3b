package ssh

import (
	"context"
	"errors"

	"github.com/afield-dev/afield/pkg/script"
)

// far is what is known of the far side. It is kept between commands, so that a
// later one need not ask. The host key proves that it is the same host, and each
// program refuses to act where the home is another.
type far struct {
	Fingerprint string `json:"hostKey"`
	Home        string `json:"home"`
	Dir         string `json:"dir"`
	Stat        bool   `json:"stat"`
	Sum         bool   `json:"sum"`
	Proc        bool   `json:"proc"`
	Plain       bool   `json:"plain"` // the login shell forbids exec
}

const farKind = "host"

// greet connects and finds out what the host has: what is remembered of it, else
// it asks.
func (w *World) greet(ctx context.Context) error {
	c, err := w.sh.reserve(ctx)
	if err != nil {
		return err
	}
	w.sh.release(c)
	w.sh.forget = func() { w.state.drop(farKind, w.Identity()) }
	if w.recall(c.fingerprint) {
		w.sh.prepare(false)
		return nil
	}
	if err = w.ask(ctx); err == nil {
		w.remember(c.fingerprint)
	}
	return err
}

// recall takes what is remembered, if it is of the host that shows this key.
func (w *World) recall(fingerprint string) bool {
	var f far
	if !w.state.load(farKind, w.Identity(), &f) || f.Fingerprint != fingerprint || f.Home == "" || !f.Stat || !f.Sum {
		return false
	}
	w.hello = script.World{Home: f.Home, Dir: f.Dir, Stat: f.Stat, Sum: f.Sum, Proc: f.Proc}
	w.sh.plain.Store(f.Plain)
	w.sh.home = f.Home
	return true
}

// ask asks the host what it has.
func (w *World) ask(ctx context.Context) error {
	call := script.Hello()
	err := w.sh.ask(ctx, call, func(a *script.Answer) (err error) {
		w.hello, err = script.ReadHello(a, call)
		return err
	})
	if errors.Is(err, script.ErrNoMarker) {
		w.noShell, err = err, nil
	}
	return err
}

// remember keeps what was asked. A host without a full shell is asked each time.
func (w *World) remember(fingerprint string) {
	h := w.hello
	if w.noShell != nil || !h.Stat || !h.Sum || h.Home == "" {
		return
	}
	w.state.save(farKind, w.Identity(), far{Fingerprint: fingerprint, Home: h.Home, Dir: h.Dir,
		Stat: h.Stat, Sum: h.Sum, Proc: h.Proc, Plain: w.sh.plain.Load()})
}
