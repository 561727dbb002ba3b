package profile

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

func (h *home) secrets() *Secrets {
	return &Secrets{Environ: h.env, Dir: h.dir, Home: h.path("home")}
}

func (h *home) withPassword(ref string) *Profile {
	h.t.Helper()
	h.user("default", "version: 1\nbackend: ssh\nconfig: {host: h, password: "+ref+"}\n")
	return valid(h.t, h.compose())
}

func open(p *Profile, s *Secrets) (string, error) {
	return p.FS.OpenRequest(p, s).Secret(context.Background(), "password")
}

// Case 36: an unset reference matters when the row is opened and not before.
func TestCase036UnsetReference(t *testing.T) {
	h := newHome(t)
	p := h.withPassword("\"${K}\"")
	_, err := open(p, h.secrets())
	if fault.CodeOf(err) != fault.ProfileSecretMissing || !strings.Contains(err.Error(), "world.config.password refers to ${K}") {
		t.Error(err)
	}
	h.env = append(h.env, "K=")
	if _, err := open(p, h.secrets()); fault.CodeOf(err) != fault.ProfileSecretMissing {
		t.Error(err)
	}
	h.env = append(h.env, "K=value")
	if got, err := open(p, h.secrets()); err != nil || got != "value" {
		t.Error(got, err)
	}
	box := valid(t, h.compose(set("backend=box")))
	if got, err := box.FS.OpenRequest(box, h.secrets()).Secret(context.Background(), "apiKey"); got != "" || err != nil {
		t.Errorf("a default that leads nowhere: %q %v", got, err)
	}
	if _, there := box.FS.Config["apiKey"]; there {
		t.Error("the config holds the reference")
	}
}

// Case 37: a literal is refused in every layer, and no output has it.
func TestCase037LiteralInEveryLayer(t *testing.T) {
	const secret = "sk-abc-5c0a"
	short := "version: 1\nbackend: box\nconfig: {apiKey: " + secret + "}\n"
	above := set("config.apiKey=${K}")
	for name, build := range map[string]func(h *home) []func(*Request){
		"system": func(h *home) []func(*Request) { h.system("default", short); return nil },
		"user":   func(h *home) []func(*Request) { h.user("default", short); return nil },
		"user 0600": func(h *home) []func(*Request) {
			os.Chmod(h.user("default", short), 0o600)
			return nil
		},
		"project": func(h *home) []func(*Request) { h.trust(h.project(short)); return nil },
		"env": func(h *home) []func(*Request) {
			return []func(*Request){env("AFIELD_BACKEND=box", "AFIELD_SET=config.apiKey="+secret)}
		},
		"file":     func(h *home) []func(*Request) { return []func(*Request){files(h.write("f.yaml", short))} },
		"flag":     func(h *home) []func(*Request) { return []func(*Request){set("backend=box", "config.apiKey="+secret)} },
		"a number": func(h *home) []func(*Request) { return []func(*Request){set("backend=box", "config.apiKey=5")} },
		"a list": func(h *home) []func(*Request) {
			return []func(*Request){set("backend=box", "config.apiKey=["+secret+"]")}
		},
		"patch": func(h *home) []func(*Request) {
			return []func(*Request){func(r *Request) {
				r.Plugins = func(string) (Plugged, error) { return Plugged{Patches: []Patch{{"p@1", []byte(short)}}}, nil }
			}}
		},
		"below a reference": func(h *home) []func(*Request) { h.user("default", short); return []func(*Request){above} },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			c := h.compose(build(h)...)
			refused(t, c, fault.ProfileSecretLiteral, "world.config.apiKey is secret", secretForms)
			assertNowhere(t, c, secret)
		})
	}
	for _, text := range []string{
		"backend: acme/acme\nconfig: {apiKey: " + secret + "}",
		"backend: acme/acme\nconfig: {deep: {MyToken: " + secret + "}}",
		"backend: acme/acme\nconfig: {tokens: [" + secret + "]}",
		"rows: [{id: out, name: acme/acme, disabled: true, config: {passphrase: " + secret + "}}]",
	} {
		h := newHome(t)
		h.user("default", "version: 1\n"+text+"\n")
		c := h.compose()
		if !strings.Contains(lines(c), string(fault.ProfileSecretLiteral)) {
			t.Errorf("%q is accepted:\n%s", text, lines(c))
		}
		assertNowhere(t, c, secret)
	}
}

// assertNowhere fails if any output of a composition has the text.
func assertNowhere(t *testing.T, c *Composition, text string) {
	t.Helper()
	var out bytes.Buffer
	out.WriteString(lines(c))
	if err := c.Dump(&out); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal([]any{c.Tree(), c.Explain(""), c.Err().Error()})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(data)
	if strings.Contains(out.String(), text) {
		t.Errorf("the text is in\n%s", out.String())
	}
}

// Case 38.
func TestCase038ReferencesInText(t *testing.T) {
	h := newHome(t)
	for _, text := range []string{"a${K}b", "${K}", "${K", "$$${K}{", "x $${A}${B}"} {
		h.user("default", "version: 1\nbackend: ssh\nconfig: {host: \""+text+"\"}\n")
		c := h.compose()
		if text == "$$${K}{" {
			if p := valid(t, c); p.FS.Config["host"] != "$${K}{" {
				t.Error(p.FS.Config)
			}
			continue
		}
		refused(t, c, fault.ProfileInvalid, "${ in world.config.host is not accepted", "$${")
	}
	h.user("default", "version: 1\nbackend: ssh\nconfig: {host: \"$${K}\"}\n")
	if p := valid(t, h.compose()); p.FS.Config["host"] != "${K}" {
		t.Error(p.FS.Config)
	}
	h.user("default", "version: 1\ndescription: \"${K}\"\n")
	refused(t, h.compose(), fault.ProfileInvalid, "${ in description")
	for _, text := range []string{`"${a-b}"`, `"${}"`, `"${1A}"`, "{file: \"\"}", "{file: /x, command: [y]}", "{command: []}", "{command: [1]}", "{env: K}"} {
		h.user("default", "version: 1\nbackend: ssh\nconfig: {host: h, password: "+text+"}\n")
		if c := h.compose(); len(c.Problems) != 1 {
			t.Errorf("%s: %s", text, lines(c))
		}
	}
}

// Case 39.
func TestCase039KeyFiles(t *testing.T) {
	h := newHome(t)
	key := h.write("key", "hunter22\n")
	p := h.withPassword("{file: " + key + "}")
	denied := func(what string) {
		t.Helper()
		if got, err := open(p, h.secrets()); fault.CodeOf(err) != fault.ProfileSecretMissing {
			t.Errorf("%s: %q %v", what, got, err)
		}
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o610, 0o644} {
		os.Chmod(key, mode)
		denied(mode.String())
	}
	link := h.path("link")
	if err := os.Symlink(key, link); err != nil {
		t.Fatal(err)
	}
	p = h.withPassword("{file: " + link + "}")
	denied("link to a file of mode 0644")
	os.Chmod(key, 0o600)
	if got, err := open(p, h.secrets()); got != "hunter22" || err != nil {
		t.Error(got, err)
	}
	h.write("key", strings.Repeat("x", 64<<10+1))
	denied("64 KiB + 1")
	h.write("key", strings.Repeat("x", 64<<10-1)+"\n")
	if got, err := open(p, h.secrets()); len(got) != 64<<10-1 || err != nil {
		t.Error(len(got), err)
	}
	os.Remove(key)
	denied("absent")
	if err := syscall.Mkfifo(key, 0o600); err != nil {
		t.Fatal(err)
	}
	denied("FIFO")
	os.Remove(key)
	os.Mkdir(key, 0o700)
	denied("directory")
}

// Case 39: a file of somebody else is refused, whatever its mode.
func TestCase039ForeignKeyFile(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
			t.Fatal("needs root to make a foreign file")
		}
		t.Skip("SKIPPED: needs root to make a foreign file")
	}
	h := newHome(t)
	key := h.write("key", "hunter22\n")
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(key, 12345, -1); err != nil {
		t.Fatal(err)
	}
	_, err := open(h.withPassword("{file: "+key+"}"), h.secrets())
	if fault.CodeOf(err) != fault.ProfileSecretMissing || !strings.Contains(err.Error(), "belongs to somebody else") {
		t.Error(err)
	}
}

// A relative key file is looked for beside the profile that names it, and ~ is
// the home directory.
func TestKeyFileNames(t *testing.T) {
	h := newHome(t)
	os.Chmod(h.write("home/.config/afield/profiles/k", "beside\n"), 0o600)
	os.Chmod(h.write("home/k", "athome\n"), 0o600)
	for text, want := range map[string]string{"{file: k}": "beside", "{file: \"~/k\"}": "athome"} {
		if got, err := open(h.withPassword(text), h.secrets()); got != want || err != nil {
			t.Errorf("%s: %q %v", text, got, err)
		}
	}
}

// Case 40.
func TestCase040Commands(t *testing.T) {
	if secretCommandLimit != 10*time.Second {
		t.Error("the limit is not 10 s")
	}
	h := newHome(t)
	h.env = append(h.env, "PATH="+os.Getenv("PATH"), "WORD=fromenv")
	p := h.withPassword(`{command: [sh, -c, "printf '%s\n' \"$WORD\""]}`)
	if got, err := open(p, h.secrets()); got != "fromenv" || err != nil {
		t.Error(got, err)
	}
	pid := h.path("pid")
	p = h.withPassword(`{command: [sh, -c, "sleep 600 & echo $! >` + pid + `; wait"]}`)
	for limit := 100 * time.Millisecond; ; limit *= 2 {
		s := h.secrets()
		s.limit = limit
		if _, err := open(p, s); fault.CodeOf(err) != fault.ProfileSecretMissing || !strings.Contains(err.Error(), "did not end within") {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(pid); err == nil && strings.HasSuffix(string(text), "\n") {
			assertGone(t, strings.TrimSpace(string(text)))
			break
		} else if limit > time.Minute {
			t.Fatal("the command never started")
		}
	}
	for _, text := range []string{"[sh, -c, exit 3]", "[/nosuch/program]", "[sh, -c, \"head -c 65537 /dev/zero\"]", "[\"true\"]"} {
		if _, err := open(h.withPassword("{command: "+text+"}"), h.secrets()); fault.CodeOf(err) != fault.ProfileSecretMissing {
			t.Errorf("%s: %v", text, err)
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(fault.ErrInterrupted)
	if _, err := p.FS.OpenRequest(p, h.secrets()).Secret(ctx, "password"); fault.CodeOf(err) != fault.ExecCancelled {
		t.Error(err)
	}
}

// assertGone waits until a process has ended; one that nobody has reaped yet
// has ended too.
func assertGone(t *testing.T, pid string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		state, err := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
		if err != nil || strings.HasPrefix(string(state), "Z") {
			return
		}
	}
	t.Errorf("process %s still lives", pid)
}

// Case 40: only system and user files may ask for a command.
func TestCase040CommandsInOtherLayers(t *testing.T) {
	text := "version: 1\nbackend: ssh\nconfig: {host: h, password: {command: [x]}}\n"
	h := newHome(t)
	h.trust(h.project(text))
	refused(t, h.compose(), fault.ProfileInvalid, "asks for a command")
	h = newHome(t)
	refused(t, h.compose(files(h.write("f.yaml", text))), fault.ProfileInvalid, "asks for a command")
	refused(t, h.compose(set("backend=ssh", "config.host=h", "config.password={command: [x]}")), fault.ProfileInvalid, "asks for a command")
	h.system("default", text)
	valid(t, h.compose())
}

// Case 41, the part without a plugin: every form of a resolved secret is
// masked, short ones are left alone.
func TestCase041Mask(t *testing.T) {
	h := newHome(t)
	const secret = `p&ss "wörd"/+`
	h.env = append(h.env, "K="+secret, "S=abcde")
	s := h.secrets()
	for i, name := range []string{"K", "S"} {
		if _, err := s.Resolve(context.Background(), strconv.Itoa(i), Reference{Env: name}); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{
		secret,
		strconv.Quote(secret),
		url.QueryEscape(secret),
		url.PathEscape(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)),
		base64.URLEncoding.EncodeToString([]byte("u:" + secret)),
		base64.StdEncoding.EncodeToString([]byte("user:" + secret + " and more")),
	} {
		got := s.Mask("before " + text + " after")
		if strings.Contains(got, text) || !strings.Contains(got, masked) || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := s.Mask("abcde"); got != "abcde" {
		t.Errorf("a short secret was masked: %q", got)
	}
}

// Case 43: what was refused is shown with one width, references as written.
func TestCase043ShowWithRefusedLiterals(t *testing.T) {
	var dumps []string
	for _, n := range []int{1, 100} {
		h := newHome(t)
		h.user("default", "version: 1\nbackend: box\nconfig: {apiKey: "+strings.Repeat("q", n)+"}\n")
		c := h.compose()
		refused(t, c, fault.ProfileSecretLiteral)
		if l := leaf(t, c, "world.config.apiKey"); l.Value != masked || !l.Secret {
			t.Errorf("%+v", l)
		}
		var out bytes.Buffer
		c.Dump(&out)
		dumps = append(dumps, strings.SplitN(out.String(), "\n", 2)[1])
	}
	if dumps[0] != dumps[1] {
		t.Errorf("the length shows:\n%s\n%s", dumps[0], dumps[1])
	}
	h := newHome(t)
	h.user("default", "version: 1\nbackend: ssh\nconfig: {host: h, password: {file: /k}}\n")
	if l := leaf(t, h.compose(), "world.config.password"); l.Value.(map[string]any)["file"] != "/k" {
		t.Errorf("%+v", l)
	}
}

// A provider sees which secrets are set, never their values.
func TestProviderCheckSeesNoSecrets(t *testing.T) {
	h := newHome(t)
	var seen map[string]any
	reg := testProviders()
	for i := range reg {
		if reg[i].Name == "ssh" {
			reg[i].Check = func(config map[string]any) (string, string) { seen = config; return "password", "is not wanted" }
		}
	}
	h.user("default", "version: 1\nbackend: ssh\nconfig: {host: h, password: \"${K}\"}\n")
	c := h.compose(func(r *Request) { r.Providers = reg })
	refused(t, c, fault.ProfileInvalid, ":3:29: ", "world.config.password: is not wanted")
	if seen["password"] != true || seen["host"] != "h" {
		t.Errorf("%v", seen)
	}
}
