package profile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/afield-dev/afield/pkg/fault"
)

// Case 23: one key in every layer; taking layers away walks down in order.
func TestCase023EveryLayer(t *testing.T) {
	h := newHome(t)
	patch := func(r *Request) {
		r.Plugins = func(string) (Plugged, error) {
			return Plugged{Patches: []Patch{{"p@1.0.0", []byte("version: 1\nmount: {capacity: 101}\n")}}}, nil
		}
	}
	text := func(n int) string { return fmt.Sprintf("version: 1\nmount: {capacity: %d}\n", n) }
	h.system("default", text(102))
	h.user("default", text(103))
	project := h.project(text(104))
	h.trust(project)
	file := h.write("f.yaml", text(106))
	all := []func(*Request){patch, env("AFIELD_SET=mount.capacity=105"), files(file), set("mount.capacity=107")}
	check := func(want int64, origin string, change ...func(*Request)) {
		t.Helper()
		c := h.compose(change...)
		if got := valid(t, c).MountBlock.Capacity; got != want {
			t.Errorf("capacity %d, want %d", got, want)
		}
		if l := leaf(t, c, "mount.capacity"); !strings.HasPrefix(l.Origin.String(), origin) {
			t.Errorf("origin %q, want %q", l.Origin, origin)
		}
	}
	over := leaf(t, h.compose(all...), "mount.capacity").Over
	var seen []any
	for _, o := range over {
		seen = append(seen, o.Value)
	}
	if fmt.Sprint(seen) != "[106 105 104 103 102 101]" {
		t.Errorf("over %v", seen)
	}
	check(107, "flag 1", all...)
	check(106, "file "+file+":2", all[:3]...)
	check(105, "env AFIELD_SET:1", all[:2]...)
	check(104, "project ", patch)
	os.Remove(project)
	check(103, "user ", patch)
	os.Remove(h.path("home/.config/afield/profiles/default.yaml"))
	check(102, "system ", patch)
	os.Remove(h.path("etc/profiles/default.yaml"))
	check(101, "plugin p@1.0.0", patch)
	check(32, "default", patch, func(r *Request) { r.NoPlugins = true })
	check(32, "default")
}

// --no-project drops layer 4, --default-config layers 2 to 5.
func TestLayersThatAreDropped(t *testing.T) {
	h := newHome(t)
	h.user("default", "version: 1\nmount: {capacity: 3}\n")
	h.project("version: 1\nmount: {capacity: 4}\n")
	noProject := func(r *Request) { r.NoProject = true }
	if n := valid(t, h.compose(noProject)).MountBlock.Capacity; n != 3 {
		t.Error(n)
	}
	if n := valid(t, h.compose(env("AFIELD_NO_PROJECT=1"))).MountBlock.Capacity; n != 3 {
		t.Error(n)
	}
	standard := func(r *Request) { r.DefaultConfig = true }
	if n := valid(t, h.compose(standard, env("AFIELD_SET=mount.capacity=5"))).MountBlock.Capacity; n != 32 {
		t.Error(n)
	}
	if n := valid(t, h.compose(standard, set("mount.capacity=7"))).MountBlock.Capacity; n != 7 {
		t.Error(n)
	}
}

// Case 24: the environment stands below explicit arguments.
func TestCase024EnvironmentBelowArguments(t *testing.T) {
	h := newHome(t)
	file := h.write("f.yaml", "version: 1\nfs: {readLimit: 6}\n")
	e := env("AFIELD_SET=fs.readLimit=5\nexec.graceMs=9")
	p := valid(t, h.compose(e, files(file)))
	if p.FSBlock.ReadLimit != 6 || p.ExecBlock.Grace.Milliseconds() != 9 {
		t.Errorf("%+v %+v", p.FSBlock, p.ExecBlock)
	}
	if p := valid(t, h.compose(e, files(file), set("fs.readLimit=7"))); p.FSBlock.ReadLimit != 7 {
		t.Errorf("%+v", p.FSBlock)
	}
}

// Case 25.
func TestCase025LastArgumentWins(t *testing.T) {
	h := newHome(t)
	a := h.write("a.yaml", "version: 1\nfs: {readLimit: 1}\n")
	b := h.write("home/work/b.yaml", "version: 1\nfs: {readLimit: 2}\n")
	if p := valid(t, h.compose(files(a, "b.yaml"))); p.FSBlock.ReadLimit != 2 {
		t.Error(p.FSBlock.ReadLimit)
	}
	if p := valid(t, h.compose(files(b, a))); p.FSBlock.ReadLimit != 1 {
		t.Error(p.FSBlock.ReadLimit)
	}
	if p := valid(t, h.compose(set("fs.readLimit=3", "fs.readLimit=4"))); p.FSBlock.ReadLimit != 4 {
		t.Error(p.FSBlock.ReadLimit)
	}
	if p := valid(t, h.compose(env("AFIELD_PROFILE_FILE="+a+":"+b))); p.FSBlock.ReadLimit != 2 {
		t.Error(p.FSBlock.ReadLimit)
	}
}

// Case 26.
func TestCase026Set(t *testing.T) {
	h := newHome(t)
	h.user("s", "version: 1\nrows: [{id: world, name: ssh, config: {host: b1}}]\n")
	if p := valid(t, h.compose(named("s"), set("world.config.host=b2"))); p.FS.Config["host"] != "b2" {
		t.Error(p.FS.Config)
	}
	if p := valid(t, h.compose(set(`config."a.b"=1`))); p.FS.Config["a.b"] != int64(1) {
		t.Error(p.FS.Config)
	}
	if p := valid(t, h.compose(set("backend=ssh", "config.host=h", "config.jump=[a, b]"))); fmt.Sprint(p.FS.Config["jump"]) != "[a b]" {
		t.Error(p.FS.Config)
	}
	literal := func(r *Request) {
		r.Overrides = []Override{{Text: "backend=ssh"}, {Text: "world.config.host=[yes]=x", Literal: true}}
	}
	if p := valid(t, h.compose(literal)); p.FS.Config["host"] != "[yes]=x" {
		t.Error(p.FS.Config)
	}
	if p := valid(t, h.compose(set("keep=off", "splitWorld=true", "env.pass=[A]", "world.disabled=false"))); !p.Keep.Written || p.Keep.Idle != 0 {
		t.Errorf("%+v", p.Keep)
	}
	for _, tt := range []struct{ text, want string }{
		{"x.y=", "not one YAML scalar"},
		{"=1", "the path has an empty name"},
		{"fs..x=1", "the path has an empty name"},
		{"fs.readLimit", "there is no ="},
		{`"fs=1`, "does not end"},
		{`"fs"x=1`, "neither a dot nor the end"},
		{"nosuch.config.x=1", "rows are world"},
		{"wrold.name=1", "rows are world"},
		{"fs.readlimit=1", "the path is not a key of fs (did you mean readLimit?)"},
		{"bakend=ssh", "did you mean backend?"},
		{"fs.readLimit=a: b", "not one YAML scalar"},
		{"fs.readLimit=- a", "not one YAML scalar"},
		{"fs.readLimit=!!int 5", "not one YAML scalar"},
		{"fs.readLimit=# none", "not one YAML scalar"},
		{"fs.readLimit=no", "not one YAML scalar"},
		{"fs.readLimit=x", "flag 1: PROFILE_INVALID fs.readLimit must be a whole number"},
		{"fs=5", "fs must be a map"},
		{"fs.readLimit.x=5", "fs.readLimit must be a whole number"},
	} {
		refused(t, h.compose(set(tt.text)), fault.ProfileInvalid, tt.want)
	}
	refused(t, h.compose(named("s"), set("config.x=1")), fault.ProfileInvalid, "the path is not a key of world.config")
}

// What stands in an argument whose path is unknown is not repeated.
func TestSetDoesNotRepeatSlips(t *testing.T) {
	h := newHome(t)
	for _, text := range []string{"hunter2secret", "hunter2secret=1", "config.hunter2secret=1", "config.cwd=!hunter2secret",
		"config.cwd=*hunter2secret", "fs.readLimit=hunter2secret", "hunter2secret.config.x=1", "world.hunter2secret=x", "backend=hunter2secret"} {
		c := h.compose(set(text))
		if len(c.Problems) == 0 {
			t.Errorf("%q is accepted", text)
		}
		var dump bytes.Buffer
		if err := c.Dump(&dump); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(lines(c), "hunter2secret") {
			t.Errorf("%q is repeated in %s", text, lines(c))
		}
	}
}

// Case 27.
func TestCase027NullForARequiredKey(t *testing.T) {
	h := newHome(t)
	h.user("default", "version: 1\nbackend: ssh\nconfig: {host: h}\n")
	refused(t, h.compose(set("config.host=null")), fault.ProfileInvalid, "world.config.host is required by provider ssh", "flag 1")
}

// Case 29: a dump fed back above the built-in defaults means the same.
func TestCase029DumpFedBack(t *testing.T) {
	for name, text := range map[string]string{
		"none":  "version: 1\n",
		"short": "version: 1\nbackend: ssh\nconfig: {host: build1, cwd: /srv/work, password: \"${PW}\"}\n",
		"long":  "version: 1\nrows: [{id: world, name: box, config: {create: {size: large, labels: {\"a b\": 'it''s', no: \"x\\ty\"}}}}]\n",
		"split": "version: 1\nsplitWorld: true\nrows:\n  - {id: files, name: local, provides: [fs], config: {cwd: \"/w: #x\"}}\n  - {id: procs, name: ssh, provides: [exec], config: {host: h, cwd: \"/ü\", options: {}, jump: [a, \"b,c\", \"0644\", \"no\"]}}\n",
		"rest": "version: 1\ndescription: \"a: b # c \\u2028 \\\"q\\\"\"\nkeep: off\nfence: {}\nenv: {pass: [A], set: {B: \"$${x}\", C: \"\"}, remove: [D]}\n" +
			"mount: {freshnessThreshold: 0.25, safeRatio: 1, excludeGlobs: [\"*.lock\"], safeTokens: 5}\nfs: {newFileMode: \"0600\", search: {timeoutMs: 5}}\nplugins: {registry: \"https://x.example/\", sources: [a]}\n" +
			"rows: [{id: out, name: nosuch/one, disabled: true, config: {apiKey: \"${K}\", x: [1, 2.5, true], deep: {token: {file: /k}}}}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			h.user("default", text)
			c := h.compose()
			valid(t, c)
			var dump bytes.Buffer
			if err := c.Dump(&dump); err != nil {
				t.Fatal(err)
			}
			back := h.compose(files(h.write("dump.yaml", dump.String())), func(r *Request) { r.DefaultConfig = true })
			valid(t, back)
			if back.Digest() != c.Digest() {
				var again bytes.Buffer
				back.Dump(&again)
				t.Errorf("another digest\n%s\n%s", dump.String(), again.String())
			}
			if !strings.HasPrefix(dump.String(), "# profile default  digest "+c.Digest()+"\nversion: 1") {
				t.Error(dump.String())
			}
		})
	}
}

// The dump shows origins as plugins.md 19 does.
func TestDumpComments(t *testing.T) {
	h := newHome(t)
	h.system("default", "version: 1\nrows: [{id: old, name: box}, {id: world, disabled: true}]\n")
	h.user("default", "version: 1\nbackend: ssh\nconfig:\n  host: build1\n  password: ${CI_PW}\n")
	var dump bytes.Buffer
	c := h.compose(set("config.host=build2"))
	valid(t, c)
	if err := c.Dump(&dump); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(dump.String()), " ")
	for _, want := range []string{
		"name: ssh # user ~/.config/afield/profiles/default.yaml:2 (over default)",
		"provides: [fs, exec] # default",
		"host: build2 # flag 1 (over user ~/.config/afield/profiles/default.yaml:4)",
		"password: ${CI_PW} # user ~/.config/afield/profiles/default.yaml:5, secret",
		"disabled: true # user ~/.config/afield/profiles/default.yaml:2 (backend: ssh)",
		"keepaliveMs: 10000 # default",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, dump.String())
		}
	}
}

// Case 30: the defaults can be composed while the user's files are broken.
func TestCase030DefaultConfigWithBrokenFiles(t *testing.T) {
	h := newHome(t)
	h.user("default", "]")
	h.write("home/.config/afield/config.yaml", "[")
	h.project("[")
	valid(t, h.compose(func(r *Request) { r.DefaultConfig = true }))
}

// Case 31: each leaf has its layer and place, and what it took the place of.
func TestCase031Explain(t *testing.T) {
	h := newHome(t)
	system := h.system("default", "version: 1\nfs:\n  readLimit: 5\n")
	user := h.user("default", "version: 1\nfs: {readLimit: 6}\n")
	c := h.compose(set("fs.readLimit=7"))
	l := leaf(t, c, "fs.readLimit")
	want := []Origin{{LayerFlag, "1", 0, 0}, {LayerUser, user, 2, 17}, {LayerSystem, system, 3, 14}}
	got := []Origin{l.Origin}
	for _, o := range l.Over {
		got = append(got, o.Origin)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if n := len(c.Explain("fs.search")); n != 9 {
		t.Errorf("%d leaves below fs.search", n)
	}
	if n := len(c.Explain("fs.nosuch")) + len(c.Explain("fs.readLimit.x")) + len(c.Explain("fs.")) + len(c.Explain("f")); n != 0 {
		t.Errorf("%d leaves that do not exist", n)
	}
	for _, l := range c.Explain("") {
		if l.Path == "" || l.Origin.Layer > LayerFlag {
			t.Errorf("%+v", l)
		}
	}
}

// Case 32.
func TestCase032Variables(t *testing.T) {
	h := newHome(t)
	c := h.compose(env("AFIELD_FOO=1", "AFIELD_PROFIL=x", "AFIELD_SESSION=s", "AFIELD_FOO=2"))
	valid(t, c)
	if !slices.Equal(c.UnknownEnv, []string{"AFIELD_FOO", "AFIELD_PROFIL"}) || UnknownVariableHint("AFIELD_PROFIL") != "AFIELD_PROFILE" {
		t.Errorf("%v", c.UnknownEnv)
	}
	for _, name := range []string{"AFIELD_OFFLINE", "AFIELD_NO_PLUGINS", "AFIELD_NO_PROJECT", "AFIELD_TRUST_PROJECT"} {
		refused(t, h.compose(env(name+"=yes")), fault.Usage, name+" must be 1 or 0")
		valid(t, h.compose(env(name+"=0")))
	}
	if !h.compose(env("AFIELD_OFFLINE=1")).Offline {
		t.Error("AFIELD_OFFLINE=1 is not offline")
	}
}

// AFIELD_BACKEND, AFIELD_CWD and AFIELD_KEEP; a directory given by the caller
// outranks the profile's, and one from a file or a later flag outranks it.
func TestBackendAndDirectoryFromTheEnvironment(t *testing.T) {
	h := newHome(t)
	h.user("default", "version: 1\nbackend: local\nconfig: {cwd: /user}\n")
	file := h.write("f.yaml", "version: 1\nrows: [{id: world, config: {cwd: /file}}]\n")
	for _, tt := range []struct {
		want   string
		change []func(*Request)
	}{
		{"/user", nil},
		{"/env", []func(*Request){env("AFIELD_CWD=/env")}},
		{"/file", []func(*Request){env("AFIELD_CWD=/env"), files(file)}},
		{"/flag", []func(*Request){env("AFIELD_CWD=/env"), files(file), cwd("/flag")}},
		{"/set", []func(*Request){cwd("/flag"), set("config.cwd=/set")}},
		{"/flag", []func(*Request){set("config.cwd=/set"), cwd("/flag")}},
	} {
		if p := valid(t, h.compose(tt.change...)); p.FS.Cwd != tt.want || p.FS.Config["cwd"] != tt.want {
			t.Errorf("cwd %q, want %q", p.FS.Cwd, tt.want)
		}
	}
	p := valid(t, h.compose(env("AFIELD_BACKEND=box", "AFIELD_CWD=/b", "AFIELD_KEEP=3m")))
	if p.FS.Provider.Name != "box" || p.FS.Cwd != "/b" || p.Keep.Idle.Minutes() != 3 {
		t.Errorf("%+v %+v", p.FS, p.Keep)
	}
	refused(t, h.compose(env("AFIELD_KEEP=x")), fault.ProfileInvalid, "env AFIELD_KEEP: PROFILE_INVALID keep must be")
}

// Case 33.
func TestCase033WhereProfilesAre(t *testing.T) {
	h := newHome(t)
	path := h.system("ci", "version: 1\nfs: {readLimit: 9}\n")
	c := h.compose(named("ci"))
	if p := valid(t, c); p.FSBlock.ReadLimit != 9 {
		t.Error(p.FSBlock)
	}
	if i := slices.IndexFunc(c.Sources, func(s Source) bool { return s.Path == path }); i < 0 || !c.Sources[i].Exists || c.Sources[i].Layer != LayerSystem || c.Sources[i].Mode != 0o644 {
		t.Errorf("%+v", c.Sources)
	}
	refused(t, h.compose(named("cj")), fault.ProfileNotFound, "there is no profile cj", "did you mean ci? profiles are ci, default")
	refused(t, h.compose(env("AFIELD_PROFILE=nosuch")), fault.ProfileNotFound, "chosen by AFIELD_PROFILE", "profiles are ci, default")
	file := h.write("f.yaml", "version: 1\n")
	valid(t, h.compose(named("nosuch"), files(file)))
	refused(t, h.compose(files("nosuch.yaml")), fault.ProfileNotFound, "nosuch.yaml")
	refused(t, h.compose(files(h.dir)), fault.ProfileInvalid, "cannot be read: it is not a regular file")
}

// An unreadable profile is an error, not an absent one.
func TestUnreadableProfile(t *testing.T) {
	h := newHome(t)
	path := h.path("home/.config/afield/profiles/default.yaml")
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	refused(t, h.compose(), fault.ProfileInvalid, "cannot be read")
	os.Remove(path)
	if err := os.Symlink(path, path); err != nil {
		t.Fatal(err)
	}
	refused(t, h.compose(), fault.ProfileInvalid, "cannot be read: too many levels of symbolic links")
}

// The name: flag, variable, trusted project, config.yaml, default.
func TestWhichProfile(t *testing.T) {
	h := newHome(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		h.user(name, "version: 1\n")
	}
	h.write("home/.config/afield/config.yaml", "version: 1\nprofile: d\n")
	h.trust(h.project("version: 1\nprofile: c\n"))
	check := func(want string, change ...func(*Request)) {
		t.Helper()
		c := h.compose(change...)
		valid(t, c)
		if c.Name != want || c.Why == "" {
			t.Errorf("%s (%s), want %s", c.Name, c.Why, want)
		}
	}
	check("a", named("a"), env("AFIELD_PROFILE=b"))
	check("b", env("AFIELD_PROFILE=b"))
	check("c")
	check("d", func(r *Request) { r.NoProject = true })
	os.Remove(h.path("home/.config/afield/config.yaml"))
	check("default", func(r *Request) { r.NoProject = true })
	h.write("home/.config/afield/config.yaml", "version: 1\nprofle: d\n")
	refused(t, h.compose(func(r *Request) { r.NoProject = true }), fault.ProfileInvalid, "config.yaml:2:1: ", "did you mean profile?")
}

// Case 34.
func TestCase034Use(t *testing.T) {
	h := newHome(t)
	places := NewPlaces(h.env)
	path := h.path("home/.config/afield/config.yaml")
	read := func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if _, err := places.Use("a"); err != nil || read() != "version: 1\nprofile: a\n" {
		t.Errorf("%v %q", err, read())
	}
	before := "# my file\n\nversion: 1\n\n  \nprofile: \"a\"  # work\n\n# end\n"
	h.write("home/.config/afield/config.yaml", before)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := places.Use("b"); err != nil || read() != strings.Replace(before, `"a"`, "b", 1) {
		t.Errorf("%v %q", err, read())
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	h.write("home/.config/afield/config.yaml", "version: 1")
	if _, err := places.Use("b"); err != nil || read() != "version: 1\nprofile: b\n" {
		t.Errorf("%v %q", err, read())
	}
	for _, text := range []string{"{version: 1, profile: a}\n", "version: 1\nprofile:\n  a\n", "version: 1\nx: 1\n", "["} {
		h.write("home/.config/afield/config.yaml", text)
		if _, err := places.Use("b"); fault.CodeOf(err) != fault.ProfileInvalid || read() != text {
			t.Errorf("%q: %v, now %q", text, err, read())
		}
	}
	if found, _ := filepath.Glob(filepath.Dir(path) + "/.afield-*"); len(found) > 0 {
		t.Errorf("left behind: %v", found)
	}
}

// A relative value of a directory variable does not count.
func TestPlaces(t *testing.T) {
	p := NewPlaces([]string{"HOME=/h", "XDG_CONFIG_HOME=rel", "XDG_STATE_HOME=/s/", "AFIELD_DATA_DIR=/d", "XDG_RUNTIME_DIR=/r"})
	if p.Config != "/h/.config/afield" || p.State != "/s/afield" || p.Data != "/d" || p.Runtime != "/r/afield" || p.System != "/etc/afield" {
		t.Errorf("%+v", p)
	}
	if !slices.Equal(p.Ignored, []string{"XDG_CONFIG_HOME"}) {
		t.Error(p.Ignored)
	}
	if p := NewPlaces([]string{"HOME=/h"}); p.Runtime != "/h/.local/state/afield/run" || p.Data != "/h/.local/share/afield/plugins" {
		t.Errorf("%+v", p)
	}
}
