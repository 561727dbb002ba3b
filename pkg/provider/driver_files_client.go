package provider

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// DriverFiles is the caller's side of a file driver: remotefs.New builds the
// contract on it.
type DriverFiles struct {
	conn  *Conn
	world string
	facts remotefs.Facts
}

var (
	_ remotefs.Driver = (*DriverFiles)(nil)
	_ remotefs.Stager = (*DriverFiles)(nil)
)

// Facts are those that the serving side stated.
func (d *DriverFiles) Facts() remotefs.Facts { return d.facts }

func (d *DriverFiles) ref(r remotefs.Ref) driverRef {
	return driverRef{d.world, Raw(r.Path), r.Canonical}
}

// call makes a call without content.
func (d *DriverFiles) call(ctx context.Context, method string, params, result any) error {
	s, err := d.conn.Call(method, params)
	if err != nil {
		return err
	}
	return driverError(s.Result(ctx, result))
}

// Canon is one call.
func (d *DriverFiles) Canon(ctx context.Context, p string) (string, error) {
	var r driverKey
	err := d.call(ctx, "fsd.canon", d.ref(remotefs.Ref{Path: p}), &r)
	return string(r.Key), err
}

// Stat follows links.
func (d *DriverFiles) Stat(ctx context.Context, ref remotefs.Ref) (string, *remotefs.Info, error) {
	var r driverFound
	err := d.call(ctx, "fsd.stat", driverStat{d.ref(ref), true}, &r)
	return string(r.Key), r.Info.decode(), err
}

// Lstat does not follow the last component.
func (d *DriverFiles) Lstat(ctx context.Context, p string) (string, *remotefs.Info, error) {
	var r driverFound
	err := d.call(ctx, "fsd.stat", driverStat{d.ref(remotefs.Ref{Path: p}), false}, &r)
	return string(r.Key), r.Info.decode(), err
}

// List is one call, however many entries there are.
func (d *DriverFiles) List(ctx context.Context, ref remotefs.Ref) (string, []remotefs.Entry, error) {
	s, err := d.conn.Call("fsd.list", d.ref(ref))
	if err != nil {
		return "", nil, err
	}
	stop := context.AfterFunc(ctx, func() { s.Cancel() })
	defer stop()
	var entries []remotefs.Entry
	broken := readLines(s.Reader(PortFirst), func(line []byte) error {
		var e driverEntry
		if err := json.Unmarshal(line, &e); err != nil {
			return fault.Wrap(err, fault.PluginProtocol, "list", ref.Path, "the provider's listing is malformed")
		}
		entry := remotefs.Entry{Name: string(e.Name), Key: string(e.Key), Info: e.Info.decode()}
		if e.Error != nil {
			entry.Err = driverError(e.Error.decode())
		}
		entries = append(entries, entry)
		return nil
	})
	if broken != nil {
		s.Reader(PortFirst).Close()
		s.Cancel()
	}
	var r driverFound
	if err := s.Result(ctx, &r); err != nil {
		return "", nil, driverError(err)
	}
	if broken == nil && r.Count != len(entries) {
		broken = fault.New(fault.PluginProtocol, "list", ref.Path, "the provider announced %d entries and sent %d", r.Count, len(entries))
	}
	return string(r.Key), entries, broken
}

// Open is one call: what is known of the file comes before its content.
func (d *DriverFiles) Open(ctx context.Context, ref remotefs.Ref, limit int64) (remotefs.File, error) {
	p := driverOpen{driverRef: d.ref(ref)}
	if limit >= 0 {
		p.MaxBytes = &limit
	}
	s, err := d.conn.Call("fsd.open", p)
	if err != nil {
		return nil, err
	}
	select {
	case e, ok := <-s.Events():
		var r driverFound
		if !ok {
			err := driverError(s.Result(ctx, nil))
			if err == nil {
				err = fault.New(fault.PluginProtocol, "open", ref.Path, "the provider ended fsd.open without the file's facts")
			}
			return nil, err
		}
		if err := json.Unmarshal(e.Fields, &r); err != nil || r.Info == nil {
			s.Cancel()
			return nil, fault.New(fault.PluginProtocol, "open", ref.Path, "the provider's facts of the file are malformed")
		}
		return &driverFile{remoteFile{s.Reader(PortFirst), s, string(r.Key), r.Info.decode()}}, nil
	case <-ctx.Done():
		s.Cancel()
		return nil, context.Cause(ctx)
	}
}

// driverFile is content whose end is the end of a call that has not failed.
type driverFile struct{ remoteFile }

func (f *driverFile) Read(p []byte) (int, error) {
	n, err := f.remoteFile.Read(p)
	if errors.Is(err, io.EOF) {
		select {
		case <-f.stream.Ended():
		default: // its END is on the way behind the content
		}
		if failed := driverError(f.stream.Result(context.Background(), nil)); failed != nil {
			return n, failed
		}
	}
	return n, err
}

// Stage begins a call that takes the content; sealing ends it.
func (d *DriverFiles) Stage(_ context.Context, key string, opts remotefs.StageOptions) (remotefs.Stage, error) {
	p := driverStage{World: d.world, Dir: Raw(path.Dir(key)), Key: Raw(key), Bytes: size(opts.Size), Nonce: nonce(), Replaces: encodeInfo(opts.Replaces)}
	if opts.Mode >= 0 {
		p.Mode = &opts.Mode
	}
	s, err := d.conn.Call("fsd.stage", p)
	if err != nil {
		return nil, err
	}
	return &driverStaging{d: d, key: key, stream: s, in: s.Writer(PortInput)}, nil
}

// driverStaging is content on its way to a staging object.
type driverStaging struct {
	d      *DriverFiles
	key    string
	stream *Stream
	in     io.WriteCloser
	staged string // its name, once it is sealed
}

// Write sends content. A serving side that has ended the call says why when it
// is sealed.
func (s *driverStaging) Write(p []byte) (int, error) {
	n, err := s.in.Write(p)
	if errors.Is(err, io.ErrClosedPipe) {
		if failed := driverError(s.stream.Result(context.Background(), nil)); failed != nil {
			return n, failed
		}
	}
	return n, err
}

// Seal waits until the content is staged whole.
func (s *driverStaging) Seal(ctx context.Context) error {
	if err := s.in.Close(); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	var r driverStaged
	if err := s.stream.Result(ctx, &r); err != nil {
		return driverError(err)
	}
	s.staged = r.Staged
	return nil
}

// Publish is one call, and one more where the name is taken: to see by what.
func (s *driverStaging) Publish(opts remotefs.PublishOptions) (string, error) {
	var r driverVersion
	err := s.d.call(context.Background(), "fsd.publish", driverPublish{s.d.world, s.staged, Raw(s.key), !opts.NoReplace, opts.Guard}, &r)
	if fault.Is(err, fault.FSNotObserved) {
		if _, info, look := s.d.Lstat(context.Background(), s.key); look == nil && info != nil && info.Type != remotefs.TypeFile {
			return "", &fault.Error{Code: fault.FSNotRegularFile}
		}
		return "", &fault.Error{Code: fault.FSNotObserved}
	}
	return r.Version, err
}

// Discard ends the call, or removes what it has staged.
func (s *driverStaging) Discard() error {
	if s.staged == "" {
		s.stream.Cancel()
		s.in.Close() // ends the reading of the other side, behind the CANCEL
		s.stream.Result(context.Background(), nil)
		return nil
	}
	staged := s.staged
	s.staged = ""
	return s.d.call(context.Background(), "fsd.discard", driverPublish{World: s.d.world, Staged: staged}, nil)
}
