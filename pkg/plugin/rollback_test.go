package plugin

import (
	"context"
	"os"
	"testing"

	"github.com/afield-dev/afield/pkg/fault"
)

// Case 99: the version before comes back from the store, and a second rollback
// returns; one that was changed on disk does not.
func TestRollback(t *testing.T) {
	h, ctx := newHost(t), context.Background()
	a := pluginArchive(t, pluginFiles("acme", "1.0.0"))
	h.mustAdd(t, AddOptions{NoStart: true}, a)
	_, err := h.Rollback(ctx, "default", "acme", false, composer(h))
	wantCode(t, err, fault.PluginNotFound)
	old := h.entry(t, "acme").Tree
	content, _ := os.ReadFile(pluginArchive(t, pluginFiles("acme", "1.1.0")))
	os.WriteFile(a, content, 0o644)
	h.mustAdd(t, AddOptions{NoStart: true}, a)
	os.Remove(a)
	if c, err := h.Collect(ctx, false); err != nil || c.Kept != 2 {
		t.Errorf("gc keeps the version before: %+v %v", c, err)
	}
	if r, err := h.Rollback(ctx, "default", "acme", true, composer(h)); err != nil || r.To != "1.0.0" || h.entry(t, "acme").Version != "1.1.0" {
		t.Errorf("a dry run changes nothing: %+v %v", r, err)
	}
	r, err := h.Rollback(ctx, "default", "acme", false, composer(h))
	if e := h.entry(t, "acme"); err != nil || r.From != "1.1.0" || e.Version != "1.0.0" || e.Tree != old || e.Files != 3 {
		t.Errorf("%+v %+v %v", r, e, err)
	}
	if found, err := h.Verify("default", nil); err != nil || !found[0].OK {
		t.Errorf("%+v %v", found, err)
	}
	newest := h.treeDir(h.entry(t, "acme").Previous.Tree)
	os.Chmod(newest+"/plugin.yaml", 0o644)
	os.WriteFile(newest+"/plugin.yaml", []byte("x"), 0o644)
	_, err = h.Rollback(ctx, "default", "acme", false, composer(h))
	wantCode(t, err, fault.PluginTampered)
	if e := h.entry(t, "acme"); e.Version != "1.0.0" {
		t.Errorf("%+v", e)
	}
}
