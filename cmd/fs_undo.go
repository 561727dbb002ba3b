package cmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/tree"
	"github.com/afield-dev/afield/pkg/undo"
)

type fsUndoOptions struct {
	list bool
	id   int
	last int
}

// undoResult is the JSON of a change that fs undo lists or took back.
type undoResult struct {
	ID     int     `json:"id"`
	Time   string  `json:"time"`
	Op     string  `json:"op"`
	Path   string  `json:"path"`
	From   *string `json:"from"`
	Undone bool    `json:"undone"`
	Kept   bool    `json:"kept"` // it can be taken back as far as is known
}

func newFSUndo(a *app) *cobra.Command {
	opts := fsUndoOptions{}
	c := &cobra.Command{
		Use:   "undo",
		Short: "Take changes back",
		Long: "List the changes that fs write, edit, patch, rm of single files, and mv made while fs.undo: true stood in the " +
			"profile, and take them back, the latest first. A file that somebody changed since is left as it is: " +
			"FS_STALE_VERSION. What files held is kept in the state directory, up to fs.undoMaxBytes in all and for " +
			"fs.undoMaxHours.",
		Example: "    afield fs undo --list\n    afield fs undo            # the last change\n    afield fs undo --last 3",
		Args:    none,
	}
	f := c.Flags()
	f.BoolVar(&opts.list, "list", false, "list the changes, the latest last")
	f.IntVar(&opts.id, "id", 0, "take this change back (default: the last one)")
	f.IntVar(&opts.last, "last", 1, "take so many changes back")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		if err := firstOf(exclusive(f, "list", "id", "last")); err != nil {
			return err
		}
		if opts.last < 1 || opts.id < 0 {
			return usage("--last and --id must be 1 or more")
		}
		return a.withWorld(ctx, func(w *world) error { return runFSUndo(ctx, a, w, opts) })
	})
	return c
}

func runFSUndo(ctx context.Context, a *app, w *world, opts fsUndoOptions) error {
	store := a.undoStore(w)
	records, err := store.List()
	if err != nil {
		return fault.Wrap(err, fault.FSIOError, "undo", "", "cannot read what was changed: %s", err)
	}
	if opts.list {
		return a.writeUndo(records)
	}
	chosen := chooseUndo(records, opts)
	if len(chosen) == 0 {
		return fault.New(fault.FSNotFound, "undo", "", "there is no change to take back").
			WithHint("changes are remembered while fs.undo: true stands in the profile")
	}
	target, err := a.undoWorld(w)
	if err != nil {
		return err
	}
	var done []undo.Record
	for _, r := range chosen {
		if err = store.Back(ctx, target, r); err != nil {
			break
		}
		r.Undone = true
		done = append(done, r)
	}
	return firstOf(err, a.writeUndo(done))
}

// chooseUndo gives what is to be taken back, the latest first.
func chooseUndo(records []undo.Record, opts fsUndoOptions) []undo.Record {
	var chosen []undo.Record
	for i := len(records) - 1; i >= 0; i-- {
		r := records[i]
		if opts.id != 0 && r.ID == opts.id || opts.id == 0 && !r.Undone && len(chosen) < opts.last {
			chosen = append(chosen, r)
		}
	}
	return chosen
}

// undoStore gives the memory of the world's changes.
func (a *app) undoStore(w *world) *undo.Store {
	b := w.profile.FSBlock
	return undo.NewStore(a.stateDir(), w.Identity(), b.UndoMaxBytes, time.Duration(b.UndoMaxHours)*time.Hour)
}

// undoWorld gives what changes are taken back with; the fence holds here, too.
func (a *app) undoWorld(w *world) (undo.World, error) {
	w.undo = nil // taking back is not remembered
	fs, err := w.files()
	if err != nil {
		return undo.World{}, err
	}
	out := undo.World{Files: fs}
	t, err := a.tree(w)
	out.Remove = func(ctx context.Context, p, version string) error {
		if err != nil {
			return err
		}
		_, err := t.Remove(ctx, p, tree.RemoveOptions{Version: version})
		return err
	}
	out.Move = func(ctx context.Context, from, to string) error {
		if err != nil {
			return err
		}
		_, err := t.Move(ctx, from, to, true, false)
		return err
	}
	return out, nil
}

func (a *app) writeUndo(records []undo.Record) error {
	results := make([]undoResult, len(records))
	for i, r := range records {
		kept := !r.Undone && (!r.Had || r.Before != "" && r.Op != undo.Move)
		results[i] = undoResult{r.ID, r.Time.Format(time.RFC3339Nano), r.Op, lossy(r.Display), orNull(lossy(r.From)), r.Undone, kept}
		if !a.flags.json {
			state := ""
			if r.Undone {
				state = "  taken back"
			}
			if _, err := fmt.Fprintf(a.Out, "%d  %s  %s  %s%s\n", r.ID, r.Time.Format(time.RFC3339), r.Op, visible(lossy(r.Display)), state); err != nil {
				return err
			}
		}
	}
	if a.flags.json {
		return writeJSON(a.Out, results)
	}
	return nil
}

// rememberRemoval keeps what a single file holds before it is removed, and gives
// what is to be called once it is.
func (w *world) rememberRemoval(ctx context.Context, p string) func(tree.Removed) {
	if w.undo == nil {
		return func(tree.Removed) {}
	}
	r := w.undo.Before(ctx, undo.Remove, remotefs.AtPath(p, ""))
	return func(done tree.Removed) {
		r.Key, r.Display = done.Target.Key, done.Target.Display
		if done.Type != remotefs.TypeFile {
			r.Had, r.Before = true, ""
		}
		w.undo.After(ctx, r)
	}
}

// rememberMove records a move that was done.
func (w *world) rememberMove(ctx context.Context, m tree.Moved) {
	if w.undo != nil {
		w.undo.After(ctx, undo.Record{Op: undo.Move, Key: m.To.Key, Display: m.To.Display, From: m.From.Key, Had: m.Replaced, Mode: -1})
	}
}
