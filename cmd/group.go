package cmd

import (
	"strings"

	"github.com/spf13/cobra"
)

// newGroup makes a command that only holds others. Alone, or with a word that
// names none of them, it fails.
func newGroup(name, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  knownChild,
		RunE:  needsChild,
	}
	c.AddCommand(children...)
	return c
}

// knownChild refuses the first word that names no command.
func knownChild(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := usage("unknown command %q for %q", args[0], c.CommandPath()).WithHint("%s", seeHelp(c))
	c.SuggestionsMinimumDistance = 2
	if like := c.SuggestionsFor(args[0]); len(like) > 0 {
		err.WithHint("did you mean %s?", strings.Join(like, " or "))
	}
	return err
}

func needsChild(c *cobra.Command, _ []string) error {
	var names []string
	for _, child := range c.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
		}
	}
	return usage("%s needs a command", c.CommandPath()).
		WithHint("one of %s; see %s --help", strings.Join(names, ", "), c.CommandPath())
}
