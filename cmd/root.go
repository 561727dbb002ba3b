package cmd

import (
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// globalFlags hold for every command.
type globalFlags struct {
	profileFlags
	json       bool
	timeout    time.Duration
	quiet      bool
	verbose    int
	trace      bool
	noProgress bool
	color      string
	noInput    bool
}

// entry is a command of the top level. Its own flags and children are built
// only when a word of the command line names it: building all of them costs a
// third of the start-up time.
type entry struct {
	name  string
	short string
	build func(*app) *cobra.Command
}

// entries are the commands of the top level in the order of help.
func entries() []entry {
	return []entry{
		{"fs", "Read and change files in the world", newFS},
		{"exec", "Run a program in the world", newExec},
		{"term", "Run a program on a terminal in the world", newTerm},
		{"job", "Run programs in the background that outlive a command", newJob},
		{"which", "Print the path of a program in the world", newWhich},
		{"sandbox", "Make, list and end the worlds of a sandbox service", newSandbox},
		{"profile", "Show, check and choose profiles", newProfile},
		{"plugin", "Install, list and check plugins", newPlugin},
		{"mount", "Read files without sending again what the caller has", newMount},
		{"keeper", "Show and stop the processes that hold connections, terminals and jobs", newKeeper},
		{"doctor", "Check the profile, the backend and this machine", newDoctor},
		{"serve", "Serve the profile's world by the provider protocol", newServe},
		{"conformance", "Run the contract's cases against the profile's world", newConformance},
		{"version", "Print the version", newVersion},
		{"completion", "Print the completion script of a shell", newCompletion},
		{"help", "Explain a command", newHelp},
		{"docs", "", newDocs},
	}
}

// newRoot makes the command tree for args.
func newRoot(a *app, args []string) *cobra.Command {
	root := &cobra.Command{
		Use:           "afield",
		Short:         "Files and processes in a world that is somewhere else",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownChild,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage("%s", err).WithHint("%s", seeHelp(c))
	})
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	addGlobalFlags(root, a)
	all := wantsAll(args)
	if all {
		_ = root.RegisterFlagCompletionFunc("profile", a.completeProfileFlag)
	}
	for _, e := range entries() {
		c := &cobra.Command{Use: e.name, Short: e.short, Hidden: e.short == "", Run: func(*cobra.Command, []string) {}}
		if all || slices.Contains(args, e.name) {
			c = e.build(a)
		}
		root.AddCommand(c)
		if e.name == "help" {
			root.SetHelpCommand(c)
		}
	}
	return root
}

// wantsAll reports whether the whole tree is needed: for help, completion and
// documents.
func wantsAll(args []string) bool {
	for _, arg := range args {
		switch arg {
		case "help", "completion", "docs", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
			return true
		}
	}
	return false
}

func addGlobalFlags(root *cobra.Command, a *app) {
	f := root.PersistentFlags()
	addProfileFlags(f, &a.flags.profileFlags)
	f.BoolVar(&a.flags.json, "json", false, "print one JSON document, or one object a line")
	f.DurationVar(&a.flags.timeout, "timeout", 0, "give up after this `duration`, such as 30s (default: none)")
	f.BoolVarP(&a.flags.quiet, "quiet", "q", false, "print no diagnostics but errors")
	f.CountVarP(&a.flags.verbose, "verbose", "v", "print more diagnostics; repeatable")
	f.BoolVar(&a.flags.trace, "trace", false, "print round trips and bytes of each step on stderr")
	f.BoolVar(&a.flags.noProgress, "no-progress", false, "never draw a progress bar")
	f.StringVar(&a.flags.color, "color", "auto", "colour: auto, always or never")
	f.BoolVar(&a.flags.noInput, "no-input", false, "never ask anything")
}
