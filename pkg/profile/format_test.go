package profile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/afield-dev/afield/pkg/fault"
)

// Case 1: the short form is one row for both services.
func TestCase001ShortForm(t *testing.T) {
	h := newHome(t)
	h.user("default", "version: 1\nbackend: local\n")
	p := valid(t, h.compose())
	if p.FS != p.Exec || p.FS.ID != "world" || p.FS.Provider.Name != "local" || len(p.FS.Services) != 2 {
		t.Errorf("row %+v", p.FS)
	}
}

// Case 2: the long form has the same digest; so has no file at all.
func TestCase002LongFormHasTheSameDigest(t *testing.T) {
	h := newHome(t)
	want := h.compose().Digest()
	for _, text := range []string{
		"version: 1\nbackend: local\n",
		"version: 1\nrows:\n  - id: world\n    name: local\n",
		"rows: [{name: local, id: world, provides: [exec, fs]}]\nversion: 1\n",
	} {
		h.user("default", text)
		c := h.compose()
		valid(t, c)
		if c.Digest() != want {
			t.Errorf("another digest for %q", text)
		}
	}
	h.user("default", "version: 1\nbackend: local\nconfig: {cwd: /x}\n")
	if h.compose().Digest() == want {
		t.Error("a config does not change the digest")
	}
}

// Case 3.
func TestCase003UnknownTopLevelKey(t *testing.T) {
	h := newHome(t)
	path := h.user("default", "version: 1\n\nbakend: local\n")
	p := refused(t, h.compose(), fault.ProfileInvalid, path+":3:1: ", "did you mean backend?")
	if p.Origin.Line != 3 || p.Origin.Column != 1 || p.Path != "bakend" {
		t.Errorf("%+v", p)
	}
}

// Case 4: all unknown keys in one run, each at its own place.
func TestCase004UnknownKeysAtTheirPlaces(t *testing.T) {
	h := newHome(t)
	path := h.user("default", `version: 1
rows:
  - id: world
    name: ssh
    dissabled: true
    config:
      host: b
      hots: c
mount:
  ttlms: 5
`)
	got := lines(h.compose())
	for _, want := range []string{
		path + ":5:5: PROFILE_INVALID dissabled is not a key of world (did you mean disabled?)",
		path + ":8:7: PROFILE_INVALID hots is not a key of world.config (did you mean host?)",
		path + ":10:3: PROFILE_INVALID ttlms is not a key of mount (did you mean ttlMs?)",
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("missing %q in\n%s", want, got)
		}
	}
	if strings.Count(got, "\n") != 3 {
		t.Errorf("other problems:\n%s", got)
	}
}

// Case 5.
func TestCase005TwoForms(t *testing.T) {
	h := newHome(t)
	h.user("default", "version: 1\nbackend: local\nrows:\n  - {id: a, name: local}\n")
	refused(t, h.compose(), fault.ProfileInvalid, "backend (line 2)", "rows (line 3)")
}

// Case 6.
func TestCase006Documents(t *testing.T) {
	nested := func(n int) string { return "version: 1\nx: " + strings.Repeat("[", n) + strings.Repeat("]", n) + "\n" }
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "the document is empty"},
		{"comments", "# only\n", "the document is empty"},
		{"list", "[]\n", ":1:1: PROFILE_INVALID a profile must be a map and is a list"},
		{"scalar", "x\n", "a profile must be a map and is text"},
		{"two", "version: 1\n---\nversion: 1\n", ":2:1: PROFILE_INVALID a second document"},
		{"large", "version: 1\n#" + strings.Repeat("x", 1<<20-11) + "\n", "larger than 1 MiB"},
		{"deep", nested(32), "nested deeper than 32"},
		{"many", "version: 1\nx: [" + strings.Repeat("1,", 50000) + "]\n", "more than 50000 nodes"},
		{"latin", "version: 1\ndescription: \xE9\n", ":2:14: PROFILE_INVALID the document is not UTF-8"},
		{"NUL", "version: 1\ndescription: a\x00b\n", ":2:15: PROFILE_INVALID NUL is not accepted"},
		{"NUL escaped", "version: 1\nbackend: local\nconfig:\n  cwd: \"/a\\0b\"\n", ":4:8: PROFILE_INVALID NUL is not accepted"},
		{"syntax", "version: 1\nx: [\n", "not YAML"},
		{"no version", "backend: local\n", "version is missing"},
		{"version", "version: 2\n", "version must be 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t)
			h.user("default", tt.text)
			if got := lines(h.compose()); !strings.Contains(got, tt.want) {
				t.Errorf("%q is missing in\n%s", tt.want, got)
			}
		})
	}
	t.Run("within", func(t *testing.T) {
		h := newHome(t)
		h.user("default", "version: 1\n#"+strings.Repeat("x", 1<<20-13)+"\n")
		valid(t, h.compose())
		h.user("default", nested(31))
		refused(t, h.compose(), fault.ProfileInvalid, "x is not a key")
	})
}

// Case 7.
func TestCase007YAMLFeatures(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"description: &a x", ":2:14: PROFILE_INVALID an anchor is not accepted: &a"},
		{"description: *a", "not YAML: unknown anchor"},
		{"fs: &a {readLimit: 5}\nexec: *a", "an alias is not accepted: *a"},
		{"fs:\n  <<: {readLimit: 5}", ":3:3: PROFILE_INVALID a merge key is not accepted: <<"},
		{"description: !env X", ":2:14: PROFILE_INVALID a tag is not accepted: !env"},
		{"description: !!binary aGk=", "a tag is not accepted: !!binary"},
		{"description: !!js x", "a tag is not accepted: !!js"},
		{"description: !!str x", "a tag is not accepted: !!str"},
		{"!!str description: x", ":2:1: PROFILE_INVALID a tag is not accepted: !!str"},
		{"? [a]\n: x", "a key must be text"},
	} {
		h := newHome(t)
		h.user("default", "version: 1\n"+tt.text+"\n")
		if got := lines(h.compose()); !strings.Contains(got, tt.want) {
			t.Errorf("%q: %q is missing in\n%s", tt.text, tt.want, got)
		}
	}
}

// Case 8.
func TestCase008DuplicateKey(t *testing.T) {
	h := newHome(t)
	h.user("default", "version: 1\nfs:\n  readLimit: 1\n  readLimit: 2\n")
	refused(t, h.compose(), fault.ProfileInvalid, ":4:3: ", "readLimit stands here and in line 3")
}

// Case 9.
func TestCase009TruthValues(t *testing.T) {
	for _, text := range []string{"no", `"no"`, "1", "True", "off", "yes"} {
		h := newHome(t)
		h.user("default", "version: 1\nrows: [{id: world, name: local, disabled: "+text+"}]\n")
		refused(t, h.compose(), fault.ProfileInvalid, "write true or false")
	}
	h := newHome(t)
	h.user("default", "version: 1\nrows: [{id: world, name: local, disabled: false}]\n")
	valid(t, h.compose())
}

// Case 10.
func TestCase010Scalars(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"port: 0644", "leading zero"},
		{"port: -01", "leading zero"},
		{`port: "0644"`, "must be a whole number and is text"},
		{"port: 1.5", "must be a whole number and is a number"},
		{"port: 0", "must be at least 1"},
		{"port: 65536", "must be at most 65535"},
		{"port: 99999999999999999999", "too large"},
		{"port: 0x1F", "must be a whole number and is text"},
		{"port: 1_000", "must be a whole number and is text"},
		{"host2: x", "not a key"},
		{"user: [a]", "not a key"},
		{"cwd: 12", "put it in quotes"},
		{"cwd: [a]", "must be text and is a list"},
		{"hostKey: never", "must be one of strict, accept-new"},
		{"jump: a", "must be a list"},
		{"jump: [a, null]", "is null"},
		{"jump: [a, 1]", "must be text"},
		{"options: {a: {b: c}}", "must be text and is a map"},
	} {
		h := newHome(t)
		h.user("default", "version: 1\nbackend: ssh\nconfig:\n  host: h\n  "+tt.text+"\n")
		refused(t, h.compose(), fault.ProfileInvalid, tt.want)
	}
	for _, text := range []string{"2024-05-06", "12:30:00", "1.2.3", "0x1F", "1_000", "+5", ".5", "1e", "0.0.0.0", "=", "y"} {
		h := newHome(t)
		h.user("default", "version: 1\nbackend: ssh\nconfig: {host: "+text+"}\n")
		if got := valid(t, h.compose()).FS.Config["host"]; got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// Case 11: the places are those of the file as an editor counts.
func TestCase011BOMAndCRLF(t *testing.T) {
	h := newHome(t)
	path := h.user("default", "\xEF\xBB\xBFversion: 1\r\ndescription: \"größe\"\r\nbackend: ssh\r\nconfig: {host: ü, prot: 1}\r\n")
	refused(t, h.compose(), fault.ProfileInvalid, path+":4:19: ", "did you mean port?")
	h.user("default", "\xEF\xBB\xBFbakend: 1\r\nversion: 1\r\n")
	refused(t, h.compose(), fault.ProfileInvalid, path+":1:1: ")
}

// Case 12.
func TestCase012UnknownRow(t *testing.T) {
	h := newHome(t)
	h.user("default", "version: 1\nrows:\n  - id: wrold\n    config: {host: x}\n")
	refused(t, h.compose(), fault.ProfileInvalid, ":3:9: ", "no row has the id wrold", "rows are world")
}

// Case 13.
func TestCase013AnotherName(t *testing.T) {
	h := newHome(t)
	h.system("default", "version: 1\nrows: [{id: world, name: ssh, config: {host: a, port: 7}}]\n")
	h.user("default", "version: 1\nrows: [{id: world, name: box}]\n")
	refused(t, h.compose(), fault.ProfileInvalid, "the row world is ssh at", "replace: true")
	h.user("default", "version: 1\nrows: [{id: world, name: ssh, replace: true, config: {host: b}}]\n")
	p := valid(t, h.compose())
	if _, kept := p.FS.Config["port"]; kept || p.FS.Config["host"] != "b" {
		t.Errorf("config %v", p.FS.Config)
	}
}

// Case 14.
func TestCase014SameID(t *testing.T) {
	h := newHome(t)
	h.user("default", "version: 1\nrows:\n  - {id: world, name: local}\n  - {id: world, name: local}\n")
	refused(t, h.compose(), fault.ProfileInvalid, "world stands here and in line 3")
	h.system("default", "version: 1\nrows: [{id: world, name: ssh, config: {host: a}}]\n")
	h.user("default", "version: 1\nrows: [{id: world, config: {port: 7}}]\n")
	if p := valid(t, h.compose()); p.FS.Config["host"] != "a" || p.FS.Config["port"] != int64(7) {
		t.Errorf("config %v", p.FS.Config)
	}
}

// Case 15.
func TestCase015Merge(t *testing.T) {
	h := newHome(t)
	h.system("default", "version: 1\nbackend: ssh\nconfig: {host: a, jump: [x, y], keepaliveMs: 5, options: {p: q, r: s}}\n")
	h.user("default", "version: 1\nrows: [{id: world, config: {jump: [z], keepaliveMs: null, options: {r: t}}}]\n")
	c := h.compose()
	p := valid(t, c)
	if got := fmt.Sprint(p.FS.Config); got != "map[host:a hostKey:strict jump:[z] keepaliveMs:10000 options:map[p:q r:t]]" {
		t.Error(got)
	}
	over := leaf(t, c, "world.config.keepaliveMs").Over
	if len(over) != 2 || over[0].Value != nil || over[1].Value != int64(5) {
		t.Errorf("keepaliveMs over %v", over)
	}
	h.user("default", "version: 1\nrows: [{id: world, config: {options: x}}]\n")
	got := lines(h.compose())
	if !strings.Contains(got, "world.config.options is text here and a map at "+h.path("etc/profiles/default.yaml")+":3:") {
		t.Error(got)
	}
}

// Case 16, and finding 10 of remoteexec.md 19 (OW-9): both rows, their places,
// and the settling line. Composing opens
// nothing: no provider of the table has an Open.
func TestCase016TwoRowsForExec(t *testing.T) {
	h := newHome(t)
	path := h.user("default", "version: 1\nrows:\n  - {id: a, name: local}\n  - {id: b, name: procs}\n")
	refused(t, h.compose(), fault.ProfileConflict, "row a ("+path+":3:", "row b ("+path+":4:", "{id: a, disabled: true}")
}

// Case 17.
func TestCase017NoRow(t *testing.T) {
	h := newHome(t)
	h.user("default", "version: 1\nrows: [{id: world, disabled: true}]\n")
	got := lines(h.compose())
	for _, want := range []string{"PROFILE_NO_PROVIDER no enabled row provides fs", "no enabled row provides exec", "world (disabled at "} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

// Case 18.
func TestCase018SplitWorld(t *testing.T) {
	text := func(split, files, procs string) string {
		return "version: 1\n" + split + "rows:\n  - {id: files, name: local, provides: [fs]" + files +
			"}\n  - {id: procs, name: ssh, provides: [exec], config: {host: h" + procs + "}}\n"
	}
	h := newHome(t)
	h.user("default", text("", "", ""))
	refused(t, h.compose(), fault.ProfileInvalid, "two worlds", "splitWorld: true")
	h.user("default", text("splitWorld: true\n", "", ", cwd: /b"))
	refused(t, h.compose(), fault.ProfileInvalid, "a split world needs a cwd in both rows, and row files has none")
	h.user("default", text("splitWorld: true\n", ", config: {cwd: /a}", ", cwd: /b"))
	c := h.compose()
	p := valid(t, c)
	if p.FS.ID != "files" || p.Exec.ID != "procs" || p.FS.Cwd != "/a" || p.Exec.Cwd != "/b" {
		t.Errorf("%+v %+v", p.FS, p.Exec)
	}
	if note := leaf(t, c, "world.disabled").Note; note != "row files and row procs" {
		t.Errorf("world is off because of %q", note)
	}
	h.user("default", text("splitWorld: true\n", "", ""))
	valid(t, h.compose(cwd("/c")))
}

// Two rows with one provider and one config are one world.
func TestOneWorldInTwoRows(t *testing.T) {
	h := newHome(t)
	h.user("default", "version: 1\nrows:\n  - {id: a, name: ssh, provides: [fs], config: {host: h}}\n  - {id: b, name: ssh, provides: [exec], config: {host: h, cwd: /x}}\n")
	valid(t, h.compose())
}

// Case 20, with files for the plugin's patch: overriding a row that is off does
// not bring it back, and an explicit word does.
func TestCase020OverrideOfARowThatIsOff(t *testing.T) {
	h := newHome(t)
	h.system("default", "version: 1\nrows: [{id: world, disabled: true}, {id: world-box, name: box}]\n")
	h.user("default", "version: 1\nbackend: ssh\nconfig: {host: h}\n")
	over := h.write("over.yaml", "version: 1\nrows: [{id: world-box, config: {cwd: /x}}]\n")
	c := h.compose(files(over))
	if p := valid(t, c); p.FS.Provider.Name != "ssh" || p.Exec != p.FS {
		t.Errorf("%+v", p.FS)
	}
	if l := leaf(t, c, "world-box.disabled"); l.Note != "backend: ssh" || l.Origin.Line != 2 {
		t.Errorf("%+v", l)
	}
	h.write("over.yaml", "version: 1\nrows: [{id: world-box, disabled: false}]\n")
	got := lines(h.compose(files(over)))
	if !strings.Contains(got, "PROFILE_CONFLICT") {
		t.Error(got)
	}
}

// Case 22.
func TestCase022Names(t *testing.T) {
	for _, name := range []string{"../x", "a/b", "node_modules", ".", "", "a b", "-x", "ünï", "UPPER", "x.plugins", strings.Repeat("a", 65)} {
		h := newHome(t)
		refused(t, h.compose(named(name)), fault.ProfileInvalid, "is not accepted")
	}
	h := newHome(t)
	h.user("a.b-c_1", "version: 1\n")
	valid(t, h.compose(named("a.b-c_1")))
	if !ValidName(strings.Repeat("a", 64)) {
		t.Error("64 characters are refused")
	}
}

// Rules over several keys, by a provider and by the blocks.
func TestRulesOverSeveralKeys(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"backend: box\nconfig: {box: b, create: {size: large}}", ":3:15: PROFILE_INVALID world.config.box: goes alone"},
		{"backend: box\nconfig: {create: {sise: large}}", "sise is not a key of world.config.create (did you mean size?)"},
		{"term: {scrollbackMaxBytes: 1000}", "term.maxReadBytes must not exceed term.scrollbackMaxBytes"},
		{"term: {handoffGraceMs: 10}", "term.pollIntervalMs must not exceed term.handoffGraceMs"},
		{"term: {rows: 65536}", "term.rows must be at most 65535"},
		{"exec: {graceMs: 2147483648}", "must be at most"},
		{"mount: {ttlMs: 999}", "must be at least 1000"},
		{"mount: {freshnessThreshold: 1.5}", "must be at most 1"},
		{"mount: {session: -x}", "mount.session must be"},
		{"fence: {mode: all}", "must be one of read-only"},
		{"fs: {newFileMode: \"0900\"}", "octal"},
		{"keep: 5", "must be text"},
		{"keep: soon", "keep must be off or a duration"},
		{"env: {set: {API_TOKEN: x}}", "must not hold credentials"},
		{"env: {pass: [\"a=b\"]}", "must hold names"},
		{"profile: x", "a key of project files only"},
		{"config: {cwd: x}", "config goes with backend"},
		{"backend: docker", "there is no provider"},
		{"backend: shs\nconfig: {host: x}", "did you mean ssh?"},
		{"rows: [{id: World, name: local}]", "begin with a letter or digit"},
		{"rows: [{name: local}]", "a row needs an id"},
		{"rows: [x]", "a row must be a map"},
		{"rows: [{id: w, name: procs, provides: [fs]}]", "does not offer fs"},
	} {
		h := newHome(t)
		h.user("default", "version: 1\n"+tt.text+"\n")
		if got := lines(h.compose()); !strings.Contains(got, tt.want) {
			t.Errorf("%q: %q is missing in\n%s", tt.text, tt.want, got)
		}
	}
}
