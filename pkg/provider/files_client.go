package provider

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"path"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// Files is the caller's side of a world's files at contract level: each
// primitive is one call.
type Files struct {
	conn  *Conn
	world string
	cwd   string // of paths that name no directory; "" = that of the world
	edits bool   // the provider has FeatureEdits
	opens bool   // the provider has FeatureOpened
	facts remotefs.Facts
}

var _ remotefs.FS = (*Files)(nil)

// Facts are those that the serving side stated.
func (f *Files) Facts() remotefs.Facts { return f.facts }

// call opens a call, unless ctx has ended.
func (f *Files) call(ctx context.Context, method, op, name string, params any) (*Stream, error) {
	if ctx.Err() != nil {
		return nil, fault.Aborted(ctx, fault.FSAborted, op, name)
	}
	return f.conn.Call(method, params)
}

// Resolve gives the canonical identity of a path.
func (f *Files) Resolve(ctx context.Context, p, cwd string) (remotefs.Target, error) {
	var r targetResult
	err := f.simple(ctx, "fs.resolve", "resolve", p, pathParams{f.world, Raw(p), f.in(cwd)}, &r)
	return r.Target.decode(), err
}

// simple makes a call without content.
func (f *Files) simple(ctx context.Context, method, op, name string, params, result any) error {
	s, err := f.call(ctx, method, op, name, params)
	if err != nil {
		return err
	}
	return f.result(ctx, s, op, name, result)
}

// result waits for the result; a cancelled call says why it was.
func (f *Files) result(ctx context.Context, s *Stream, op, name string, result any) error {
	err := s.Result(ctx, result)
	if fault.Is(err, fault.FSAborted) && ctx.Err() != nil {
		return fault.Aborted(ctx, fault.FSAborted, op, name)
	}
	return err
}

// ProcessPath gives the key: worlds have POSIX paths.
func (f *Files) ProcessPath(t remotefs.Target) (string, error) {
	if !path.IsAbs(t.Key) {
		return "", fault.New(fault.FSIOError, "path", t.Display, "the key of %q is not an absolute path", t.Display)
	}
	return t.Key, nil
}

// FileURL gives the file: URL of the target.
func (f *Files) FileURL(t remotefs.Target) (string, error) {
	p, err := f.ProcessPath(t)
	if err != nil {
		return "", err
	}
	return remotefs.PathURL(p), nil
}

// Contains compares keys.
func (f *Files) Contains(parent, child remotefs.Target) bool {
	return remotefs.PathContains(parent.Key, child.Key)
}

// Stat follows links.
func (f *Files) Stat(ctx context.Context, at remotefs.At) (remotefs.Target, *remotefs.Info, error) {
	var r infoResult
	err := f.simple(ctx, "fs.stat", "stat", nameOf(at), atParams{f.world, f.at(at)}, &r)
	return r.decode(err)
}

// Lstat does not follow the last component.
func (f *Files) Lstat(ctx context.Context, p, cwd string) (remotefs.Target, *remotefs.Info, error) {
	var r infoResult
	err := f.simple(ctx, "fs.lstat", "stat", p, pathParams{f.world, Raw(p), f.in(cwd)}, &r)
	return r.decode(err)
}

func (r infoResult) decode(err error) (remotefs.Target, *remotefs.Info, error) {
	if err != nil || r.Target == nil {
		return remotefs.Target{}, r.Info.decode(), err
	}
	return r.Target.decode(), r.Info.decode(), nil
}

func nameOf(at remotefs.At) string {
	if at.Target.Key != "" {
		return at.Target.Display
	}
	return at.Path
}

// at gives the wire form of a name. The directory that the world was opened for
// is said with each path: one far world may serve callers in several.
func (f *Files) at(at remotefs.At) wireAt {
	if at.Cwd == "" {
		at.Cwd = f.cwd
	}
	return encodeAt(at)
}

// in gives the directory of a path.
func (f *Files) in(cwd string) Raw {
	if cwd == "" {
		cwd = f.cwd
	}
	return Raw(cwd)
}

// StreamText asks for the facts and the content at once: one round trip.
func (f *Files) StreamText(ctx context.Context, at remotefs.At) (*remotefs.TextStream, error) {
	if f.opens {
		return f.streamOpened(ctx, at)
	}
	facts, err := f.call(ctx, "fs.stat", "read", nameOf(at), atParams{f.world, f.at(at)})
	if err != nil {
		return nil, err
	}
	content, err := f.call(ctx, "fs.read", "read", nameOf(at), readParams{atParams: atParams{f.world, f.at(at)}, Text: true})
	if err != nil {
		return nil, err
	}
	var r infoResult
	if err := f.result(ctx, facts, "read", nameOf(at), &r); err != nil {
		content.Cancel()
		return nil, err
	}
	if r.Info == nil || r.Info.Type != remotefs.TypeFile || r.Target == nil {
		// The read has the better word for why there is no content.
		return nil, f.refused(ctx, content, at)
	}
	file := &remoteFile{ReadCloser: content.Reader(PortFirst), stream: content, key: string(r.Target.Key), info: r.Info.decode()}
	return remotefs.NewTextStream(ctx, file, r.Target.decode()), nil
}

// streamOpened makes one call, which tells the facts of the file that it opened.
func (f *Files) streamOpened(ctx context.Context, at remotefs.At) (*remotefs.TextStream, error) {
	s, err := f.call(ctx, "fs.read", "read", nameOf(at), readParams{atParams: atParams{f.world, f.at(at)}, Text: true})
	if err != nil {
		return nil, err
	}
	select {
	case e, ok := <-s.Events():
		var r infoResult
		if !ok {
			return nil, f.refused(ctx, s, at)
		}
		if err := json.Unmarshal(e.Fields, &r); err != nil || e.Name != eventOpened || r.Info == nil || r.Target == nil {
			s.Cancel()
			return nil, fault.New(fault.PluginProtocol, "read", nameOf(at), "the provider's first event of a read is %q", e.Name)
		}
		file := &remoteFile{ReadCloser: s.Reader(PortFirst), stream: s, key: string(r.Target.Key), info: r.Info.decode()}
		return remotefs.NewTextStream(ctx, file, r.Target.decode()), nil
	case <-ctx.Done():
		return nil, f.result(ctx, s, "read", nameOf(at), nil)
	}
}

// refused gives the error of a read that cannot have content. A file that came
// into being meanwhile is read by the next call.
func (f *Files) refused(ctx context.Context, content *Stream, at remotefs.At) error {
	content.Reader(PortFirst).Close()
	if err := f.result(ctx, content, "read", nameOf(at), nil); err != nil {
		return err
	}
	return fault.New(fault.FSNotFound, "read", nameOf(at), "cannot read %q: not found", nameOf(at))
}

// remoteFile is the content of a file on its way.
type remoteFile struct {
	io.ReadCloser
	stream *Stream
	key    string
	info   *remotefs.Info
}

func (f *remoteFile) Key() string          { return f.key }
func (f *remoteFile) Info() *remotefs.Info { return f.info }

// Close tells the serving side that no more is wanted.
func (f *remoteFile) Close() error {
	select {
	case <-f.stream.Ended():
		return nil
	default:
		f.stream.Cancel()
		return f.ReadCloser.Close()
	}
}

// ReadText gives the whole text.
func (f *Files) ReadText(ctx context.Context, at remotefs.At) (remotefs.Text, error) {
	s, err := f.StreamText(ctx, at)
	if err != nil {
		return remotefs.Text{}, err
	}
	defer s.Close()
	var b strings.Builder
	n, err := s.WriteTo(&b)
	if err != nil {
		return remotefs.Text{}, err
	}
	return remotefs.Text{Target: s.Target(), Text: strings.TrimPrefix(b.String(), "\uFEFF"), BOM: s.BOM(), Bytes: n, Version: s.Info().Version}, nil
}

// ReadBytes gives raw content.
func (f *Files) ReadBytes(ctx context.Context, at remotefs.At, maxBytes int64) (remotefs.Bytes, error) {
	if maxBytes < 0 {
		return remotefs.Bytes{}, fault.New(fault.Usage, "read", nameOf(at), "the byte limit must be a non-negative integer")
	}
	s, err := f.call(ctx, "fs.read", "read", nameOf(at), readParams{atParams: atParams{f.world, f.at(at)}, MaxBytes: &maxBytes})
	if err != nil {
		return remotefs.Bytes{}, err
	}
	content, err := receive(ctx, s, min(maxBytes, math.MaxInt64-1))
	var r readResult
	if failed := f.result(ctx, s, "read", nameOf(at), &r); failed != nil {
		return remotefs.Bytes{}, failed
	}
	if err != nil {
		return remotefs.Bytes{}, err
	}
	return remotefs.Bytes{Target: r.Target.decode(), Content: content, Version: r.Version}, nil
}

// receive reads the first port of a call to its end. A provider that sends more
// than it may is cut off.
func receive(ctx context.Context, s *Stream, limit int64) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() { s.Cancel() })
	defer stop()
	r := s.Reader(PortFirst)
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if int64(len(b)) > limit {
		r.Close()
		s.Cancel()
		return nil, fault.New(fault.PluginProtocol, s.Method, "", "the provider sent more than the %d bytes it was asked for", limit)
	}
	return b, err
}

// ListDir gives all entries.
func (f *Files) ListDir(ctx context.Context, at remotefs.At) (remotefs.Target, []remotefs.DirEntry, error) {
	s, err := f.call(ctx, "fs.list", "list", nameOf(at), atParams{f.world, f.at(at)})
	if err != nil {
		return remotefs.Target{}, nil, err
	}
	stop := context.AfterFunc(ctx, func() { s.Cancel() })
	defer stop()
	var entries []remotefs.DirEntry
	broken := readLines(s.Reader(PortFirst), func(line []byte) error {
		var e wireEntry
		if err := json.Unmarshal(line, &e); err != nil {
			return fault.Wrap(err, fault.PluginProtocol, "list", nameOf(at), "the provider's listing is malformed")
		}
		entries = append(entries, e.decode())
		return nil
	})
	if broken != nil {
		s.Reader(PortFirst).Close()
		s.Cancel()
	}
	var r listResult
	if err := f.result(ctx, s, "list", nameOf(at), &r); err != nil {
		return remotefs.Target{}, nil, err
	}
	if broken == nil && r.Count != len(entries) {
		broken = fault.New(fault.PluginProtocol, "list", nameOf(at), "the provider announced %d entries and sent %d", r.Count, len(entries))
	}
	return r.Target.decode(), entries, broken
}
