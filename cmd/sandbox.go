package cmd

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
)

func newSandbox(a *app) *cobra.Command {
	return newGroup("sandbox", "Make, list and end the worlds of a sandbox service",
		newSandboxCreate(a), newSandboxList(a), newSandboxInfo(a), newSandboxExtend(a), newSandboxPause(a),
		newSandboxResume(a), newSandboxKill(a), newSandboxGC(a), newSandboxSnapshot(a), newSandboxSnapshots(a))
}

// sandboxResult is the JSON of one sandbox.
type sandboxResult struct {
	ID        string            `json:"id"`
	Backend   string            `json:"backend"`
	State     *string           `json:"state"`
	CreatedAt *string           `json:"createdAt"`
	ExpiresAt *string           `json:"expiresAt"`
	Labels    map[string]string `json:"labels"`
	Owned     bool              `json:"owned"`
}

// openSandboxes gives the lifetime of the worlds of the profile's backend.
func (a *app) openSandboxes(ctx context.Context) (backend.Sandboxes, string, error) {
	p, err := a.loadProfile()
	if err != nil {
		return nil, "", err
	}
	row := p.Exec
	if p.FS != nil {
		row = p.FS
	}
	if row.Provider.Sandboxes == nil {
		e := fault.New(fault.BackendUnsupported, "sandbox", "", "the backend %s has no sandboxes to make or end", row.Provider.Name)
		e.Backend = row.Provider.Name
		return nil, "", e.WithHint("use a profile whose backend is a sandbox service: --profile NAME")
	}
	req, err := a.openRequest(p, row)
	if err != nil {
		return nil, "", err
	}
	boxes, err := row.Provider.Sandboxes(ctx, req)
	return boxes, row.Provider.Name, err
}

// sandboxCommand makes a command about one sandbox, which it prints.
func (a *app) sandboxCommand(use, short, long string, act func(context.Context, backend.Sandboxes, string) (backend.Sandbox, error)) *cobra.Command {
	return &cobra.Command{
		Use: use + " ID", Short: short, Long: long, Args: exactly(1, "one ID"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			boxes, name, err := a.openSandboxes(ctx)
			if err != nil {
				return err
			}
			b, err := act(ctx, boxes, args[0])
			if err != nil {
				return err
			}
			return a.writeSandbox(b, name)
		}),
	}
}

func newSandboxResult(b backend.Sandbox, name string) sandboxResult {
	r := sandboxResult{ID: b.ID, Backend: name, State: orNull(b.State), CreatedAt: timeOrNull(b.CreatedAt),
		ExpiresAt: timeOrNull(b.ExpiresAt), Labels: b.Labels, Owned: b.Owned}
	if r.Labels == nil {
		r.Labels = map[string]string{}
	}
	return r
}

// writeSandbox prints one sandbox.
func (a *app) writeSandbox(b backend.Sandbox, name string) error {
	r := newSandboxResult(b, name)
	if a.flags.json {
		return writeJSON(a.Out, r)
	}
	_, err := fmt.Fprintln(a.Out, r.line())
	return err
}

// line is a sandbox for people: id, state, end, labels.
func (r sandboxResult) line() string {
	words := []string{r.ID, "-", "-"}
	if r.State != nil {
		words[1] = *r.State
	}
	if r.ExpiresAt != nil {
		words[2] = "until " + *r.ExpiresAt
	}
	var labels []string
	for k, v := range r.Labels {
		labels = append(labels, oneLine(k+"="+v))
	}
	sort.Strings(labels)
	return strings.Join(append(words, labels...), "  ")
}

// pairs reads entries of the form K=V.
func pairs(flag string, entries []string) (map[string]string, error) {
	out := make(map[string]string, len(entries))
	for _, e := range entries {
		k, v, ok := strings.Cut(e, "=")
		if !ok || k == "" {
			return nil, usage("--%s takes NAME=VALUE, not %q", flag, e)
		}
		out[k] = v
	}
	return out, nil
}
