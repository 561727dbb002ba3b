package provider

import (
	"errors"
	"io"
	"path"
	"sync"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// driverFiles serves a file driver (plugins.md 36).
type driverFiles struct {
	driver remotefs.Driver
	mu     sync.Mutex
	stages map[string]remotefs.Stage
}

// serve answers one fsd call.
func (d *driverFiles) serve(s *Stream) {
	var result any
	var err error
	switch s.Method {
	case "fsd.canon":
		result, err = d.canon(s)
	case "fsd.stat":
		result, err = d.stat(s)
	case "fsd.list":
		result, err = d.list(s)
	case "fsd.open":
		result, err = d.open(s)
	case "fsd.stage":
		result, err = d.stage(s)
	case "fsd.publish":
		result, err = d.publish(s)
	case "fsd.discard":
		result, err = d.discard(s)
	default:
		err = unknownMethod(s.Method)
	}
	if err != nil {
		s.failWith(encodeDriverError(err))
		return
	}
	s.Finish(result)
}

func (d *driverFiles) canon(s *Stream) (any, error) {
	var p driverRef
	if err := decodeParams(s, &p); err != nil {
		return nil, err
	}
	key, err := d.driver.Canon(s.Context(), string(p.Path))
	return driverKey{Raw(key)}, err
}

func (d *driverFiles) stat(s *Stream) (any, error) {
	var p driverStat
	if err := decodeParams(s, &p); err != nil {
		return nil, err
	}
	if !p.Follow {
		key, info, err := d.driver.Lstat(s.Context(), string(p.Path))
		return driverFound{Key: Raw(key), Info: encodeInfo(info)}, err
	}
	key, info, err := d.driver.Stat(s.Context(), p.decode())
	return driverFound{Key: Raw(key), Info: encodeInfo(info)}, err
}

func (d *driverFiles) list(s *Stream) (any, error) {
	var p driverRef
	if err := decodeParams(s, &p); err != nil {
		return nil, err
	}
	key, entries, err := d.driver.List(s.Context(), p.decode())
	if err != nil {
		return nil, err
	}
	w := s.Writer(PortFirst)
	lines := newLineWriter(w)
	for _, e := range entries {
		line := driverEntry{Name: Raw(e.Name), Key: Raw(e.Key), Info: encodeInfo(e.Info)}
		if e.Err != nil {
			failed := encodeDriverError(e.Err)
			line.Error = &failed
		}
		if err := lines.write(line); err != nil {
			return nil, err
		}
	}
	return driverFound{Key: Raw(key), Count: len(entries)}, errors.Join(lines.flush(), w.Close())
}

// open sends what is known of the opened file before its content, as an event.
func (d *driverFiles) open(s *Stream) (any, error) {
	var p driverOpen
	if err := decodeParams(s, &p); err != nil {
		return nil, err
	}
	limit := int64(-1)
	if p.MaxBytes != nil {
		limit = *p.MaxBytes
	}
	f, err := d.driver.Open(s.Context(), p.decode(), limit)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found := driverFound{Key: Raw(f.Key()), Info: encodeInfo(f.Info())}
	s.Emit("opened", map[string]any{"key": found.Key, "info": found.Info})
	w := s.Writer(PortFirst)
	in := &source{Reader: f}
	if _, err := io.CopyBuffer(struct{ io.Writer }{w}, in, make([]byte, MaxData)); err != nil {
		return nil, errors.Join(in.err, err)
	}
	return found, w.Close()
}

func (d *driverFiles) stage(s *Stream) (any, error) {
	var p driverStage
	if err := decodeParams(s, &p); err != nil {
		return nil, err
	}
	stager, ok := d.driver.(remotefs.Stager)
	if !ok {
		return nil, unknownMethod(s.Method)
	}
	opts := remotefs.StageOptions{Size: -1, Mode: -1, Replaces: p.Replaces.decode()}
	if p.Mode != nil {
		opts.Mode = *p.Mode
	}
	if p.Bytes != nil {
		opts.Size = *p.Bytes
	}
	key := string(p.Key)
	if key == "" {
		key = path.Join(string(p.Dir), "staged")
	}
	st, err := stager.Stage(s.Context(), key, opts)
	if err != nil {
		return nil, err
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{st}, s.Reader(PortInput), make([]byte, MaxData))
	if err == nil && p.Bytes != nil && n != *p.Bytes {
		err = fault.New(fault.FSIOError, "stage", "", "%d bytes came and %d were announced", n, *p.Bytes)
	}
	if err == nil && s.Context().Err() != nil {
		err = fault.Aborted(s.Context(), fault.FSAborted, "stage", "")
	}
	if err == nil {
		err = st.Seal(s.Context())
	}
	if err != nil {
		return nil, errors.Join(err, st.Discard())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stages[p.Nonce] = st
	return driverStaged{p.Nonce}, nil
}

// taken gives a stage by its name.
func (d *driverFiles) taken(name string) remotefs.Stage {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stages[name]
}

func (d *driverFiles) publish(s *Stream) (any, error) {
	var p driverPublish
	if err := decodeParams(s, &p); err != nil {
		return nil, err
	}
	st := d.taken(p.Staged)
	if st == nil {
		return nil, fault.New(fault.FSIOError, "publish", "", "there is no staged content %q", p.Staged)
	}
	version, err := st.Publish(remotefs.PublishOptions{NoReplace: !p.Replace, Guard: p.Version})
	return driverVersion{version}, err
}

func (d *driverFiles) discard(s *Stream) (any, error) {
	var p driverPublish
	if err := decodeParams(s, &p); err != nil {
		return nil, err
	}
	st := d.taken(p.Staged)
	if st == nil {
		return struct{}{}, nil
	}
	d.mu.Lock()
	delete(d.stages, p.Staged)
	d.mu.Unlock()
	return struct{}{}, st.Discard()
}

// close discards what was staged and not published.
func (d *driverFiles) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, st := range d.stages {
		st.Discard()
	}
	clear(d.stages)
}
