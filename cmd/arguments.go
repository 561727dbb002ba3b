package cmd

import (
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

// rawArguments marks a command whose arguments are passed on byte for byte.
const rawArguments = "raw-arguments"

// rawFlags marks a flag whose value may hold any bytes.
const rawFlags = "raw"

// checkArguments refuses what no command can take: bytes that are not text, and
// values of the global flags outside their bounds.
func (a *app) checkArguments(c *cobra.Command, args []string) error {
	var err error
	c.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && f.Annotations[rawFlags] == nil && !utf8.ValidString(f.Value.String()) {
			err = usage("the value of --%s is not valid UTF-8", f.Name)
		}
	})
	if err != nil {
		return err
	}
	if c.Annotations[rawArguments] == "" {
		for i, arg := range args {
			if !utf8.ValidString(arg) {
				return usage("argument %d is not valid UTF-8: %q", i+1, arg)
			}
		}
	}
	return a.checkGlobals(c.Flags())
}

func (a *app) checkGlobals(f *pflag.FlagSet) error {
	if f.Changed("timeout") && (a.flags.timeout <= 0 || a.flags.timeout > remoteexec.MaxDelay) {
		return usage("--timeout must be between 1ns and %s", remoteexec.MaxDelay)
	}
	if err := a.flags.profileFlags.check(f); err != nil {
		return err
	}
	switch a.flags.color {
	case "auto", "always", "never":
		return nil
	}
	return usage("--color must be auto, always or never")
}

// exactly takes n positional arguments; what names them in the message.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return usage("%s takes %s, got %d argument(s)", c.CommandPath(), what, len(args)).
				WithHint("%s", seeHelp(c))
		}
		return nil
	}
}

// atLeast takes n positional arguments or more.
func atLeast(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < n {
			return usage("%s takes %s, got %d argument(s)", c.CommandPath(), what, len(args)).
				WithHint("%s", seeHelp(c))
		}
		return nil
	}
}

// none takes no positional argument.
func none(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no argument, got %q", c.CommandPath(), args[0]).WithHint("%s", seeHelp(c))
	}
	return nil
}

func seeHelp(c *cobra.Command) string { return "see " + c.CommandPath() + " --help" }

// exclusive refuses more than one flag of a group.
func exclusive(f *pflag.FlagSet, group ...string) error {
	first := ""
	for _, name := range group {
		switch {
		case !f.Changed(name):
		case first != "":
			return usage("--%s and --%s cannot be used together", first, name)
		default:
			first = name
		}
	}
	return nil
}

// oneOf wants at least one flag of a group.
func oneOf(f *pflag.FlagSet, group ...string) error {
	for _, name := range group {
		if f.Changed(name) {
			return nil
		}
	}
	return usage("one of --%s is required", strings.Join(group, ", --"))
}

// firstOf gives the first error of a list.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
