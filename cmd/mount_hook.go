package cmd

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/afield-dev/afield/pkg/mount"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// mountHook tells the session's ledger of a change that afield itself makes.
// Nil, when no session is set, does nothing.
type mountHook struct {
	app     *app
	config  mount.Config
	call    mount.Call
	content bytes.Buffer
}

// newMountHook makes the hook of a command. What is wrong with session or
// context in the environment is a usage error before anything is changed.
func (a *app) newMountHook() (*mountHook, error) {
	c, err := a.mountConfig()
	if err != nil || !c.Enabled {
		return nil, err
	}
	call, err := a.call(callFlags{wait: 5 * time.Second}, c)
	if err != nil || call.Session == "" {
		return nil, err
	}
	return &mountHook{app: a, config: c, call: call}, nil
}

// tee keeps what is read from r, as far as a known file may be large.
func (h *mountHook) tee(r io.Reader) io.Reader {
	if h == nil {
		return r
	}
	return io.TeeReader(r, &upTo{&h.content, h.config.MaxFingerprintBytes + 1})
}

// upTo keeps the beginning of what is written to it.
type upTo struct {
	kept *bytes.Buffer
	room int64
}

func (u *upTo) Write(p []byte) (int, error) {
	n := min(int64(len(p)), u.room)
	u.kept.Write(p[:n])
	u.room -= n
	return len(p), nil
}

// wrote reports a whole file that was stored. The write stands whatever becomes
// of the report.
func (h *mountHook) wrote(ctx context.Context, w *world, fs remotefs.FS, t remotefs.Target) *mount.WroteAnswer {
	if h == nil {
		return nil
	}
	m := h.app.newMounts(h.config)
	err := h.app.attach(ctx, m, w, fs)
	if err == nil {
		var answer mount.WroteAnswer
		if answer, err = m.Wrote(ctx, remotefs.AtTarget(t), append([]byte{}, h.content.Bytes()...), h.call); err == nil {
			return &answer
		}
	}
	reason := h.trouble(err)
	return &mount.WroteAnswer{Kind: "unmounted", Reason: &reason}
}

// edited reports an edit.
func (h *mountHook) edited(ctx context.Context, w *world, fs remotefs.FS, t remotefs.Target) *mount.EditedAnswer {
	if h == nil {
		return nil
	}
	m := h.app.newMounts(h.config)
	err := h.app.attach(ctx, m, w, fs)
	if err == nil {
		var answer mount.EditedAnswer
		if answer, err = m.Edited(ctx, remotefs.AtTarget(t), h.call); err == nil {
			return &answer
		}
	}
	h.trouble(err)
	return &mount.EditedAnswer{Kind: "stale"}
}

// trouble warns and gives the reason for the report. Without a record the next
// read compares by content.
func (h *mountHook) trouble(err error) string {
	h.app.note("warning: the change is stored, but session %s was not told: %s", h.call.Session, err)
	if mount.IsBusy(err) {
		return "ledger-busy"
	}
	return "ledger-unavailable"
}
