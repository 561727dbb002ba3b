package provider

import (
	"context"
	"encoding/json"
	"io"
	"slices"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// serveFiles answers one file call of a world.
func serveFiles(s *Stream, files remotefs.FS) {
	if files == nil {
		s.Fail(fault.New(fault.BackendUnsupported, s.Method, "", "this world has no files"))
		return
	}
	c := fileCall{s, files}
	var result any
	var err error
	switch s.Method {
	case "fs.resolve":
		result, err = c.resolve()
	case "fs.stat":
		result, err = c.stat()
	case "fs.lstat":
		result, err = c.lstat()
	case "fs.read":
		result, err = c.read()
	case "fs.list":
		result, err = c.list()
	case "fs.write":
		result, err = c.write()
	case "fs.edit":
		result, err = c.edit()
	default:
		err = unknownMethod(s.Method)
	}
	reply(s, result, err)
}

func reply(s *Stream, result any, err error) {
	if err != nil {
		s.Fail(err)
		return
	}
	s.Finish(result)
}

func unknownMethod(method string) error {
	return fault.New(fault.BackendUnsupported, method, "", "unknown method %s", method)
}

// decodeParams reads the parameters of a call.
func decodeParams(s *Stream, v any) error {
	if err := json.Unmarshal(s.Params, v); err != nil {
		return fault.Wrap(err, fault.BackendProtocol, s.Method, "", "malformed parameters of %s: %s", s.Method, err)
	}
	return nil
}

// fileCall is a file call under way on the serving side.
type fileCall struct {
	*Stream
	files remotefs.FS
}

func (c fileCall) ctx() context.Context { return c.Context() }

func (c fileCall) resolve() (any, error) {
	var p pathParams
	if err := decodeParams(c.Stream, &p); err != nil {
		return nil, err
	}
	t, err := c.files.Resolve(c.ctx(), string(p.Path), string(p.Cwd))
	return targetResult{encodeTarget(c.files, t)}, err
}

func (c fileCall) stat() (any, error) {
	var p atParams
	if err := decodeParams(c.Stream, &p); err != nil {
		return nil, err
	}
	t, info, err := c.files.Stat(c.ctx(), p.At.decode())
	return c.info(t, info), err
}

func (c fileCall) lstat() (any, error) {
	var p pathParams
	if err := decodeParams(c.Stream, &p); err != nil {
		return nil, err
	}
	t, info, err := c.files.Lstat(c.ctx(), string(p.Path), string(p.Cwd))
	return c.info(t, info), err
}

func (c fileCall) info(t remotefs.Target, info *remotefs.Info) infoResult {
	w := encodeTarget(c.files, t)
	return infoResult{&w, encodeInfo(info)}
}

func (c fileCall) read() (any, error) {
	var p readParams
	if err := decodeParams(c.Stream, &p); err != nil {
		return nil, err
	}
	if !p.Text {
		return c.readBytes(p)
	}
	s, err := c.files.StreamText(c.ctx(), p.At.decode())
	if err != nil {
		return nil, err
	}
	defer s.Close()
	c.Emit(eventOpened, map[string]any{"target": encodeTarget(c.files, s.Target()), "info": encodeInfo(s.Info())})
	w := c.Writer(PortFirst)
	n, err := s.WriteTo(w)
	if err != nil {
		return nil, err
	}
	return readResult{encodeTarget(c.files, s.Target()), n, s.Info().Version}, w.Close()
}

func (c fileCall) readBytes(p readParams) (any, error) {
	if p.MaxBytes == nil {
		return nil, fault.New(fault.BackendProtocol, c.Method, "", "fs.read of bytes needs maxBytes")
	}
	b, err := c.files.ReadBytes(c.ctx(), p.At.decode(), *p.MaxBytes)
	if err != nil {
		return nil, err
	}
	if err := c.sendAll(string(b.Content)); err != nil {
		return nil, err
	}
	return readResult{encodeTarget(c.files, b.Target), int64(len(b.Content)), b.Version}, nil
}

// sendAll sends texts one behind the other on the first port.
func (c fileCall) sendAll(texts ...string) error {
	w := c.Writer(PortFirst)
	for _, t := range texts {
		if _, err := io.WriteString(w, t); err != nil {
			return err
		}
	}
	return w.Close()
}

func (c fileCall) list() (any, error) {
	var p atParams
	if err := decodeParams(c.Stream, &p); err != nil {
		return nil, err
	}
	t, entries, err := c.files.ListDir(c.ctx(), p.At.decode())
	if err != nil {
		return nil, err
	}
	w := c.Writer(PortFirst)
	lines := newLineWriter(w)
	for _, e := range entries {
		if err := lines.write(encodeEntry(c.files, e)); err != nil {
			return nil, err
		}
	}
	if err := lines.flush(); err != nil {
		return nil, err
	}
	return listResult{encodeTarget(c.files, t), len(entries)}, w.Close()
}

func (c fileCall) write() (any, error) {
	var p writeParams
	if err := decodeParams(c.Stream, &p); err != nil {
		return nil, err
	}
	req := remotefs.WriteRequest{
		Content: c.Reader(PortInput), Size: -1, Raw: p.Raw, Version: p.Version, Mode: -1, InPlace: p.InPlace,
	}
	if p.Bytes != nil {
		req.Size = *p.Bytes
	}
	if p.Mode != nil {
		req.Mode = *p.Mode
	}
	if slices.Contains(p.Want, "before") {
		req.BasisMax = basisMax(p.BasisMax)
	}
	switch p.Intent {
	case "":
	case "create":
		req.Intent = remotefs.IntentCreate
	case "replace":
		req.Intent = remotefs.IntentReplace
	default:
		return nil, fault.New(fault.BackendProtocol, c.Method, "", "unknown intent %q", p.Intent)
	}
	out, err := c.files.WriteText(c.ctx(), p.At.decode(), req)
	if err != nil {
		return nil, err
	}
	result := writeResult{encodeTarget(c.files, out.Target), out.Operation, out.Version, nil}
	if out.Before == nil {
		return result, nil
	}
	// The change stands; what the caller wanted to know of the past may still
	// fail to arrive without making it a failure.
	if c.sendAll(*out.Before) == nil {
		result.Before = &textSize{int64(len(*out.Before))}
	}
	return result, nil
}

func (c fileCall) edit() (any, error) {
	var p editParams
	if err := decodeParams(c.Stream, &p); err != nil {
		return nil, err
	}
	req := remotefs.EditRequest{
		Version: p.Version, NormalizeEOL: p.NormalizeEOL, DryRun: p.DryRun, InPlace: p.InPlace,
	}
	if len(p.Want) > 0 {
		req.BasisMax = basisMax(p.BasisMax)
	}
	for _, sizes := range append([]editSizes{p.editSizes}, p.More...) {
		e, err := c.readEdit(sizes)
		if err != nil {
			return nil, err
		}
		req.Edits = append(req.Edits, e)
	}
	out, err := c.files.EditText(c.ctx(), p.At.decode(), req)
	if err != nil {
		return nil, err
	}
	result := editResult{Target: encodeTarget(c.files, out.Target), Version: out.Version, Bytes: out.Bytes, Replacements: out.Replacements}
	if out.Before != nil && out.After != nil && c.sendAll(*out.Before, *out.After) == nil {
		result.BeforeBytes, result.AfterBytes, result.Basis = int64(len(*out.Before)), int64(len(*out.After)), true
	}
	return result, nil
}

// maxEditText bounds the texts of one edit, in bytes.
const maxEditText = 64 << 20

func (c fileCall) readEdit(n editSizes) (remotefs.Edit, error) {
	if n.OldBytes < 0 || n.NewBytes < 0 || n.OldBytes+n.NewBytes > maxEditText {
		return remotefs.Edit{}, fault.New(fault.FSTooLarge, "edit", "", "texts of %d bytes are over the limit of %d", n.OldBytes+n.NewBytes, maxEditText)
	}
	b := make([]byte, n.OldBytes+n.NewBytes)
	if _, err := io.ReadFull(c.Reader(PortInput), b); err != nil {
		return remotefs.Edit{}, fault.Wrap(err, fault.BackendProtocol, "edit", "", "the texts of the edit did not arrive whole")
	}
	return remotefs.Edit{Old: string(b[:n.OldBytes]), New: string(b[n.OldBytes:]), All: n.ReplaceAll}, nil
}
