package plugin

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"hash"
	"io"
	"os"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
)

// isIntegrity reports whether s is a digest of an archive as npm writes it.
func isIntegrity(s string) bool {
	text, ok := strings.CutPrefix(s, "sha512-")
	sum, err := base64.StdEncoding.DecodeString(text)
	return ok && err == nil && len(sum) == sha512.Size
}

// fetch brings a source to where the candidate is to be: an archive unpacked, a
// directory copied, or linked (T-3 to T-5).
func (h *Host) fetch(ctx context.Context, c *candidate, o AddOptions) error {
	lim := StandardLimits()
	if o.MaxUnpacked > 0 {
		lim.Total = o.MaxUnpacked
		lim.File = max(lim.File, o.MaxUnpacked)
	}
	if c.source.Kind == KindArchive {
		info, err := os.Stat(c.source.path())
		if err != nil {
			return fault.Wrap(err, fault.PluginNotFound, "add", c.source.path(), "there is nothing to add at %s: %s", quotePath(c.source.path()), reason(err))
		}
		if info.IsDir() {
			c.source.Kind = KindDirectory
		}
	}
	switch {
	case c.source.Kind == KindDirectory && o.Integrity != "":
		return fault.New(fault.Usage, "add", c.source.path(), "--integrity is for archives, and %s is a directory", quotePath(c.source.path()))
	case c.source.Kind == KindDirectory && o.Link:
		c.dir, c.entry.Link = c.source.path(), c.source.path()
		return nil
	case o.Link:
		return fault.New(fault.Usage, "add", c.source.Text, "--link is for directories")
	case c.source.Kind == KindDirectory:
		return h.copy(ctx, c, lim)
	}
	return h.unpackFile(ctx, c, o, lim)
}

func (h *Host) copy(ctx context.Context, c *candidate, lim Limits) error {
	from, err := os.OpenRoot(c.source.path())
	if err != nil {
		return ioFault(err, "read", c.source.path())
	}
	defer from.Close()
	to, err := makeRoot(c.dir)
	if err != nil {
		return err
	}
	defer to.Close()
	c.tree, err = copyDirectory(ctx, from, to, lim)
	return err
}

func makeRoot(dir string) (*os.Root, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, ioFault(err, "make", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, ioFault(err, "open", dir)
	}
	return root, nil
}

// unpackFile brings an archive into the staging area, and unpacks the very
// bytes that were hashed: those of one open file (case 70).
func (h *Host) unpackFile(ctx context.Context, c *candidate, o AddOptions, lim Limits) error {
	staged, err := os.OpenFile(c.dir+".tgz", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return ioFault(err, "write", c.dir+".tgz")
	}
	defer staged.Close()
	sums := newSums(c.source.Kind == KindGitHub)
	if err := h.bring(ctx, c, o, io.MultiWriter(staged, sums), lim); err != nil {
		return err
	}
	if err := staged.Sync(); err != nil {
		return ioFault(err, "write", staged.Name())
	}
	h.at("T-4")
	c.entry.Integrity = sums.sha512()
	if err := c.checkDigests(sums, o); err != nil {
		return err
	}
	if c.source.remote() && !o.DryRun {
		h.keep(staged, c.entry.Integrity, c.entry.Resolved)
	}
	h.at("T-5")
	if _, err := staged.Seek(0, io.SeekStart); err != nil {
		return ioFault(err, "read", staged.Name())
	}
	root, err := makeRoot(c.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	c.tree, err = unpack(ctx, staged, root, lim)
	return err
}

// checkDigests holds the bytes that came against what was asked for and against
// what their place says of them (T-4).
func (c *candidate) checkDigests(s *sums, o AddOptions) error {
	if o.Integrity != "" && o.Integrity != c.entry.Integrity {
		return fault.New(fault.PluginIntegrity, "add", c.source.Text, "the archive is %s and --integrity says %s", c.entry.Integrity, o.Integrity)
	}
	want := c.place.integrity
	got := c.entry.Integrity
	if strings.HasPrefix(want, "sha256-") {
		got = s.sha256()
	}
	if want != "" && want != got {
		return fault.New(fault.PluginIntegrity, "add", c.source.Text, "the archive is %s and %s says %s", got, c.place.said, want)
	}
	return nil
}

// sums hashes what is written to it: always for the lock, and shorter where the
// source speaks of such digests.
type sums struct{ strong, short hash.Hash }

func newSums(short bool) *sums {
	s := &sums{strong: sha512.New()}
	if short {
		s.short = sha256.New()
	}
	return s
}

func (s *sums) Write(p []byte) (int, error) {
	if s.short != nil {
		s.short.Write(p)
	}
	return s.strong.Write(p)
}

func (s *sums) sha512() string {
	return "sha512-" + base64.StdEncoding.EncodeToString(s.strong.Sum(nil))
}
func (s *sums) sha256() string {
	return "sha256-" + base64.StdEncoding.EncodeToString(s.short.Sum(nil))
}

// bring copies the bytes of an archive.
func (h *Host) bring(ctx context.Context, c *candidate, o AddOptions, w io.Writer, lim Limits) error {
	if c.source.remote() {
		p, err := h.placeOf(ctx, c, o)
		if err != nil {
			return err
		}
		c.place, c.entry.Resolved = p, p.resolved
		if c.source.Kind == KindGitHub {
			c.entry.Tag = p.version
		}
		return h.bringRemote(ctx, p, w, lim)
	}
	c.entry.Resolved = c.source.Name
	if o.from != nil {
		c.place = *o.from
	}
	f, err := os.Open(c.source.path())
	if err != nil {
		return ioFault(err, "read", c.source.path())
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return fault.New(fault.PluginArchiveInvalid, "add", c.source.path(), "%s is not a regular file", quotePath(c.source.path()))
	}
	n, err := io.Copy(w, io.LimitReader(f, lim.Packed+1))
	if err != nil {
		return ioFault(err, "read", c.source.path())
	}
	if n > lim.Packed {
		return tooLarge("the archive is larger than %d bytes", lim.Packed)
	}
	return nil
}

// placeOf gives where the archive is: as the lock has it, or as the source says
// now.
func (h *Host) placeOf(ctx context.Context, c *candidate, o AddOptions) (place, error) {
	if o.from != nil {
		return *o.from, nil
	}
	return h.locate(ctx, c.source, o)
}

// reason gives why a file operation failed, without its path.
func reason(err error) string {
	if pe, ok := err.(*os.PathError); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
