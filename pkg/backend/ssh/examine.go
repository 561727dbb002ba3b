package ssh

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/script"
)

var _ backend.Examiner = (*World)(nil)

// Examine tells how the host was reached and what it has.
func (w *World) Examine(ctx context.Context, report func(name, detail string, err error)) {
	s := w.settings
	report("resolve", w.route(), nil)
	if l := w.sh.first(); l != nil {
		report("dial", l.client.RemoteAddr().String()+" answers as "+string(l.client.ServerVersion()), nil)
		report("host key", l.fingerprint+" is known", nil)
		report("login", s.User+" by "+l.method, nil)
	}
	report("shell", w.shellFacts(), nil)
	w.examineSFTP(ctx, report)
	if w.noShell != nil {
		report("clock", "unknown: the host runs no programs", nil)
		w.examineVolume(report)
		return
	}
	w.examineClock(ctx, report)
	w.examineSpace(ctx, report)
}

// route says where the settings come from and what of them has no effect.
func (w *World) route() string {
	s := w.settings
	text := fmt.Sprintf("%s is %s@%s (%s)", s.Alias, s.User, s.Address(), s.Source)
	if len(s.Jumps) > 0 {
		text += " through " + strings.Join(s.Jumps, ", ")
	}
	if s.ProxyCommand != "" {
		text += " through a ProxyCommand"
	}
	if len(s.Ignored) > 0 {
		slices.Sort(s.Ignored)
		text += "; without effect here: " + strings.Join(s.Ignored, ", ")
	}
	return text
}

// first gives a connection, or nil.
func (h *hub) first() *link {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.conns) == 0 {
		return nil
	}
	return h.conns[0].link
}

func (w *World) shellFacts() string {
	if w.noShell != nil {
		return "none: files by SFTP with weak versions, no processes"
	}
	facts := []string{"runs our programs"}
	for _, f := range []struct {
		has  bool
		name string
	}{
		{w.hello.Stat && w.hello.Sum, "exact versions"}, {w.hello.Proc, "processes can be followed"},
		{w.sh.plain.Load(), "restricted"},
	} {
		if f.has {
			facts = append(facts, f.name)
		}
	}
	return strings.Join(facts, ", ")
}

// examineSFTP lists the extensions that a host without a shell would need.
func (w *World) examineSFTP(ctx context.Context, report func(string, string, error)) {
	d, err := newSFTPFiles(ctx, w.sh.hub)
	if err != nil {
		report("sftp", "no SFTP subsystem; it is not needed here", nil)
		return
	}
	defer d.client.Close()
	var has []string
	for _, name := range []string{"posix-rename", "hardlink", "fsync", "statvfs", "limits", "expand-path", "copy-data"} {
		suffix := "@openssh.com"
		if name == "copy-data" {
			suffix = ""
		}
		if _, ok := d.client.HasExtension(name + suffix); ok {
			has = append(has, name)
		}
	}
	report("sftp", "extensions: "+strings.Join(has, ", "), nil)
}

// skewLimit is the difference of clocks from which on times mislead people.
const skewLimit = time.Minute

func (w *World) examineClock(ctx context.Context, report func(string, string, error)) {
	c := script.Hello()
	before := time.Now()
	var there script.World
	err := w.sh.ask(ctx, c, func(a *script.Answer) (err error) {
		there, err = script.ReadHello(a, c)
		return err
	})
	if err != nil {
		report("clock", "", ioError(err))
		return
	}
	skew := there.Clock.Sub(before.Add(time.Since(before) / 2)).Round(time.Second)
	if skew.Abs() > skewLimit {
		err = fault.New(fault.BackendConflict, "doctor", "", "the clock of %s differs by %s", w.settings.Alias, skew).
			WithHint("set the clock of the host, or of this machine")
	}
	report("clock", fmt.Sprintf("differs by %s", skew), err)
}

func (w *World) examineSpace(ctx context.Context, report func(string, string, error)) {
	_, info, err := w.files.Stat(ctx, remotefs.AtPath(w.cwd, ""))
	if err != nil || info == nil {
		return // the check of the working directory says so
	}
	c := script.Space(w.cwd)
	var free int64
	err = w.sh.ask(ctx, c, func(a *script.Answer) (err error) {
		free, err = script.ReadSpace(a, c)
		return err
	})
	w.reportSpace(free, err, report)
}

// examineVolume asks the SFTP server for the free space, if it can tell.
func (w *World) examineVolume(report func(string, string, error)) {
	d, ok := w.driver.(*sftpFiles)
	if !ok {
		return
	}
	if _, ok := d.client.HasExtension("statvfs@openssh.com"); !ok {
		report("space", "unknown: the SFTP server does not tell", nil)
		return
	}
	volume, err := d.client.StatVFS(w.cwd)
	if err != nil {
		report("space", "unknown: "+err.Error(), nil)
		return
	}
	w.reportSpace(int64(volume.Frsize*volume.Bavail), nil, report)
}

func (w *World) reportSpace(free int64, err error, report func(string, string, error)) {
	if err == nil && free < 1<<20 {
		err = fault.New(fault.FSIOError, "doctor", w.cwd, "the disk of %s is full", w.cwd).WithHint("free some space on the host")
	}
	report("space", fmt.Sprintf("%d MiB are free at %s", free>>20, w.cwd), err)
}
