package cmd

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
)

type profileImportDshOptions struct {
	name string
	home string
	as   string
	dry  bool
}

// importedResult is the JSON of profile import-dsh. File is null where nothing
// was written.
type importedResult struct {
	Name    string   `json:"name"`
	File    *string  `json:"file"`
	Content string   `json:"content"`
	Left    []string `json:"left"`
	Notes   []string `json:"notes"`
}

func newProfileImportDsh(a *app) *cobra.Command {
	opts := profileImportDshOptions{}
	c := &cobra.Command{
		Use:   "import-dsh PROFILE",
		Short: "Write a profile from one of dsh",
		Long: "Read a profile of dsh and write what it means into the user's configuration. Nothing of it is evaluated or run, and " +
			"literal keys are not copied. What has no meaning here is listed on stderr. A file that is there is never replaced.",
		Args: exactly(1, "one PROFILE"),
	}
	f := c.Flags()
	f.StringVar(&opts.home, "home", "", "the `directory` of dsh (default: DSH_HOME, else ~/.dsh)")
	f.StringVar(&opts.as, "as", "", "the `name` of the new profile (default: that of the old one)")
	f.BoolVar(&opts.dry, "dry-run", false, "print the profile and write nothing")
	c.RunE = a.run(func(_ context.Context, args []string) error {
		opts.name = args[0]
		if opts.as == "" {
			opts.as = opts.name
		}
		return runProfileImportDsh(a, opts)
	})
	return c
}

func runProfileImportDsh(a *app, o profileImportDshOptions) error {
	places := profile.NewPlaces(a.Environ)
	home := o.home
	if home == "" {
		home = a.getenv("DSH_HOME")
	}
	if home == "" && places.Home != "" {
		home = filepath.Join(places.Home, ".dsh")
	}
	dir, err := a.Dir()
	if err != nil || home == "" {
		return fault.New(fault.FSIOError, "import", "", "there is no home directory to look for dsh in").WithHint("name it with --home")
	}
	if !filepath.IsAbs(home) {
		home = filepath.Join(dir, home)
	}
	found, err := profile.ImportDsh(home, o.name)
	if err != nil {
		return err
	}
	r := importedResult{Name: o.as, Content: string(found.Content), Left: append([]string{}, found.Left...), Notes: append([]string{}, found.Notes...)}
	if !o.dry {
		file, err := places.Init(o.as, found.Content)
		if err != nil {
			return err
		}
		r.File = &file
	}
	return writeImported(a, r, places)
}

func writeImported(a *app, r importedResult, places profile.Places) error {
	if a.flags.json {
		return writeJSON(a.Out, r)
	}
	for _, x := range r.Left {
		a.note("not taken over: %s", x)
	}
	for _, x := range r.Notes {
		a.note("note: %s", x)
	}
	if r.File != nil {
		a.note("wrote %s", places.Shorten(*r.File))
		return nil
	}
	_, err := a.Out.Write([]byte(r.Content))
	return err
}
