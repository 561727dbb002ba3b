package plugin

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// An archive becomes a plugin whose provider serves the profile; its secret
// travels by the protocol only (case 42), and its tree is read-only.
func TestAddedPluginServesTheProfile(t *testing.T) {
	h := newHost(t)
	r := h.mustAdd(t, AddOptions{}, pluginArchive(t, pluginFiles("acme", "1.0.0")))
	if a := r.Added[0]; !a.Active || !a.Effective || !a.Started || a.ID != "acme" || strings.Join(a.Rows, "") != "acme-row" {
		t.Errorf("%+v", a)
	}
	req := profile.Request{Name: "default", Named: true, Environ: append(h.Environ, "PLUGIN_KEY=sesame"), Dir: h.Dir, Providers: h.Providers, Plugins: h.Plugged,
		Overrides: []profile.Override{{Text: "acme-row.config.cwd=/from/config"}}}
	p, err := profile.Compose(req).Profile()
	if err != nil {
		t.Fatal(err)
	}
	if p.Exec.Provider.Name != "acme/acme" || p.Exec.ID != "acme-row" {
		t.Fatalf("served by %s of row %s", p.Exec.Provider.Name, p.Exec.ID)
	}
	open := p.Exec.OpenRequest(p, &profile.Secrets{Environ: req.Environ, Dir: h.Dir})
	open.Environ, open.HostDir, open.StateDir, open.Log = h.Environ, h.Dir, h.Places.State, h.Log
	w, err := p.Exec.Provider.Open(context.Background(), open)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(context.Background())
	if said := output(t, w, "sh", "-c", "echo $SEEN; cat /proc/$PPID/environ | tr '\\0' '\\n' | grep -c sesame"); said != "sesame /from/config 1\n0\n" {
		t.Errorf("the provider saw %q", said)
	}
	c, err := h.Collect(context.Background(), false)
	if err != nil || c.Kept != 1 {
		t.Errorf("%+v %v", c, err)
	}
	err = filepath.WalkDir(h.treeDir(h.entry(t, "acme").Tree), func(path string, d fs.DirEntry, err error) error {
		if info, _ := d.Info(); info.Mode().Perm()&0o222 != 0 {
			t.Errorf("%s is writable (U-6)", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func (h *Host) entry(t testing.TB, id string) Entry {
	t.Helper()
	l, _, err := readLock(h.Places, "default")
	if err != nil || l.find(id) == nil {
		t.Fatalf("no plugin %s: %v", id, err)
	}
	return *l.find(id)
}

func output(t *testing.T, w backend.World, argv ...string) string {
	t.Helper()
	run, err := w.Processes().Spawn(context.Background(), remoteexec.Spec{Argv: argv, Cwd: "/", Grace: time.Second, Stdout: remoteexec.Output{MaxBytes: 1 << 16}, Stderr: remoteexec.Output{MaxBytes: 1 << 16}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	out, _ := run.Collected(remoteexec.Stdout).ReadFrom(0)
	return string(out.Bytes)
}

// Cases 62, 63 and 65: digests that are asked for, and bytes that changed.
func TestIntegrity(t *testing.T) {
	h := newHost(t)
	a := pluginArchive(t, pluginFiles("acme", "1.0.0"))
	first := h.mustAdd(t, AddOptions{NoStart: true}, a)
	digest := *first.Added[0].Integrity
	h.mustAdd(t, AddOptions{NoStart: true, Integrity: digest}, a)
	other := "sha512-" + strings.Repeat("A", 86) + "=="
	err := h.refuseAdd(t, fault.PluginIntegrity, AddOptions{NoStart: true, Integrity: other}, a)
	if !strings.Contains(err.Error(), digest) || !strings.Contains(err.Error(), other) {
		t.Errorf("%v does not name both digests", err)
	}
	h.refuseAdd(t, fault.Usage, AddOptions{Integrity: "sha1-AAAA"}, a)
	changed := pluginFiles("acme", "1.0.0")
	changed["extra"] = "x"
	content, _ := os.ReadFile(pluginArchive(t, changed))
	os.WriteFile(a, content, 0o644)
	h.refuseAdd(t, fault.PluginIntegrity, AddOptions{NoStart: true}, a)
	if r := h.mustAdd(t, AddOptions{NoStart: true, AcceptChanged: true}, a); *r.Added[0].Integrity == digest {
		t.Error("the changed archive has the old digest")
	}
	h.mustAdd(t, AddOptions{NoStart: true}, a)
	if e := h.entry(t, "acme"); e.Previous == nil || e.Previous.Version != "1.0.0" {
		t.Errorf("the version before is not kept: %+v", e)
	}
}

// Case 70: what is unpacked is what was hashed, whatever happens to the file.
func TestReplacedArchiveIsNotUnpacked(t *testing.T) {
	h := newHost(t)
	a := pluginArchive(t, pluginFiles("acme", "1.0.0"))
	h.step = func(step string) {
		if step == "T-4" {
			os.WriteFile(a, []byte("something else"), 0o644)
		}
	}
	h.mustAdd(t, AddOptions{NoStart: true}, a)
}

// Case 66: one byte changed, with size and time restored, is found at the start
// and named by verify.
func TestTamperedPluginDoesNotStart(t *testing.T) {
	h := newHost(t)
	h.mustAdd(t, AddOptions{NoStart: true}, pluginArchive(t, pluginFiles("acme", "1.0.0")))
	e := h.entry(t, "acme")
	m, err := h.manifestOf(e)
	if err != nil {
		t.Fatal(err)
	}
	files := startFiles(h.dirOf(e), []string{h.dirOf(e) + "/bin/serve"})
	if err := h.checkStart(e.Tree, files); err != nil || len(files) != 2 {
		t.Fatalf("%v %v", files, err)
	}
	path := filepath.Join(h.treeDir(e.Tree), "bin/serve")
	info, _ := os.Stat(path)
	content, _ := os.ReadFile(path)
	content[3] ^= 1
	os.Chmod(path, 0o755)
	os.WriteFile(path, content, 0o755)
	os.Chmod(path, info.Mode())
	os.Chtimes(path, info.ModTime(), info.ModTime())
	_, err = h.provider(installed{e, m}, m.Providers[0]).Open(context.Background(), backend.OpenRequest{
		Config: map[string]any{}, Environ: h.Environ, Log: h.Log, Secret: func(context.Context, string) (string, error) { return "", nil }})
	wantCode(t, err, fault.PluginTampered)
	found, err := h.Verify("default", nil)
	if err != nil || found[0].OK || strings.Join(found[0].Deviations, "") != "bin/serve: changed" {
		t.Errorf("%+v %v", found, err)
	}
	// Adding it again replaces what was changed.
	h.mustAdd(t, AddOptions{NoStart: true, Replace: true}, pluginArchive(t, pluginFiles("acme", "1.0.0")))
	if found, err := h.Verify("default", nil); err != nil || !found[0].OK {
		t.Errorf("%+v %v", found, err)
	}
}

// Case 71: an edited lock is refused or leads nowhere.
func TestEditedLock(t *testing.T) {
	h := newHost(t)
	h.mustAdd(t, AddOptions{NoStart: true}, pluginArchive(t, pluginFiles("acme", "1.0.0")))
	path := lockPath(h.Places, "default")
	whole, _ := os.ReadFile(path)
	tree := h.entry(t, "acme").Tree
	for name, content := range map[string]string{
		"tree outside": strings.Replace(string(whole), tree, "../../../etc", 1),
		"id outside":   strings.Replace(string(whole), `"id": "acme"`, `"id": "../x"`, 1),
		"unknown key":  strings.Replace(string(whole), `"version": 1`, `"version": 1, "more": 2`, 1),
		"cut":          string(whole[:len(whole)/2]),
		"version 2":    strings.Replace(string(whole), `"version": 1`, `"version": 2`, 1),
	} {
		os.WriteFile(path, []byte(content), 0o644)
		if _, err := h.Plugged("default"); fault.CodeOf(err) != fault.ProfileInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	os.WriteFile(path, []byte(strings.Replace(string(whole), tree, "sha256-"+strings.Repeat("0", 64), 1)), 0o644)
	_, err := h.Plugged("default")
	wantCode(t, err, fault.PluginNotFound)
}

// Cases 86 and 88: conflicts change nothing, and have their ways out.
func TestConflicts(t *testing.T) {
	h := newHost(t)
	one, two := pluginArchive(t, pluginFiles("one", "1.0.0")), pluginArchive(t, pluginFiles("two", "1.0.0"))
	h.mustAdd(t, AddOptions{NoStart: true}, one)
	err := h.refuseAdd(t, fault.PluginConflict, AddOptions{NoStart: true}, two)
	if e := err.(*fault.Error); !strings.Contains(e.Hint, "--no-activate") {
		t.Errorf("the hint is %q", e.Hint)
	}
	if r := h.mustAdd(t, AddOptions{NoStart: true, Inactive: true}, two); r.Added[0].Active {
		t.Error("it is active")
	}
	_, err = h.SetActive(context.Background(), "default", "two", true, false, composer(h))
	wantCode(t, err, fault.PluginConflict)
	profiles := filepath.Join(h.Places.Config, "profiles")
	os.WriteFile(filepath.Join(profiles, "default.yaml"), []byte("version: 1\nbackend: two\n"), 0o644)
	p, err := profile.Compose(profile.Request{Name: "default", Named: true, Environ: h.Environ, Dir: h.Dir, Providers: h.Providers, Plugins: h.Plugged}).Profile()
	if err != nil || p.FS.Provider.Name != "two" {
		t.Errorf("a backend: line selects it by its short name: %v", err)
	}
	os.Remove(filepath.Join(profiles, "default.yaml"))

	other := pluginArchive(t, pluginFiles("one", "1.0.0"))
	h.refuseAdd(t, fault.PluginConflict, AddOptions{NoStart: true}, other)
	h.mustAdd(t, AddOptions{NoStart: true, Replace: true}, other)
	if got := h.ids(t); got != "one two" {
		t.Errorf("plugins are %s", got)
	}
	bare := pluginFiles("bare", "1.0.0")
	bare["plugin.yaml"] = strings.Replace(bare["plugin.yaml"], "    - {id: world, disabled: true}\n", "", 1)
	clean := newHost(t)
	clean.refuseAdd(t, fault.PluginConflict, AddOptions{NoStart: true}, pluginArchive(t, bare))
}

// A plugin under another id, and a warning where a higher line keeps its rows
// off.
func TestAsAndIneffective(t *testing.T) {
	h := newHost(t)
	os.MkdirAll(filepath.Join(h.Places.Config, "profiles"), 0o755)
	os.WriteFile(filepath.Join(h.Places.Config, "profiles", "default.yaml"), []byte("version: 1\nbackend: local\n"), 0o644)
	r := h.mustAdd(t, AddOptions{As: "mine"}, pluginArchive(t, pluginFiles("acme", "1.0.0")))
	if r.Added[0].ID != "mine" || r.Added[0].Effective || len(r.Warnings) != 1 || !r.Added[0].Started {
		t.Errorf("%+v", r)
	}
}

// Case 89: all or none.
func TestOneBrokenSourceInstallsNone(t *testing.T) {
	h := newHost(t)
	bad := pluginFiles("two", "1.0.0")
	bad["plugin.yaml"] += "hooks: {}\n"
	h.refuseAdd(t, fault.PluginManifestInvalid, AddOptions{NoStart: true}, pluginArchive(t, pluginFiles("one", "1.0.0")), pluginArchive(t, bad))
	h.refuseAdd(t, fault.PluginNotFound, AddOptions{NoStart: true}, filepath.Join(h.Dir, "none.tgz"))
	if _, err := os.Stat(lockPath(h.Places, "default")); err == nil {
		t.Error("the profile has a file")
	}
}

// Case 90: twenty installers of ten plugins at once: all recorded, each once.
func TestManyInstallers(t *testing.T) {
	h := newHost(t)
	var archives []string
	for i := range 10 {
		files := pluginFiles("p"+string(rune('a'+i)), "1.0.0")
		archives = append(archives, pluginArchive(t, files))
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			mine := hostAt(h.Dir)
			o := AddOptions{Sources: []string{archives[i%10]}, NoStart: true, Inactive: true}
			if _, err := mine.Add(context.Background(), "default", o, composer(mine)); err != nil {
				t.Errorf("installer %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if got := strings.Fields(h.ids(t)); len(got) != 10 {
		t.Errorf("plugins are %v", got)
	}
	content, _ := os.ReadFile(filepath.Join(h.Places.State, "seen.json"))
	known := seen{}
	if err := json.Unmarshal(content, &known); err != nil || len(known) != 10 {
		t.Errorf("%d sources were seen: %v", len(known), err)
	}
	if left, _ := os.ReadDir(h.stagingDir()); len(left) > 0 {
		t.Errorf("staging is left: %v", left)
	}
}

// Case 91: SIGKILL at each step leaves the old or the new state, and the next
// command works.
func TestKilledAtEachStep(t *testing.T) {
	archive := pluginArchive(t, pluginFiles("acme", "1.0.0"))
	exe, _ := os.Executable()
	for _, step := range []string{"T-1", "T-2", "T-3", "T-4", "T-5", "T-6", "T-7", "T-8", "T-9", "T-10", "T-11"} {
		t.Run(step, func(t *testing.T) {
			h := newHost(t)
			cmd := exec.Command(exe)
			cmd.Env = append(os.Environ(), "PLUGIN_TEST_KILL="+step, "PLUGIN_TEST_HOME="+h.Dir, "PLUGIN_TEST_SOURCE="+archive)
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != -1 {
				t.Fatalf("the installer was not killed: %v %s", err, out)
			}
			want := ""
			if step == "T-11" {
				want = "acme"
			}
			if got := h.ids(t); got != want {
				t.Errorf("plugins are %q", got)
			}
			h.mustAdd(t, AddOptions{NoStart: true}, archive)
			old := time.Now().Add(-2 * time.Hour)
			left, _ := os.ReadDir(h.stagingDir())
			for _, d := range left {
				os.Chtimes(filepath.Join(h.stagingDir(), d.Name()), old, old)
			}
			h.mustAdd(t, AddOptions{NoStart: true}, archive)
			if left, _ := os.ReadDir(h.stagingDir()); len(left) > 0 {
				t.Errorf("staging is left: %v (T-12)", left)
			}
			if found, err := h.Verify("default", nil); err != nil || len(found) != 1 || !found[0].OK {
				t.Errorf("%+v %v", found, err)
			}
		})
	}
}

// Case 93: an editor's bytes survive.
func TestChangedMeanwhile(t *testing.T) {
	h := newHost(t)
	path := lockPath(h.Places, "default")
	h.step = func(step string) {
		if step == "T-10" {
			os.WriteFile(path, []byte("an editor was here"), 0o644)
		}
	}
	_, err := h.Add(context.Background(), "default", AddOptions{NoStart: true, Sources: []string{pluginArchive(t, pluginFiles("acme", "1.0.0"))}}, composer(h))
	wantCode(t, err, fault.PluginBusy)
	if got, _ := os.ReadFile(path); string(got) != "an editor was here" {
		t.Errorf("the file is %q", got)
	}
}

// T-12: a signal before the commit leaves nothing.
func TestCancelledBeforeTheCommit(t *testing.T) {
	for _, at := range []string{"T-3", "T-6", "T-9", "T-10"} {
		h := newHost(t)
		ctx, cancel := context.WithCancelCause(context.Background())
		h.step = func(step string) {
			if step == at {
				cancel(fault.ErrInterrupted)
			}
		}
		_, err := h.Add(ctx, "default", AddOptions{NoStart: true, Sources: []string{pluginArchive(t, pluginFiles("acme", "1.0.0"))}}, composer(h))
		wantCode(t, err, fault.FSAborted)
		if left, _ := os.ReadDir(h.stagingDir()); len(left) > 0 {
			t.Errorf("staging is left at %s: %v", at, left)
		}
		if _, err := os.Stat(lockPath(h.Places, "default")); err == nil {
			t.Errorf("at %s: committed", at)
		}
	}
}

// Cases 94, 96 and 100: removing, switching, and collecting.
func TestLifeCycle(t *testing.T) {
	h, ctx := newHost(t), context.Background()
	a := pluginArchive(t, pluginFiles("acme", "1.0.0"))
	h.mustAdd(t, AddOptions{NoStart: true}, a)
	h.mustAdd(t, AddOptions{NoStart: true, Inactive: true}, pluginArchive(t, pluginFiles("beta", "1.0.0")))
	if _, err := h.SetActive(ctx, "default", "acme", false, false, composer(h)); err != nil {
		t.Fatal(err)
	}
	h.mustAdd(t, AddOptions{NoStart: true, Inactive: true}, pluginArchive(t, pluginFiles("gamma", "1.0.0")))
	if e := h.entry(t, "acme"); e.Active || h.ids(t) != "acme beta gamma" {
		t.Errorf("%+v %s", e, h.ids(t))
	}
	removeTree(h.treeDir(h.entry(t, "beta").Tree))
	if removed, err := h.Remove(ctx, "default", []string{"beta"}, false, false, false); err != nil || len(removed) != 1 {
		t.Errorf("%v %v", removed, err)
	}
	_, err := h.Remove(ctx, "default", []string{"beta"}, false, false, false)
	wantCode(t, err, fault.PluginNotFound)
	if _, err := h.Remove(ctx, "default", []string{"beta"}, true, false, false); err != nil {
		t.Error(err)
	}
	_, err = h.Remove(ctx, "default", []string{"../../x"}, false, false, false)
	wantCode(t, err, fault.Usage)

	tree := h.entry(t, "acme").Tree
	os.MkdirAll(filepath.Join(h.Places.Config, "profiles"), 0o755)
	content, _ := os.ReadFile(lockPath(h.Places, "default"))
	os.WriteFile(lockPath(h.Places, "other"), content, 0o644)
	h.Remove(ctx, "default", []string{"acme", "gamma"}, false, false, false)
	if c, err := h.Collect(ctx, false); err != nil || len(c.Removed) != 0 || c.Kept != 2 {
		t.Errorf("another profile has them: %+v %v", c, err)
	}
	os.Remove(lockPath(h.Places, "other"))
	using, err := h.use(ctx, Entry{Tree: tree})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := h.Collect(ctx, false); err != nil || len(c.Removed) != 1 || c.Kept != 1 {
		t.Errorf("a process uses one: %+v %v", c, err)
	}
	using.release()
	if c, err := h.Collect(ctx, true); err != nil || len(c.Removed) != 1 {
		t.Errorf("%+v %v", c, err)
	}
	if c, err := h.Collect(ctx, false); err != nil || len(c.Removed) != 1 || c.Removed[0] != tree {
		t.Errorf("a dry run removes nothing: %+v %v", c, err)
	}
	if left, _ := os.ReadDir(h.storeDir()); len(left) != 0 {
		t.Errorf("the store holds %v", left)
	}
}

// Case 101: a linked directory counts as it is now, and is marked.
func TestLinkedDirectory(t *testing.T) {
	h := newHost(t)
	dir := dirOf(t, pluginFiles("acme", "1.0.0"))
	h.mustAdd(t, AddOptions{Link: true}, dir)
	manifest := filepath.Join(dir, "plugin.yaml")
	content, _ := os.ReadFile(manifest)
	os.WriteFile(manifest, []byte(strings.ReplaceAll(string(content), "1.0.0", "1.1.0")), 0o644)
	list, err := h.List("default")
	if err != nil || list[0].Version != "1.1.0" || !list[0].Linked || list[0].State != "linked, unverified" {
		t.Errorf("%+v %v", list, err)
	}
	p, err := h.Plugged("default")
	if err != nil || !strings.Contains(p.Patches[0].Plugin, "linked, unverified") {
		t.Errorf("%+v %v", p.Patches, err)
	}
	h.refuseAdd(t, fault.Usage, AddOptions{Link: true}, pluginArchive(t, pluginFiles("b", "1.0.0")))
}

// A directory is copied: what happens to it later has no effect.
func TestCopiedDirectory(t *testing.T) {
	h := newHost(t)
	dir := dirOf(t, pluginFiles("acme", "1.0.0"))
	h.mustAdd(t, AddOptions{}, dir)
	os.RemoveAll(dir)
	if found, err := h.Verify("default", []string{"acme"}); err != nil || !found[0].OK {
		t.Errorf("%+v %v", found, err)
	}
	h.refuseAdd(t, fault.Usage, AddOptions{Integrity: "sha512-" + strings.Repeat("A", 86) + "=="}, dirOf(t, pluginFiles("b", "1.0.0")))
}

// Case 103: a store that others may write, or that is somebody else's.
func TestForeignStore(t *testing.T) {
	a := pluginArchive(t, pluginFiles("acme", "1.0.0"))
	h := newHost(t)
	os.MkdirAll(h.Places.Data, 0o700)
	os.Chmod(h.Places.Data, 0o777)
	h.refuseAdd(t, fault.PluginDenied, AddOptions{NoStart: true}, a)
	os.Chmod(h.Places.Data, 0o700)
	if os.Geteuid() == 0 {
		os.Chown(h.Places.Data, 12345, 0)
		h.refuseAdd(t, fault.PluginDenied, AddOptions{NoStart: true}, a)
	}
}

// Case 104: a dry run checks the same and writes nothing.
func TestDryRun(t *testing.T) {
	h := newHost(t)
	r := h.mustAdd(t, AddOptions{DryRun: true}, pluginArchive(t, pluginFiles("acme", "1.0.0")))
	if !r.Added[0].Started || !r.Added[0].Effective {
		t.Errorf("%+v", r)
	}
	if left, _ := os.ReadDir(h.Dir); len(left) != 0 {
		t.Errorf("written: %v", left)
	}
	bad := pluginFiles("acme", "1.0.0")
	bad["bin/serve!"] = "#!/bin/sh\nexit 3\n"
	h.refuseAdd(t, fault.PluginStartFailed, AddOptions{DryRun: true}, pluginArchive(t, bad))
}

// Cases 106, 111 and 113: the start check.
func TestStartCheck(t *testing.T) {
	h := newHost(t)
	for name, c := range map[string]struct {
		code  fault.Code
		words string
		edit  func(files map[string]string)
	}{
		"106 exits":       {fault.PluginStartFailed, "exit status 3", func(f map[string]string) { f["bin/serve!"] = "#!/bin/sh\necho broken >&2\nexit 3\n" }},
		"106 interpreter": {fault.PluginStartFailed, "no such file", func(f map[string]string) { f["bin/serve!"] = "#!/no/such/thing\n" }},
		"111 version": {fault.PluginProtocol, "1.0.0", func(f map[string]string) {
			f["plugin.yaml"] = strings.Replace(f["plugin.yaml"], "acme, 1.0.0]", "acme, 9.0.0]", 1)
		}},
		"111 id": {fault.PluginProtocol, "other", func(f map[string]string) {
			f["plugin.yaml"] = strings.Replace(f["plugin.yaml"], "serve, acme", "serve, other", 1)
		}},
		"111 level": {fault.PluginProtocol, "driver", func(f map[string]string) {
			f["plugin.yaml"] = strings.Replace(f["plugin.yaml"], "[fs, exec]", "[fs, exec]\n    level: driver", 1)
		}},
		"113 platform": {fault.PluginPlatformUnsupported, "plan9/any", func(f map[string]string) {
			f["plugin.yaml"] = strings.Replace(f["plugin.yaml"], "{any:", "{plan9/any:", 1)
		}},
		"113 no program":    {fault.PluginPlatformUnsupported, "no-such-program", func(f map[string]string) { needs(f, "{program: no-such-program}") }},
		"113 old program":   {fault.PluginVersionUnsupported, ">=99", func(f map[string]string) { needs(f, `{program: bash, version: ">=99"}`) }},
		"afield is too old": {fault.PluginVersionUnsupported, "1.5.0", func(f map[string]string) { f["plugin.yaml"] += "requires: {afield: '>=1.6'}\n" }},
		"second package": {fault.PluginPlatformUnsupported, "another package", func(f map[string]string) {
			f["plugin.yaml"] = strings.Replace(f["plugin.yaml"], "{any: {", "{any: {package: 'npm:x@1.0.0', ", 1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			files := pluginFiles("acme", "1.0.0")
			c.edit(files)
			err := h.refuseAdd(t, c.code, AddOptions{}, pluginArchive(t, files))
			if err != nil && !strings.Contains(err.Error(), c.words) {
				t.Errorf("%v does not say %q", err, c.words)
			}
		})
	}
	if left := filepath.Join(h.Places.State, "seen.json"); exists(left) {
		t.Error("a refused plugin was recorded as seen")
	}
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

func needs(f map[string]string, need string) {
	f["plugin.yaml"] = strings.Replace(f["plugin.yaml"], "{any: {", "{any: {needs: ["+need+"], ", 1)
}

// Cases 52, 55 and 60: what a source is.
func TestSources(t *testing.T) {
	for text, want := range map[string]string{
		"file:a b.tgz": "file:/d/a b.tgz", "file:a%20b.tgz": "file:/d/a%20b.tgz", "file:a#b.tgz": "file:/d/a#b.tgz", `file:a"b.tgz`: `file:/d/a"b.tgz`,
		"../x.tgz": "file:/x.tgz", "file:///x/a%20b.tgz": "file:/x/a b.tgz", "file://localhost/x.tgz": "file:/x.tgz", "x.tar.gz": "file:/d/x.tar.gz",
		"./p": "file:/d/p", "..": "file:/", "/x": "file:/x",
	} {
		if s, err := ParseSource(text, "/d"); err != nil || s.Text != want {
			t.Errorf("%s: %q %v", text, s.Text, err)
		}
	}
	for text, want := range map[string]Source{
		"p": {KindNPM, "npm:p", "npm:p", "", ""}, "npm:@s/p@^1 <2": {KindNPM, "npm:@s/p@^1 <2", "npm:@s/p", "^1 <2", ""},
		"github:o/r@v1#x.tgz":         {KindGitHub, "github:o/r@v1#x.tgz", "github:o/r", "v1", "x.tgz"},
		"https://h.example/x.tgz?k=1": {KindAddress, "https://h.example/x.tgz?k=1", "https://h.example/x.tgz?k=1", "", ""},
	} {
		if s, err := ParseSource(text, "/d"); err != nil || s != want {
			t.Errorf("%s: %+v %v", text, s, err)
		}
	}
	for _, text := range []string{
		"", "P", "file://host/x", "file:///x?y", "ftp://x/y.tgz", "npm:", "npm:../x", "npm:x@", "npm:x@https://h/y", "a\x00b.tgz", "github:o", "github:o/..",
		"github:o/r@../x", "github:o/r#a/b", "https://u:pw@h/x.tgz", "https://h/x.zip", "https:///x.tgz", "npm:" + strings.Repeat("a", 215), "_x", ".x",
	} {
		_, err := ParseSource(text, "/d")
		wantCode(t, err, fault.PluginSourceInvalid)
	}
	h := newHost(t)
	os.MkdirAll(filepath.Join(h.Places.Config, "profiles"), 0o755)
	os.WriteFile(filepath.Join(h.Places.Config, "profiles", "default.yaml"), []byte("version: 1\nplugins: {sources: ['npm:@acme/']}\n"), 0o644)
	h.refuseAdd(t, fault.PluginDenied, AddOptions{NoStart: true}, pluginArchive(t, pluginFiles("acme", "1.0.0")))
}

// Case 102: listing, describing and composing start no plugin, and ask nobody.
func TestCase102ListingStartsNothing(t *testing.T) {
	r := newRegistry(t)
	h := newHost(t)
	h.npmrc(t, "registry="+r.URL)
	files := pluginFiles("acme", "1.0.0")
	mark := filepath.Join(t.TempDir(), "started")
	files["bin/serve!"] = "#!/bin/sh\ntouch " + mark + "\n"
	r.add(t, "acme", "1.0.0", "latest", files)
	h.mustAdd(t, AddOptions{NoStart: true}, "acme")
	r.Close()
	if list, err := h.List("default"); err != nil || len(list) != 1 || list[0].State != "ok" {
		t.Errorf("%+v %v", list, err)
	}
	if _, err := h.Info(context.Background(), "default", "acme"); err != nil {
		t.Error(err)
	}
	if p, err := h.Plugged("default"); err != nil || composer(h)(p).Err() != nil {
		t.Error(err)
	}
	if exists(mark) {
		t.Error("the plugin was started")
	}
}

// Case 95: looking changes nothing.
func TestLookingChangesNothing(t *testing.T) {
	h := newHost(t)
	h.mustAdd(t, AddOptions{NoStart: true}, pluginArchive(t, pluginFiles("acme", "1.0.0")))
	snapshot := func() string {
		var b strings.Builder
		filepath.WalkDir(h.Dir, func(path string, d fs.DirEntry, err error) error {
			info, _ := d.Info()
			b.WriteString(path + info.Mode().String() + info.ModTime().String() + "\n")
			return nil
		})
		return b.String()
	}
	before := snapshot()
	h.List("default")
	h.Verify("default", nil)
	h.Plugged("default")
	i, err := h.Info(context.Background(), "default", "acme")
	if err != nil || i.ID != "acme" || !i.Installed {
		t.Errorf("%+v %v", i, err)
	}
	i, err = h.Info(context.Background(), "default", pluginArchive(t, pluginFiles("beta", "2.0.0")))
	if err != nil || i.ID != "beta" || i.Installed || i.Integrity == nil {
		t.Errorf("%+v %v", i, err)
	}
	if after := snapshot(); after != before {
		t.Errorf("changed from\n%sto\n%s", before, after)
	}
}
