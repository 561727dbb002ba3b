package cmd

import (
	"context"
	"encoding/base64"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/remotefs"
)

type fsReadOptions struct {
	path     string
	bytes    bool
	maxBytes int64
}

// readResult is the JSON of fs read.
type readResult struct {
	Target  targetResult `json:"target"`
	Text    string       `json:"text"`
	Bytes   int64        `json:"bytes"`
	Version string       `json:"version"`
	BOM     bool         `json:"bom"`
}

// readBytesResult is the JSON of fs read --bytes.
type readBytesResult struct {
	Target  targetResult `json:"target"`
	Base64  string       `json:"base64"`
	Bytes   int64        `json:"bytes"`
	Version string       `json:"version"`
}

func newFSRead(a *app) *cobra.Command {
	opts := fsReadOptions{}
	c := &cobra.Command{
		Use:   "read PATH",
		Short: "Print the text of a file",
		Long: "Print the exact bytes of a text file, each piece once it is proven to be UTF-8 text. " +
			"A bad byte late in a large file makes the command fail after part of it was printed.",
		Example:           "    afield fs read main.go\n    afield fs read --bytes --max-bytes 1048576 logo.png > logo.png",
		Args:              exactly(1, "one PATH"),
		ValidArgsFunction: a.completePath,
	}
	f := c.Flags()
	f.BoolVar(&opts.bytes, "bytes", false, "print raw bytes, whatever they are; needs --max-bytes")
	f.Int64Var(&opts.maxBytes, "max-bytes", 0, "with --bytes: refuse a file of more than `N` bytes (required with --bytes)")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		opts.path = args[0]
		switch {
		case opts.bytes && !f.Changed("max-bytes"):
			return usage("--bytes needs --max-bytes N, the most that may be read")
		case f.Changed("max-bytes") && !opts.bytes:
			return usage("--max-bytes needs --bytes").WithHint("afield fs view reads a window of a text file")
		case opts.maxBytes < 0:
			return usage("--max-bytes must be a non-negative integer")
		}
		return a.withFiles(ctx, func(fs remotefs.FS) error {
			if opts.bytes {
				return runFSReadBytes(ctx, a, fs, opts)
			}
			return runFSRead(ctx, a, fs, opts)
		})
	})
	return c
}

func runFSRead(ctx context.Context, a *app, fs remotefs.FS, opts fsReadOptions) error {
	at := remotefs.AtPath(opts.path, "")
	if a.flags.json {
		t, err := fs.ReadText(ctx, at)
		if err != nil {
			return err
		}
		return writeJSON(a.Out, readResult{newTargetResult(fs, t.Target), t.Text, t.Bytes, t.Version, t.BOM})
	}
	s, err := fs.StreamText(ctx, at)
	if err != nil {
		return err
	}
	defer s.Close()
	out := a.newOutput(ctx)
	var bar *progress
	if !a.Terminal(a.Out) { // the text itself is in the way
		bar = a.startProgress("read", s.Info().Size)
	}
	defer bar.stop()
	_, err = s.WriteTo(bar.writer(out))
	return err
}

func runFSReadBytes(ctx context.Context, a *app, fs remotefs.FS, opts fsReadOptions) error {
	b, err := fs.ReadBytes(ctx, remotefs.AtPath(opts.path, ""), opts.maxBytes)
	if err != nil {
		return err
	}
	if a.flags.json {
		text := base64.StdEncoding.EncodeToString(b.Content)
		return writeJSON(a.Out, readBytesResult{newTargetResult(fs, b.Target), text, int64(len(b.Content)), b.Version})
	}
	_, err = a.newOutput(ctx).Write(b.Content)
	return err
}
