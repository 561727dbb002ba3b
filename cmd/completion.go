package cmd

import (
	"bytes"
	"context"
	"io"

	"github.com/spf13/cobra"
)

// shells are those for which completions are generated, and the file that each
// looks for.
func shells() []shell {
	return []shell{
		{"bash", "afield.bash", func(c *cobra.Command, w io.Writer) error { return c.GenBashCompletionV2(w, true) }},
		{"zsh", "_afield", func(c *cobra.Command, w io.Writer) error { return c.GenZshCompletion(w) }},
		{"fish", "afield.fish", func(c *cobra.Command, w io.Writer) error { return c.GenFishCompletion(w, true) }},
		{"powershell", "afield.ps1", func(c *cobra.Command, w io.Writer) error { return c.GenPowerShellCompletionWithDesc(w) }},
	}
}

type shell struct {
	name string
	file string
	gen  func(*cobra.Command, io.Writer) error
}

func newCompletion(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "completion",
		Short: "Print the completion script of a shell",
		Long: "Print the completion script of a shell.\n\n" +
			"Bash, for the running shell:\n\n    source <(afield completion bash)\n\n" +
			"Zsh, for every shell:\n\n    afield completion zsh > \"${fpath[1]}/_afield\"\n\n" +
			"Fish:\n\n    afield completion fish > ~/.config/fish/completions/afield.fish\n\n" +
			"PowerShell:\n\n    afield completion powershell | Out-String | Invoke-Expression",
		Args: knownChild,
		RunE: needsChild,
	}
	for _, s := range shells() {
		c.AddCommand(&cobra.Command{
			Use:   s.name,
			Short: "Print the completion script of " + s.name,
			Args:  none,
			RunE: a.plain(func(context.Context, []string) error {
				return runCompletion(c.Root(), a.Out, s)
			}),
		})
	}
	return c
}

// runCompletion writes the script in one go, so that a failure leaves nothing.
func runCompletion(root *cobra.Command, out io.Writer, s shell) error {
	var b bytes.Buffer
	if err := s.gen(root, &b); err != nil {
		return err
	}
	_, err := out.Write(b.Bytes())
	return err
}
