package plugin

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/afield-dev/afield/pkg/fault"
)

// Case 97: an update whose start check fails leaves the old version active, and
// the others are updated. What is active stays so.
func TestUpdate(t *testing.T) {
	r := newRegistry(t)
	h, ctx := newHost(t), context.Background()
	h.npmrc(t, "registry="+r.URL)
	for _, id := range []string{"bad", "good"} {
		r.add(t, id, "1.0.0", "latest", pluginFiles(id, "1.0.0"))
		h.mustAdd(t, AddOptions{NoStart: true, Inactive: true}, id+"@^1")
	}
	if all, err := h.Update(ctx, "default", UpdateOptions{}, composer(h)); err != nil || len(all) != 2 || all[0].Changed || all[0].Err != nil {
		t.Errorf("up to date: %+v %v", all, err)
	}
	broken := pluginFiles("bad", "1.1.0")
	broken["bin/serve!"] = "#!/bin/sh\nexit 3\n"
	r.add(t, "bad", "1.1.0", "latest", broken)
	r.add(t, "good", "1.1.0", "latest", pluginFiles("good", "1.1.0"))
	r.add(t, "good", "2.0.0", "next", pluginFiles("good", "2.0.0"))
	list, err := h.Outdated(ctx, "default", composer(h))
	if err != nil || *list[0].Latest != "1.1.0" || *list[1].Latest != "1.1.0" {
		t.Errorf("%+v %v", list, err)
	}
	all, err := h.Update(ctx, "default", UpdateOptions{DryRun: true}, composer(h))
	if err != nil || !all[1].Changed || h.entry(t, "good").Version != "1.0.0" {
		t.Errorf("a dry run changes nothing: %+v %v", all, err)
	}
	all, err = h.Update(ctx, "default", UpdateOptions{}, composer(h))
	if err != nil || fault.CodeOf(all[0].Err) != fault.PluginStartFailed || all[1].Err != nil || !all[1].Changed || all[1].To != "1.1.0" {
		t.Errorf("%+v %v", all, err)
	}
	bad, good := h.entry(t, "bad"), h.entry(t, "good")
	if bad.Version != "1.0.0" || good.Version != "1.1.0" || good.Active || good.Previous.Version != "1.0.0" || h.ids(t) != "bad good" {
		t.Errorf("%+v %+v", bad, good)
	}
	all, err = h.Update(ctx, "default", UpdateOptions{IDs: []string{"good"}, To: "2.0.0"}, composer(h))
	if e := h.entry(t, "good"); err != nil || e.Version != "2.0.0" || e.Source != "npm:good@2.0.0" {
		t.Errorf("%+v %+v %v", all, e, err)
	}
	_, err = h.Update(ctx, "default", UpdateOptions{IDs: []string{"none"}}, composer(h))
	wantCode(t, err, fault.PluginNotFound)
	_, err = h.Update(ctx, "default", UpdateOptions{To: "2.0.0"}, composer(h))
	wantCode(t, err, fault.Usage)
	if _, err := h.Rollback(ctx, "default", "good", false, composer(h)); err != nil {
		t.Error(err)
	}
	if e := h.entry(t, "good"); e.Source != "npm:good@^1" || e.Integrity == "" || e.Origin != KindNPM {
		t.Errorf("rolled back to %+v", e)
	}
}

// Case 98: what a version adds needs agreement.
func TestUpdateThatAsksForMore(t *testing.T) {
	r := newRegistry(t)
	h, ctx := newHost(t), context.Background()
	h.npmrc(t, "registry="+r.URL)
	few := pluginFiles("acme", "1.0.0")
	few["plugin.yaml"] = strings.Replace(few["plugin.yaml"], "services: [fs, exec]", "services: [exec]", 1)
	r.add(t, "acme", "1.0.0", "latest", few)
	h.mustAdd(t, AddOptions{NoStart: true, Inactive: true}, "acme")
	more := pluginFiles("acme", "1.1.0")
	more["plugin.yaml"] = strings.Replace(more["plugin.yaml"], "env: [", "env: [LANGUAGE, ", 1)
	r.add(t, "acme", "1.1.0", "latest", more)
	var asked string
	for _, answer := range []bool{false, true} {
		o := UpdateOptions{NoStart: true, Confirm: func(id string, adds []string) bool {
			asked = id + ": " + strings.Join(adds, ", ")
			return answer
		}}
		all, err := h.Update(ctx, "default", o, composer(h))
		if err != nil || asked != "acme: the service fs, the variable LANGUAGE" {
			t.Fatalf("asked %q %v", asked, err)
		}
		if want := map[bool]fault.Code{false: fault.PluginConfirm, true: ""}[answer]; fault.CodeOf(all[0].Err) != want {
			t.Errorf("%v: %v", answer, all[0].Err)
		}
	}
	h.Rollback(ctx, "default", "acme", false, composer(h))
	h.refuseAdd(t, fault.PluginConfirm, AddOptions{NoStart: true, Inactive: true}, "acme")
	h.mustAdd(t, AddOptions{NoStart: true, Inactive: true, Yes: true}, "acme")
}

// Cases 67 to 69 and 71: the lock decides what a sync installs.
func TestSync(t *testing.T) {
	r := newRegistry(t)
	h, ctx := newHost(t), context.Background()
	h.npmrc(t, "registry="+r.URL)
	r.add(t, "acme", "1.0.0", "latest", pluginFiles("acme", "1.0.0"))
	h.mustAdd(t, AddOptions{NoStart: true}, "acme")
	r.add(t, "acme", "1.1.0", "latest", pluginFiles("acme", "1.1.0"))
	path := lockPath(h.Places, "default")
	lock, _ := os.ReadFile(path)
	empty := func() {
		removeTree(h.storeDir())
		os.RemoveAll(h.Places.Cache)
	}
	empty()
	h.Platform = "linux/arm64"
	list, err := h.Sync(ctx, "default", true, false, composer(h))
	if after, _ := os.ReadFile(path); err != nil || len(list) != 1 || !list[0].Fetched || list[0].Version != "1.0.0" || string(after) != string(lock) {
		t.Errorf("%+v %v", list, err)
	}
	if list, err := h.Sync(ctx, "default", true, false, composer(h)); err != nil || list[0].Fetched {
		t.Errorf("nothing is to be done: %+v %v", list, err)
	}
	integrity := h.entry(t, "acme").Integrity
	for field, edit := range map[string][2]string{
		"integrity": {integrity, "sha512-" + strings.Repeat("A", 86) + "=="},
		"tree":      {h.entry(t, "acme").Tree, "sha256-" + strings.Repeat("0", 64)},
		"source":    {`"source": "npm:acme"`, `"source": "github:o/r"`},
		"package":   {`"source": "npm:acme"`, `"source": "npm:other"`},
		"platforms": {`"integrity": "` + integrity + `"`, `"integrity": ""`},
		"version":   {`"version": "1.0.0"`, `"version": "1.0.1"`},
	} {
		empty()
		edited := strings.ReplaceAll(string(lock), edit[0], edit[1])
		if edited == string(lock) {
			t.Fatalf("%s: not edited", field)
		}
		os.WriteFile(path, []byte(edited), 0o644)
		_, err := h.Sync(ctx, "default", true, false, composer(h))
		wantCode(t, err, fault.PluginIntegrity)
		if err != nil && !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v does not name the field", field, err)
		}
		if left, _ := os.ReadDir(h.stagingDir()); len(left) > 0 {
			t.Errorf("staging is left: %v", left)
		}
	}
	// Without --frozen a missing digest is recorded.
	empty()
	os.WriteFile(path, []byte(strings.ReplaceAll(string(lock), `"integrity": "`+integrity+`"`, `"integrity": ""`)), 0o644)
	if _, err := h.Sync(ctx, "default", false, false, composer(h)); err != nil || h.entry(t, "acme").on(h.Platform).Integrity != integrity {
		t.Errorf("%+v %v", h.entry(t, "acme"), err)
	}
}

// Case 67: on a platform with an archive of its own, that one is installed, with
// the digest that the lock has for it.
func TestSyncOnAnotherPlatform(t *testing.T) {
	h, ctx := newHost(t), context.Background()
	g := newGitHub(t, h)
	one, other := pluginFiles("acme", "1.0.0"), pluginFiles("acme", "1.0.0")
	other["only"] = "there"
	g.latest = "v1.0.0"
	g.releases["v1.0.0"] = map[string][]byte{"r_linux_amd64.tgz": archiveBytes(t, one), "r_linux_arm64.tgz": archiveBytes(t, other)}
	g.releases["v1.0.0"]["SHA256SUMS"] = sumsOf(g.releases["v1.0.0"])
	h.mustAdd(t, AddOptions{NoStart: true}, "github:o/r")
	tree := h.entry(t, "acme").Tree
	removeTree(h.storeDir())
	h.Platform = "linux/arm64"
	if list, err := h.Sync(ctx, "default", true, false, composer(h)); err != nil || !list[0].Fetched {
		t.Fatalf("%+v %v", list, err)
	}
	here := h.treeOf(h.entry(t, "acme"))
	if here == tree || !exists(filepath.Join(h.treeDir(here), "only")) {
		t.Errorf("the tree here is %s", here)
	}
	if found, err := h.Verify("default", nil); err != nil || !found[0].OK {
		t.Errorf("%+v %v", found, err)
	}
	if c, err := h.Collect(ctx, false); err != nil || len(c.Removed) != 0 {
		t.Errorf("%+v %v", c, err)
	}
	if list, err := h.Sync(ctx, "default", true, false, composer(h)); err != nil || list[0].Fetched {
		t.Errorf("%+v %v", list, err)
	}
	removeTree(h.storeDir())
	other["only"] = "changed"
	g.releases["v1.0.0"]["r_linux_arm64.tgz"] = archiveBytes(t, other)
	_, err := h.Sync(ctx, "default", true, false, composer(h))
	wantCode(t, err, fault.PluginIntegrity)
}

// Case 68: what --frozen refuses.
func TestFrozenSyncRefuses(t *testing.T) {
	h, ctx := newHost(t), context.Background()
	h.mustAdd(t, AddOptions{NoStart: true, Link: true}, dirOf(t, pluginFiles("acme", "1.0.0")))
	_, err := h.Sync(ctx, "default", true, false, composer(h))
	wantCode(t, err, fault.PluginIntegrity)
	if list, err := h.Sync(ctx, "default", false, false, composer(h)); err != nil || !list[0].Linked {
		t.Errorf("%+v %v", list, err)
	}
	h.Remove(ctx, "default", []string{"acme"}, false, false, false)
	os.WriteFile(filepath.Join(h.Places.Config, "profiles", "default.yaml"),
		[]byte("version: 1\nrows: [{id: more, name: absent/absent}]\n"), 0o644)
	_, err = h.Sync(ctx, "default", true, false, composer(h))
	if err == nil || !strings.Contains(err.Error(), "that row more gives") {
		t.Errorf("a row of a plugin that the lock does not have: %v", err)
	}
}

// Case 92: a full disk, a configuration and a store that cannot be written.
func TestDiskFaults(t *testing.T) {
	if os.Geteuid() != 0 {
		missing(t, "mounting needs root")
	}
	a := pluginArchive(t, pluginFiles("acme", "1.0.0"))
	big := pluginFiles("large", "1.0.0")
	big["blob"] = strings.Repeat("0123456789abcdef", 1<<16)
	large := pluginArchive(t, big)
	h := newHost(t)
	h.mustAdd(t, AddOptions{NoStart: true, Inactive: true}, a)
	for name, c := range map[string]struct{ dir, options, archive string }{
		"full": {h.stagingDir(), "size=64k,mode=700", large}, "staging": {h.stagingDir(), "ro", large}, "config": {filepath.Join(h.Places.Config, "profiles"), "ro", large},
		"store": {h.storeDir(), "ro", large},
	} {
		unmount := mountTmpfs(t, c.dir, c.options)
		if c.options == "ro" {
			// The file is hidden by the mount; the installation must not get as far.
			_, err := h.Add(context.Background(), "default", AddOptions{NoStart: true, Inactive: true, Sources: []string{c.archive}}, composer(h))
			wantCode(t, err, fault.PluginIO)
		} else {
			h.refuseAdd(t, fault.PluginIO, AddOptions{NoStart: true, Inactive: true}, c.archive)
		}
		unmount()
		if got := h.ids(t); got != "acme" || h.verifyTree(h.entry(t, "acme").Tree) != nil {
			t.Errorf("%s: plugins are %s", name, got)
		}
	}
	h.mustAdd(t, AddOptions{NoStart: true, Inactive: true}, large)
}
