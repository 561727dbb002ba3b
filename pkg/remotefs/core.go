package remotefs

import (
	"context"
	"log/slog"
	"path"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
)

// Options are what New needs beside the driver. The zero value is complete.
type Options struct {
	// Locks serialises mutations; nil: only those of this FS.
	Locks Locker
	// NewFileMode is the mode of new files; 0 or less: 0666 minus the world's
	// umask.
	NewFileMode int
	// Log takes warnings; nil: none.
	Log *slog.Logger
}

// core is the contract over a driver.
type core struct {
	driver Driver
	facts  Facts
	locks  Locker
	mode   int
	log    *slog.Logger
}

// New puts the rules that all backends share on top of a driver.
func New(d Driver, opts Options) FS {
	c := &core{driver: d, facts: d.Facts(), locks: opts.Locks, mode: opts.NewFileMode, log: opts.Log}
	if c.locks == nil {
		c.locks = &queues{}
	}
	if c.mode <= 0 {
		c.mode = -1
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c *core) Facts() Facts { return c.facts }

// locate checks at and gives what the driver is asked for, and the display path.
func (c *core) locate(ctx context.Context, op string, at At) (Ref, string, error) {
	if ctx.Err() != nil {
		return Ref{}, "", fault.Aborted(ctx, fault.FSAborted, op, at.Path)
	}
	if at.Target.Key != "" {
		return Ref{Path: at.Target.Key, Canonical: true}, at.Target.Display, nil
	}
	display, err := c.display(op, at.Path, at.Cwd)
	return Ref{Path: display}, display, err
}

// display is the lexical step with its checks.
func (c *core) display(op, p, cwd string) (string, error) {
	if err := checkPath(op, p); err != nil {
		return "", err
	}
	if strings.IndexByte(cwd, 0) >= 0 && !path.IsAbs(p) {
		return "", checkPath(op, cwd)
	}
	return join(c.facts.Cwd, cwd, p), nil
}

func (c *core) Resolve(ctx context.Context, p, cwd string) (Target, error) {
	_, display, err := c.locate(ctx, "resolve", AtPath(p, cwd))
	if err != nil {
		return Target{}, err
	}
	key, err := c.driver.Canon(ctx, display)
	if err != nil || ctx.Err() != nil {
		return Target{}, failure(ctx, err, "resolve", display)
	}
	return Target{Key: key, Display: display}, nil
}

func (c *core) ProcessPath(t Target) (string, error) {
	if !path.IsAbs(t.Key) {
		return "", fault.New(fault.FSIOError, "path", t.Display, "the key of %q is not an absolute path", t.Display)
	}
	return t.Key, nil
}

func (c *core) FileURL(t Target) (string, error) {
	p, err := c.ProcessPath(t)
	if err != nil {
		return "", err
	}
	return PathURL(p), nil
}

func (c *core) Contains(parent, child Target) bool { return PathContains(parent.Key, child.Key) }

func (c *core) Stat(ctx context.Context, at At) (Target, *Info, error) {
	ref, display, err := c.locate(ctx, "stat", at)
	if err != nil {
		return Target{}, nil, err
	}
	key, info, err := c.driver.Stat(ctx, ref)
	if err != nil || ctx.Err() != nil {
		return Target{}, nil, failure(ctx, err, "stat", display)
	}
	return Target{Key: key, Display: display}, info, nil
}

func (c *core) Lstat(ctx context.Context, p, cwd string) (Target, *Info, error) {
	_, display, err := c.locate(ctx, "lstat", AtPath(p, cwd))
	if err != nil {
		return Target{}, nil, err
	}
	key, info, err := c.driver.Lstat(ctx, display)
	if err != nil || ctx.Err() != nil {
		return Target{}, nil, failure(ctx, err, "stat", display)
	}
	return Target{Key: key, Display: display}, info, nil
}
