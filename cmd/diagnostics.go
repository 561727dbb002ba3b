package cmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
)

// mask hides secrets that were resolved in text that a provider had a hand in.
func (a *app) mask(text string) string {
	if a.secrets == nil {
		return text
	}
	return a.secrets.Mask(text)
}

// masked gives err with its texts masked. Its code and cause stay.
func (a *app) masked(err error) error {
	var e *fault.Error
	if a.secrets == nil || !errors.As(err, &e) {
		return err
	}
	shown := *e
	shown.Message, shown.Path, shown.Hint = a.mask(err.Error()), a.mask(e.Path), a.mask(e.Hint)
	return &shown
}

// logger gives where a world writes diagnostics: warnings, more with -v, only
// errors with --quiet.
func (a *app) logger() *slog.Logger {
	level := slog.LevelWarn
	switch {
	case a.flags.quiet:
		level = slog.LevelError
	case a.flags.verbose == 1:
		level = slog.LevelInfo
	case a.flags.verbose > 1:
		level = slog.LevelDebug
	}
	return slog.New(&diagnostics{app: a, level: level})
}

// diagnostics writes log records as lines on stderr, with secrets masked.
type diagnostics struct {
	app   *app
	level slog.Level
	attrs string
	group string
}

// Enabled says whether a record of this level is written.
func (d *diagnostics) Enabled(_ context.Context, level slog.Level) bool { return level >= d.level }

// Handle writes one record in one write.
func (d *diagnostics) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(strings.ToLower(r.Level.String()) + ": " + r.Message + d.attrs)
	r.Attrs(func(at slog.Attr) bool {
		b.WriteString(d.text(at))
		return true
	})
	_, err := fmt.Fprintln(d.app.Err, "afield: "+oneLine(d.app.mask(b.String())))
	return err
}

func (d *diagnostics) text(at slog.Attr) string {
	return " " + d.group + at.Key + "=" + at.Value.Resolve().String()
}

// WithAttrs gives a handler that adds attrs to each record.
func (d *diagnostics) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *d
	for _, at := range attrs {
		with.attrs += d.text(at)
	}
	return &with
}

// WithGroup gives a handler whose attributes are below name.
func (d *diagnostics) WithGroup(name string) slog.Handler {
	with := *d
	if name != "" {
		with.group += name + "."
	}
	return &with
}

// tracer gives the writer of --trace, or nil.
func (a *app) tracer() func(step string, roundTrips int, bytes int64) {
	if !a.flags.trace {
		return nil
	}
	return func(step string, roundTrips int, bytes int64) {
		fmt.Fprintf(a.Err, "afield: trace: %s round-trips=%d bytes=%d\n", oneLine(step), roundTrips, bytes)
	}
}
