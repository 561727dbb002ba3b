package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/mount"
	"github.com/afield-dev/afield/pkg/remotefs"
)

type mountWroteOptions struct {
	callFlags
	path    string
	content string
}

func newMountWrote(a *app) *cobra.Command {
	opts := mountWroteOptions{}
	c := &cobra.Command{
		Use:   "wrote PATH",
		Short: "Note that the caller stored a whole file",
		Long: "Note that the caller stored a whole file with another tool than afield. With the stored content the " +
			"file counts as known if that is what is on disk now; without it the next read compares.",
		Example:           "    afield mount wrote notes.md --content notes.md.sent",
		Args:              exactly(1, "one PATH"),
		ValidArgsFunction: a.completePath,
	}
	c.Flags().StringVar(&opts.content, "content", "", "`file` of the host with the stored content, - for standard input (default: not known)")
	opts.addCall(c.Flags())
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		opts.path = args[0]
		if err := checkBlank(opts.path); err != nil {
			return err
		}
		return a.withMount(ctx, opts.callFlags, func(m *mount.Mount, call mount.Call) error {
			return runMountWrote(ctx, a, m, call, opts)
		})
	})
	return c
}

func runMountWrote(ctx context.Context, a *app, m *mount.Mount, call mount.Call, opts mountWroteOptions) error {
	var content []byte
	if opts.content != "" {
		text, err := a.readHostText(ctx, opts.content)
		if err != nil {
			return err
		}
		content = []byte(text)
	}
	answer, err := m.Wrote(ctx, remotefs.AtPath(opts.path, ""), content, call)
	if err != nil {
		return err
	}
	if a.flags.json {
		return writeJSON(a.Out, answer)
	}
	_, err = fmt.Fprintln(a.Out, wroteSentence(answer))
	return err
}

func wroteSentence(w mount.WroteAnswer) string {
	if w.Reason != nil {
		return fmt.Sprintf("unmounted (%s)", *w.Reason)
	}
	return fmt.Sprintf("known, %d lines", w.TotalLines)
}

type mountEditedOptions struct {
	callFlags
	path string
}

func newMountEdited(a *app) *cobra.Command {
	opts := mountEditedOptions{}
	c := &cobra.Command{
		Use:   "edited PATH",
		Short: "Note that a file was changed with another tool",
		Long: "Note that a part of a file was changed with another tool than afield. The next read compares and " +
			"prints only the lines that changed.",
		Example:           "    sed -i s/one/two/ notes.md && afield mount edited notes.md",
		Args:              exactly(1, "one PATH"),
		ValidArgsFunction: a.completePath,
	}
	opts.addCall(c.Flags())
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		opts.path = args[0]
		if err := checkBlank(opts.path); err != nil {
			return err
		}
		return a.withMount(ctx, opts.callFlags, func(m *mount.Mount, call mount.Call) error {
			answer, err := m.Edited(ctx, remotefs.AtPath(opts.path, ""), call)
			if err != nil {
				return err
			}
			return a.answer(answer, answer.Kind)
		})
	})
	return c
}

// answer prints a result: the document with --json, else the sentence.
func (a *app) answer(document any, sentence string) error {
	if a.flags.json {
		return writeJSON(a.Out, document)
	}
	_, err := fmt.Fprintln(a.Out, sentence)
	return err
}
