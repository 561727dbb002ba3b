package fstest

import (
	"context"

	"github.com/afield-dev/afield/pkg/remotefs"
)

// steps act between the steps of a call. Each may be nil.
type steps struct {
	call    func() // at the beginning of each call of the driver
	publish func() // before anything is published
	done    func() // after it was published
}

// stepped gives files over the driver with steps.
func (e *env) stepped(s steps) remotefs.FS {
	d := stepDriver{e.Driver, s}
	if w, ok := e.Driver.(remotefs.Writer); ok {
		return remotefs.New(stepWriter{d, w}, remotefs.Options{})
	}
	if st, ok := e.Driver.(remotefs.Stager); ok {
		return remotefs.New(stepStager{d, st}, remotefs.Options{})
	}
	return remotefs.New(d, remotefs.Options{})
}

func call(f func()) {
	if f != nil {
		f()
	}
}

// stepDriver is a driver whose calls are announced.
type stepDriver struct {
	remotefs.Driver
	steps steps
}

func (d stepDriver) Canon(ctx context.Context, path string) (string, error) {
	call(d.steps.call)
	return d.Driver.Canon(ctx, path)
}

func (d stepDriver) Stat(ctx context.Context, ref remotefs.Ref) (string, *remotefs.Info, error) {
	call(d.steps.call)
	return d.Driver.Stat(ctx, ref)
}

func (d stepDriver) Lstat(ctx context.Context, path string) (string, *remotefs.Info, error) {
	call(d.steps.call)
	return d.Driver.Lstat(ctx, path)
}

func (d stepDriver) List(ctx context.Context, ref remotefs.Ref) (string, []remotefs.Entry, error) {
	call(d.steps.call)
	return d.Driver.List(ctx, ref)
}

func (d stepDriver) Open(ctx context.Context, ref remotefs.Ref, limit int64) (remotefs.File, error) {
	call(d.steps.call)
	return d.Driver.Open(ctx, ref, limit)
}

// stepWriter is one that writes as a whole.
type stepWriter struct {
	stepDriver
	inner remotefs.Writer
}

func (d stepWriter) Write(ctx context.Context, ref remotefs.Ref, w remotefs.WriteSpec) (remotefs.WriteResult, error) {
	call(d.steps.publish)
	res, err := d.inner.Write(ctx, ref, w)
	call(d.steps.done)
	return res, err
}

// stepStager is one that stages.
type stepStager struct {
	stepDriver
	inner remotefs.Stager
}

func (d stepStager) Stage(ctx context.Context, key string, opts remotefs.StageOptions) (remotefs.Stage, error) {
	s, err := d.inner.Stage(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	return stepStage{s, d.steps}, nil
}

type stepStage struct {
	remotefs.Stage
	steps steps
}

func (s stepStage) Publish(opts remotefs.PublishOptions) (string, error) {
	call(s.steps.publish)
	version, err := s.Stage.Publish(opts)
	call(s.steps.done)
	return version, err
}
