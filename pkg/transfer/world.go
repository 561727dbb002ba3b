package transfer

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/script"
	"github.com/afield-dev/afield/pkg/tree"
)

// World is a directory of a world with processes: programs of package script
// archive, take in and sum up files there. The world needs GNU tar, xargs, cmp and
// sha256sum.
type World struct {
	shell *tree.Shell
	root  remotefs.Target
	info  *remotefs.Info // of the root; nil = not there
	only  []string
	renaming
}

// Rename gives the one entry that takes part another name at the target.
func (w *World) Rename(to string) { w.renaming = renaming{w.only[0], to} }

// stream copies one file.
func (w *World) stream(ctx context.Context, name string, to io.Writer) error {
	d, want := sha256.New(), ""
	err := w.send(ctx, []string{name}, true, func(in io.Reader) error {
		tr := tar.NewReader(in)
		if _, err := tr.Next(); err != nil {
			return &fault.Error{Code: fault.FSNotFound, Err: err}
		}
		if _, err := io.Copy(io.MultiWriter(to, d), tr); err != nil {
			return err
		}
		_, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}, func(sums []string) { want = sums[0] })
	if err == nil && want != hex.EncodeToString(d.Sum(nil)) {
		err = errors.New("the content that arrived is not that of the file")
	}
	return err
}

// NewWorld names a directory of a world; info is that of the root, nil if nothing
// is there. Only, if given, are the entries of the directory that take part.
func NewWorld(shell *tree.Shell, root remotefs.Target, info *remotefs.Info, only ...string) *World {
	return &World{shell: shell, root: root, info: info, only: only}
}

// Name is the directory as the user named it.
func (w *World) Name() string { return w.root.Display }

// list looks through the directory.
func (w *World) list(ctx context.Context) ([]entry, error) {
	if w.info == nil {
		return nil, nil
	}
	list := []entry{}
	if w.only == nil {
		list = append(list, entry{mode: int32(w.info.Mode), mtime: w.info.ModTime.UnixNano(), kind: 'd'})
	}
	err := w.shell.Walk(ctx, w.root.Key, remotefs.WalkOptions{Depth: depth(w.only)}, func(n remotefs.Node) error {
		if w.only == nil || slices.Contains(w.only, n.Path) {
			n.Path = w.target(n.Path)
			list = append(list, newEntry(n))
		}
		return nil
	})
	return list, err
}

// names gives paths as the programs want them: from the directory itself, so that
// none looks like an option.
func names(paths []string) []byte {
	var b bytes.Buffer
	for _, p := range paths {
		b.WriteString("./" + p + "\x00")
	}
	return b.Bytes()
}

// sums reads files in the world.
func (w *World) sums(ctx context.Context, paths []string) ([]string, error) {
	var sums []string
	err := w.send(ctx, paths, false, nil, func(s []string) { sums = s })
	return sums, err
}

// send runs the sending program: its archive goes to use, then its digests to
// done. Digests of files that could not be read are missing, so that all are "".
func (w *World) send(ctx context.Context, paths []string, content bool, use func(io.Reader) error, done func([]string)) error {
	own := make([]string, len(paths))
	for i, p := range paths {
		own[i] = w.source(p)
	}
	c := script.Send(w.root.Key, content)
	run, err := w.shell.Start(ctx, c, true)
	if err != nil {
		return err
	}
	go func() {
		in := run.Stdin()
		_, err := in.Write(names(own))
		if err == nil {
			in.Close()
		}
	}()
	err = script.ReadDone(run.Answer, c)
	if err == nil && use != nil {
		err = use(run.Answer)
	}
	var sums []string
	if err == nil {
		sums, err = readSums(run.Answer, c.Nonce, len(paths))
	}
	if err = run.End(ctx, err); err == nil {
		done(sums)
	}
	return err
}

// readSums reads n digests after a nonce. With fewer, some file could not be read,
// and none can be told from another.
func readSums(a *script.Answer, nonce string, n int) ([]string, error) {
	if _, err := a.Begin(nonce); err != nil {
		return nil, err
	}
	sums := make([]string, 0, n)
	for {
		line, err := a.ReadString('\n')
		if err != nil {
			return nil, io.ErrUnexpectedEOF
		}
		if line == "end\n" {
			break
		}
		word, _, _ := strings.Cut(strings.TrimPrefix(line, `\`), " ")
		if len(word) == 64 && len(sums) <= n {
			sums = append(sums, word)
		}
	}
	if len(sums) != n {
		return make([]string, n), nil
	}
	return sums, nil
}

// pull is a batch from the world to this machine.
func (r *run) pull(ctx context.Context, src *World, dst *Host, b batch) ([]entry, error) {
	if err := dst.remove(b.remove); err != nil {
		return nil, err
	}
	var paths []string
	for i := range b.files {
		if b.files[i].kind == 'f' {
			paths = append(paths, b.files[i].path)
		}
	}
	got := make([]staged, len(b.files))
	defer func() { dst.discard(got) }()
	sums := make([]string, len(b.files))
	if len(paths) > 0 {
		err := src.send(ctx, paths, true, func(in io.Reader) (err error) {
			got, err = dst.receive(ctx, tar.NewReader(in), b.files, src.renaming, r)
			return err
		}, func(list []string) { spread(sums, b.files, list) })
		if err != nil {
			return nil, err
		}
	}
	changed := r.outcomes(b.files, dst.settle(b, got, sums))
	return changed, dst.finish(b.dirs)
}

// spread gives the files among the entries their digests.
func spread(sums []string, files []entry, list []string) {
	k := 0
	for i := range files {
		if files[i].kind == 'f' {
			sums[i] = list[k]
			k++
		}
	}
}

// push is a batch from this machine to the world.
func (r *run) push(ctx context.Context, src *Host, dst *World, b batch) ([]entry, error) {
	c := script.Receive(dst.root.Key)
	run, err := dst.shell.Start(ctx, c, true)
	if err != nil {
		return nil, err
	}
	var out []outcome
	fed := make(chan error, 1)
	go func() {
		in := run.Stdin()
		buffer := bufio.NewWriterSize(in, 256<<10)
		tw := tar.NewWriter(buffer)
		var err error
		if out, err = r.archive(ctx, tw, src, b); err == nil {
			err = errors.Join(tw.Close(), buffer.Flush(), in.Close())
		}
		if err != nil {
			run.Stop() // what is staged is given up
		}
		fed <- err
	}()
	trouble, err := script.ReadReceived(run.Answer, c)
	ended := run.End(ctx, err)
	if sending := <-fed; sending != nil && ctx.Err() == nil && ended == nil {
		ended = sending
	}
	if ended != nil {
		return nil, ended
	}
	changed := r.outcomes(b.files, out)
	if trouble != "" {
		return nil, fault.New(fault.FSIOError, "transfer", dst.Name(), "not everything could be published: %s", strings.TrimSpace(trouble))
	}
	return changed, nil
}

// archive writes what the receiving program expects.
func (r *run) archive(ctx context.Context, tw *tar.Writer, src *Host, b batch) ([]outcome, error) {
	out, err := src.write(ctx, tw, "t/", b.files, r)
	if err != nil {
		return nil, err
	}
	var list, sums, drop, remove bytes.Buffer
	for i, f := range b.files {
		if out[i].sum == "" {
			continue
		}
		list.WriteString("./t/" + f.path + "\x00")
		sums.WriteString(out[i].sum + "\n")
		if out[i].changed {
			drop.WriteString("./t/" + f.path + "\x00")
		}
	}
	remove.Write(names(b.remove))
	dirs, err := archiveDirs(b.dirs)
	if err != nil {
		return nil, err
	}
	for _, m := range []struct {
		name    string
		content []byte
	}{{"l", list.Bytes()}, {"s", sums.Bytes()}, {"d", drop.Bytes()}, {"x", remove.Bytes()}, {"m", dirs}, {"e", []byte("\n")}} {
		if m.name == "m" && m.content == nil {
			continue
		}
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: m.name, Size: int64(len(m.content)), Mode: 0o600}); err != nil {
			return nil, err
		}
		if _, err := tw.Write(m.content); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// archiveDirs makes an archive of directories with modes and times.
func archiveDirs(dirs []entry) ([]byte, error) {
	if len(dirs) == 0 {
		return nil, nil
	}
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	for _, d := range dirs {
		h := &tar.Header{Typeflag: tar.TypeDir, Name: "./" + d.path, Mode: int64(d.mode), ModTime: time.Unix(0, d.mtime)}
		if err := writeHeader(tw, h, d.mtime); err != nil {
			return nil, err
		}
	}
	err := tw.Close()
	return b.Bytes(), err
}
