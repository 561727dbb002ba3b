package cmd

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/keeper"
	"github.com/afield-dev/afield/pkg/profile"
)

// heldRow is the row whose keeper holds the terminals and jobs of a profile.
type heldRow struct {
	profile *profile.Profile
	req     backend.OpenRequest
	keeping *keeping
}

// heldRow names the keeper; a profile that wants none cannot hold anything.
func (a *app) heldRow(ctx context.Context) (*heldRow, error) {
	p, err := a.loadProfile()
	if err != nil {
		return nil, err
	}
	req, err := a.openRequest(p, p.Exec)
	if err != nil {
		return nil, err
	}
	k, err := a.keepingOf(ctx, p, p.Exec, req)
	switch {
	case err != nil:
		return nil, err
	case k != nil:
		return &heldRow{p, req, k}, nil
	case !builtIn(p.Exec.Provider.Name):
		return nil, fault.New(fault.BackendUnsupported, "hold", "", "the worlds of the plugin provider %s have no keeper, so nothing can outlive a command there", p.Exec.Provider.Name)
	}
	return nil, fault.New(fault.BackendUnsupported, "hold", "", "the keeper is switched off, so nothing can outlive a command").
		WithHint("AFIELD_KEEP and the profile's key keep must not be off")
}

// holding starts the keeper unless it lives, and opens its world for a program
// that is to be held.
func (a *app) holding(ctx context.Context, f func(*keeper.Client, *world) error) error {
	row, err := a.heldRow(ctx)
	if err != nil {
		return err
	}
	if err := a.start(row.keeping); err != nil {
		return err
	}
	client, err := row.keeping.place.Dial(ctx, row.keeping.setup)
	if err != nil {
		return fault.Wrap(err, fault.BackendUnreachable, "hold", row.keeping.setup.Socket, "the keeper does not answer: %s", err).
			WithHint("see its log %s", row.keeping.setup.Log)
	}
	defer client.Close()
	w, err := client.World(ctx, row.keeping.caller(row.req))
	if err != nil {
		return onBackend(err, row.profile.Exec.Provider.Name)
	}
	name := row.profile.Exec.Provider.Name
	err = f(client, &world{World: w, profile: row.profile, provider: name, near: row.profile.Exec.Provider.Near})
	w.Close(context.WithoutCancel(ctx))
	return onBackend(err, name)
}

// withHeld connects to the keeper that holds something of this id.
func (a *app) withHeld(ctx context.Context, id string, f func(*keeper.Client) error) error {
	row, err := a.heldRow(ctx)
	if err != nil {
		return err
	}
	client, err := row.keeping.place.Dial(ctx, row.keeping.setup)
	if err != nil {
		return fault.Wrap(err, fault.ExecUnknownSession, "hold", id, "there is no terminal or job %q: no keeper of this profile answers", id).
			WithHint("it holds them for the same profile, state directory and build of afield only")
	}
	defer client.Close()
	return onBackend(f(client), row.profile.Exec.Provider.Name)
}

// startedJSON is the result of term open and job start.
type startedJSON struct {
	ID        string      `json:"id"`
	Name      *string     `json:"name"`
	PID       int         `json:"pid"`
	Kind      keeper.Kind `json:"kind"`
	Backend   string      `json:"backend"`
	StartedAt time.Time   `json:"startedAt"`
}

// writeStarted prints the id of what was started.
func (a *app) writeStarted(i keeper.Info) error {
	if a.flags.json {
		return writeJSON(a.Out, startedJSON{i.ID, i.Name, i.PID, i.Kind, i.Backend, i.StartedAt})
	}
	_, err := fmt.Fprintln(a.Out, i.ID)
	return err
}

// runHeldList lists the terminals, or the jobs.
func runHeldList(ctx context.Context, a *app, jobs bool) error {
	row, err := a.heldRow(ctx)
	if err != nil {
		return err
	}
	all := []keeper.Info{}
	if client, err := row.keeping.place.Dial(ctx, row.keeping.setup); err == nil {
		defer client.Close()
		if all, err = client.Held(ctx); err != nil {
			return err
		}
	}
	list := []keeper.Info{}
	for _, i := range all {
		if (i.Kind == keeper.KindJob) == jobs {
			list = append(list, i)
		}
	}
	if a.flags.json {
		return writeJSON(a.Out, list)
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, i := range list {
		name := "-"
		if i.Name != nil {
			name = *i.Name
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", i.ID, visible(name), heldState(i), i.PID, sinceText(i.StartedAt), visible(fmt.Sprintf("%q", i.Argv)))
	}
	return w.Flush()
}

// heldState says in a word or two how a program is.
func heldState(i keeper.Info) string {
	switch {
	case i.Signal != nil:
		return i.State + " " + *i.Signal
	case i.ExitCode != nil:
		return fmt.Sprintf("%s %d", i.State, *i.ExitCode)
	}
	return i.State
}

// heldRead are the flags of a read.
type heldReadOptions struct {
	from     int64
	wait     time.Duration
	maxBytes int64
}

func (o *heldReadOptions) add(f *pflag.FlagSet) {
	f.Int64Var(&o.from, "from", 0, "read from this `offset` in the whole stream, in bytes (default 0)")
	f.DurationVar(&o.wait, "wait", 0, "wait this long for output at the offset (default: no wait)")
	f.Int64Var(&o.maxBytes, "max-bytes", defaultReadMax, "read at most this many `bytes`")
}

// defaultReadMax is the most that one read gives unless asked, in bytes.
const defaultReadMax = 256 << 10

func (o *heldReadOptions) check() error {
	switch {
	case o.from < 0:
		return usage("--from must not be negative")
	case o.wait < 0:
		return usage("--wait must not be negative")
	case o.maxBytes < 4:
		return usage("--max-bytes must be at least 4")
	}
	return nil
}

// heldExit is how a program ended; the result holds null while it runs.
type heldExit struct {
	ExitCode *int    `json:"exitCode"`
	Signal   *string `json:"signal"`
}

// readJSON is a part of an output. Text is lossy where the bytes are not UTF-8,
// and Base64 has them then.
type readJSON struct {
	From       int64   `json:"from"`
	NextOffset int64   `json:"nextOffset"`
	Text       string  `json:"text"`
	Base64     *string `json:"base64"`
	Lossy      bool    `json:"lossy"`
}

func exitOf(i keeper.Info) *heldExit {
	if i.ExitCode == nil && i.Signal == nil {
		return nil
	}
	return &heldExit{i.ExitCode, i.Signal}
}

// readPart makes one read. A character that has not come whole, or that the
// bound cuts, is left for the next.
func readPart(ctx context.Context, c *keeper.Client, r keeper.ReadRequest) (readJSON, []byte, keeper.ReadResult, error) {
	result, b, err := c.Read(ctx, r)
	if err != nil {
		return readJSON{}, nil, result, err
	}
	if n := unfinishedTail(b); n > 0 && !result.Ended && n < len(b) {
		b = b[:len(b)-n]
		result.NextOffset -= int64(n)
	}
	part := readJSON{From: result.From, NextOffset: result.NextOffset, Lossy: result.Lossy}
	part.Text, part.Base64 = lossyText(b)
	return part, b, result, nil
}

// problem tells on stderr that a program's fate is not known.
func (a *app) problem(i keeper.Info) {
	if i.Problem != nil {
		a.note("warning: %s: %s", i.ID, *i.Problem)
	}
}
