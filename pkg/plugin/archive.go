package plugin

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
)

// Limits bound what an archive or a directory may hold (U-5). Reading stops at
// a bound.
type Limits struct {
	Members int
	Total   int64 // bytes of all files
	File    int64 // bytes of one file
	Packed  int64 // bytes of the archive
	Records int   // bytes of header records of one member
	Ratio   int64 // unpacked : packed, beyond Free
	Free    int64 // bytes that may be unpacked at any ratio
}

// StandardLimits are those of plugins.md 25.
func StandardLimits() Limits {
	return Limits{
		Members: 10000, Total: 512 << 20, File: 256 << 20, Packed: 256 << 20,
		Records: 64 << 10, Ratio: 200, Free: 16 << 20,
	}
}

func tooLarge(format string, args ...any) *fault.Error {
	e := fault.New(fault.PluginTooLarge, "unpack", "", format, args...)
	e.Message = "the plugin is refused: " + e.Message
	return e
}

func invalidArchive(err error, reason string) *fault.Error {
	return fault.Wrap(err, fault.PluginArchiveInvalid, "unpack", "", "the archive is refused: %s", reason)
}

// unpack reads one gzip and tar archive and writes its members into root, which
// cannot be left. What it refuses, it refuses as a whole; the caller removes
// what was written until then.
func unpack(ctx context.Context, archive io.Reader, root *os.Root, lim Limits) (Tree, error) {
	packed := &counted{r: archive, max: lim.Packed, what: "the archive is larger than %d bytes"}
	in := bufio.NewReader(packed)
	zr, err := gzip.NewReader(in)
	if err != nil {
		return Tree{}, firstFault(err, invalidArchive(err, "it is not a gzip file"))
	}
	zr.Multistream(false)
	plain := &inflated{r: zr, packed: packed, lim: lim}
	u := unpacker{ctx: ctx, writer: treeWriter{root: root, lim: lim}, lim: lim, stream: plain}
	if err := u.readAll(tar.NewReader(plain)); err != nil {
		return Tree{}, firstFault(err, invalidArchive(err, "it is not a whole tar archive"))
	}
	if plain.ended {
		return Tree{}, invalidArchive(nil, "it ends early")
	}
	if err := onlyZeros(plain); err != nil {
		return Tree{}, firstFault(err, invalidArchive(err, "bytes follow its end"))
	}
	if err := onlyZeros(in); err != nil {
		return Tree{}, firstFault(err, invalidArchive(err, "bytes follow its end"))
	}
	return u.writer.finish()
}

// firstFault gives err if it has a code, else other.
func firstFault(err error, other *fault.Error) error {
	if fault.CodeOf(err) != "" {
		return err
	}
	return other
}

var errNotZero = errors.New("bytes that are not zero")

// onlyZeros reads to the end, where only padding may be (U-7).
func onlyZeros(r io.Reader) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		for _, b := range buf[:n] {
			if b != 0 {
				return errNotZero
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// counted counts what is read and fails beyond a bound.
type counted struct {
	r    io.Reader
	n    int64
	max  int64
	what string
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if c.n > c.max {
		return 0, tooLarge(c.what, c.max)
	}
	return n, err
}

// inflated is the tar stream. It bounds the ratio while it is read, and gives
// the end apart from the last bytes, so that it is known who saw it.
type inflated struct {
	r      io.Reader
	packed *counted
	lim    Limits
	n      int64
	ended  bool
	eof    bool
	last   [512]byte // the last block that was given
}

func (f *inflated) Read(p []byte) (int, error) {
	if f.eof {
		f.ended = true
		return 0, io.EOF
	}
	n, err := f.r.Read(p)
	f.n += int64(n)
	if over := f.n - f.lim.Free; over > 0 && over > f.lim.Ratio*f.packed.n {
		return 0, tooLarge("it unpacks to more than %d times its size", f.lim.Ratio)
	}
	if err == io.EOF {
		f.eof = true
		if n == 0 {
			f.ended = true
			return 0, io.EOF
		}
		err = nil
	}
	f.keep(p[:n])
	return n, err
}

// keep holds the last block. The tar reader reads nothing ahead, so behind Next
// it is the header of the member.
func (f *inflated) keep(p []byte) {
	if len(p) < len(f.last) {
		copy(f.last[:], f.last[len(p):])
		copy(f.last[len(f.last)-len(p):], p)
		return
	}
	copy(f.last[:], p[len(p)-len(f.last):])
}

// headerSize gives the size that stands in the header block itself, -1 when it
// is no octal number.
func (f *inflated) headerSize() int64 {
	n, err := strconv.ParseInt(strings.Trim(string(f.last[124:136]), " \x00"), 8, 64)
	if err != nil {
		return -1
	}
	return n
}

// unpacker reads the members of a tar stream.
type unpacker struct {
	ctx    context.Context
	writer treeWriter
	stream *inflated
	lim    Limits
	count  int
	top    string // the first component, the same for all members
}

func (u *unpacker) readAll(tr *tar.Reader) error {
	for {
		h, err := tr.Next()
		switch {
		case err == io.EOF && u.count == 0:
			return invalidArchive(nil, "it is empty")
		case err == io.EOF:
			return nil
		case errors.Is(err, tar.ErrInsecurePath):
			return invalidMember(h.Name, "the path leads out of the plugin")
		case err != nil:
			return err
		case u.ctx.Err() != nil:
			return aborted(u.ctx, "unpack")
		}
		if u.count++; u.count > u.lim.Members {
			return tooLarge("it has more than %d members", u.lim.Members)
		}
		if err := u.member(h, tr); err != nil {
			return err
		}
	}
}

func (u *unpacker) member(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader || h.Name == "pax_global_header" {
		return nil
	}
	if err := u.checkRecords(h); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir {
		return invalidMember(h.Name, "it is neither a file nor a directory but of type %q", h.Typeflag)
	}
	path, err := u.below(h)
	if err != nil || path == "" {
		return err
	}
	if h.Typeflag == tar.TypeDir {
		return u.writer.dir(path)
	}
	return u.writer.file(path, h.FileInfo().Mode()&0o111 != 0, h.Size, content)
}

// checkRecords holds the header records of a member against U-3 and U-5. A size
// there must be that of the header: a reader that knows no records would see
// other members.
func (u *unpacker) checkRecords(h *tar.Header) error {
	size := 0
	for key, value := range h.PAXRecords {
		size += len(key) + len(value)
		if strings.HasPrefix(key, "GNU.sparse.") {
			return invalidMember(h.Name, "it is a sparse file")
		}
		if key == "size" && value != strconv.FormatInt(u.stream.headerSize(), 10) {
			return invalidMember(h.Name, "its size in a header record is not that of the header")
		}
	}
	if size > u.lim.Records {
		return tooLarge("the header records of a member have more than %d bytes", u.lim.Records)
	}
	return nil
}

// below gives the path of a member without its first component, "" for the
// directory of that name (U-1).
func (u *unpacker) below(h *tar.Header) (string, error) {
	name := h.Name
	if h.Typeflag == tar.TypeDir {
		name = strings.TrimSuffix(name, "/")
	}
	top, path, found := strings.Cut(name, "/")
	if reason := checkComponent(top); reason != "" {
		return "", invalidMember(h.Name, "%s", reason)
	}
	if !found && h.Typeflag != tar.TypeDir {
		return "", invalidMember(h.Name, "it stands in no directory")
	}
	if u.top == "" {
		u.top = top
	}
	if top != u.top {
		return "", invalidMember(h.Name, "its first component is not %s as that of the members before", quotePath(u.top))
	}
	if !found {
		return "", nil
	}
	if reason := checkPath(path); reason != "" {
		return "", invalidMember(h.Name, "%s", reason)
	}
	return path, nil
}

func aborted(ctx context.Context, op string) error {
	return fault.Aborted(ctx, fault.FSAborted, op, "")
}
