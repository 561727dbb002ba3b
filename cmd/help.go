package cmd

import (
	"github.com/spf13/cobra"
)

func newHelp(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND...]",
		Short: "Explain a command",
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return childNames(c.Root(), args), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			target, rest, err := c.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = knownChild(target, rest)
			}
			if err != nil {
				return err
			}
			a.started = true
			return target.Help()
		},
	}
}

// childNames gives the commands below the one that words name, for completion.
func childNames(root *cobra.Command, words []string) []string {
	target, rest, err := root.Find(words)
	if err != nil || len(rest) > 0 {
		return nil
	}
	var names []string
	for _, child := range target.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name()+"\t"+child.Short)
		}
	}
	return names
}
