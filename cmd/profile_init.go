package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
)

type profileInitOptions struct {
	name    string
	backend string
	from    string
}

func newProfileInit(a *app) *cobra.Command {
	opts := profileInitOptions{}
	c := &cobra.Command{
		Use:   "init NAME",
		Short: "Write a profile to begin with",
		Long:  "Write a commented profile into the user's configuration. A file that is there is never replaced.",
		Args:  exactly(1, "one NAME"),
	}
	f := c.Flags()
	f.StringVar(&opts.backend, "backend", "local", "the `provider` of files and processes")
	f.StringVar(&opts.from, "from", "", "copy the file of this `profile` (default: none)")
	c.RunE = a.run(func(_ context.Context, args []string) error {
		opts.name = args[0]
		if err := exclusive(f, "backend", "from"); err != nil {
			return err
		}
		return runProfileInit(a, opts)
	})
	_ = c.RegisterFlagCompletionFunc("from", a.completeProfileFlag)
	return c
}

func runProfileInit(a *app, opts profileInitOptions) error {
	places := profile.NewPlaces(a.Environ)
	content, err := initialContent(a, places, opts)
	if err != nil {
		return err
	}
	file, err := places.Init(opts.name, content)
	if err != nil {
		return err
	}
	if a.flags.json {
		return writeJSON(a.Out, fileResult{opts.name, file})
	}
	a.note("wrote %s", places.Shorten(file))
	return nil
}

func initialContent(a *app, places profile.Places, opts profileInitOptions) ([]byte, error) {
	if opts.from != "" {
		return places.ReadFile(opts.from)
	}
	p, ok := a.registry().Provider(opts.backend)
	if !ok {
		return nil, fault.New(fault.ProfileInvalid, "init", opts.backend, "there is no provider %q", opts.backend).
			WithHint("providers are %s", strings.Join(a.registry().Names(), ", "))
	}
	return profile.Template(p), nil
}
