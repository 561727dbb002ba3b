package cmd

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/local"
	"github.com/afield-dev/afield/pkg/fault"
)

// desk runs commands in this process with a home of its own and providers of
// the test's choice.
type desk struct {
	t         *testing.T
	root      string
	env       []string
	providers backend.Registry
}

func newDesk(t *testing.T, providers ...backend.Provider) *desk {
	t.Helper()
	d := &desk{t: t, root: t.TempDir(), providers: providers}
	d.env = []string{"HOME=" + d.root + "/home", "AFIELD_SYSTEM_DIR=" + d.root + "/etc", "XDG_RUNTIME_DIR=/nosuch", "PATH=" + os.Getenv("PATH")}
	if err := os.MkdirAll(d.root+"/home/desk", 0o755); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) user(name, text string) {
	d.t.Helper()
	path := filepath.Join(d.root, "home/.config/afield/profiles", name+".yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// run gives the status and both streams of one command line.
func (d *desk) run(args ...string) (status int, stdout, stderr string) {
	d.t.Helper()
	var out, errs bytes.Buffer
	a := &app{providers: d.providers, Streams: &Streams{
		In: strings.NewReader(""), Out: &out, Err: &errs, Environ: d.env,
		Dir:      func() (string, error) { return d.root + "/home/desk", nil },
		Terminal: func(any) bool { return false },
	}}
	status = a.main(args)
	return status, out.String(), errs.String()
}

// untouched is a provider whose world must not be opened.
func untouched(t *testing.T, name string) backend.Provider {
	return backend.Provider{
		Name: name, Services: []backend.Service{backend.ServiceFS, backend.ServiceExec},
		Config: backend.Schema{{Key: "cwd", Kind: backend.KindText}, {Key: "host", Kind: backend.KindText, Required: true},
			{Key: "token", Kind: backend.KindText, Secret: true}},
		Open: func(context.Context, backend.OpenRequest) (backend.World, error) {
			t.Error("the world was opened")
			return nil, fault.New(fault.BackendInternal, "open", "", "opened")
		},
	}
}

// Cases 16, 28 and 36: nothing but a command that needs the world opens it, and
// none does so before its flags are checked and its profile is valid.
func TestCase028NothingIsOpened(t *testing.T) {
	d := newDesk(t, local.Provider(), untouched(t, "far"))
	d.user("default", "version: 1\nbackend: far\nconfig: {host: a, token: \"${NOT_SET}\"}\n")
	d.user("two", "version: 1\nrows: [{id: a, name: far, config: {host: a}}, {id: b, name: local}]\n")
	status, out, _ := d.run("fs", "read", "x", "--dump-config", "--set", "config.host=b", "-C", "/w")
	if status != 0 || !strings.Contains(out, "host: b") || !strings.Contains(out, "cwd: /w") || !strings.Contains(out, "token: ${NOT_SET}") {
		t.Errorf("%d %s", status, out)
	}
	for _, args := range [][]string{
		{"profile", "show"}, {"profile", "list"}, {"profile", "validate"}, {"profile", "explain"}, {"profile", "path"},
		{"exec", "--dump-config", "--", "false"}, {"fs", "write", "x", "--dump-config"},
		{"version", "--dump-default-config"},
	} {
		if status, _, errs := d.run(args...); status != 0 {
			t.Errorf("%v: %d %s", args, status, errs)
		}
	}
	for _, tt := range []struct {
		status int
		code   string
		args   []string
	}{
		{2, "USAGE", []string{"fs", "read"}},
		{2, "USAGE", []string{"fs", "read", "x", "--nosuch"}},
		{2, "PROFILE_INVALID", []string{"fs", "read", "x", "--set", "config.hots=b"}},
		{2, "PROFILE_CONFLICT", []string{"fs", "read", "x", "-P", "two"}},
		{2, "PROFILE_NOT_FOUND", []string{"fs", "read", "x", "-P", "nosuch"}},
		{2, "PROFILE_NOT_FOUND", []string{"fs", "read", "x", "--profile-file", "nosuch"}},
		{2, "PROFILE_INVALID", []string{"fs", "read", "x", "-P", ""}},
		{2, "USAGE", []string{"fs", "read", "x", "-C", ""}},
	} {
		if status, out, errs := d.run(tt.args...); status != tt.status || out != "" || !strings.Contains(errs, "["+tt.code+"]") {
			t.Errorf("%v: %d %q %q", tt.args, status, out, errs)
		}
	}
}

// leaky is a provider that gives its secret away wherever it can.
func leaky(t *testing.T) backend.Provider {
	p := untouched(t, "leaky")
	p.Config = backend.Schema{{Key: "token", Kind: backend.KindText, Secret: true}}
	p.Open = func(ctx context.Context, req backend.OpenRequest) (backend.World, error) {
		token, err := req.Secret(ctx, "token")
		if err != nil {
			return nil, err
		}
		in64 := base64.StdEncoding.EncodeToString([]byte("x:" + token))
		req.Log.Warn("warned "+token, "header", in64)
		req.Log.WithGroup("g").With("k", token).Debug("debugged")
		return nil, fault.New(fault.BackendAuthFailed, "open", "/p/"+token, "refused %s as %s", token, in64).WithHint("not %s", token)
	}
	return p
}

// Case 41, for a provider in this process: the secret is masked wherever it is
// shown. Case 36: a reference that leads nowhere names itself and the row.
func TestCase041SecretsAreMasked(t *testing.T) {
	const secret = "hunter2-swordfish"
	d := newDesk(t, leaky(t))
	d.user("default", "version: 1\nbackend: leaky\nconfig: {token: \"${LEAK}\"}\n")
	if status, _, errs := d.run("fs", "read", "x"); status != 2 || !strings.Contains(errs, "world.config.token refers to ${LEAK}") ||
		!strings.Contains(errs, "[PROFILE_SECRET_MISSING]") {
		t.Errorf("%d %s", status, errs)
	}
	d.env = append(d.env, "LEAK="+secret)
	for _, args := range [][]string{{"fs", "read", "x"}, {"fs", "read", "x", "-vv"}, {"fs", "read", "x", "--json", "-v"}, {"doctor"}, {"doctor", "--json", "-vv"}} {
		status, out, errs := d.run(args...)
		all := out + errs
		if status != exitUnreachable || !strings.Contains(all, "***") {
			t.Errorf("%v: %d %s", args, status, all)
		}
		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte("x:" + secret))[4:20]} {
			if strings.Contains(all, form) {
				t.Errorf("%v shows %q:\n%s", args, form, all)
			}
		}
	}
	if _, _, errs := d.run("fs", "read", "x", "-vv"); !strings.Contains(errs, "debug: debugged g.k=***") || !strings.Contains(errs, "warn: warned ***") {
		t.Error(errs)
	}
	if _, _, errs := d.run("fs", "read", "x", "-q"); strings.Contains(errs, "warned") {
		t.Error(errs)
	}
}

// A split world takes files from one row and processes from the other, each
// with its own directory, and closes both.
func TestSplitWorldIsOpened(t *testing.T) {
	var opened, closed []string
	near := func(name string) backend.Provider {
		p := local.Provider()
		open := p.Open
		p.Name = name
		p.Open = func(ctx context.Context, req backend.OpenRequest) (backend.World, error) {
			opened = append(opened, name+" "+req.Cwd)
			w, err := open(ctx, req)
			return closing{w, func() { closed = append(closed, name) }}, err
		}
		return p
	}
	d := newDesk(t, local.Provider(), near("one"), near("two"))
	a, b := d.root+"/home/a", d.root+"/home/b"
	for _, dir := range []string{a, b} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.user("default", "version: 1\nsplitWorld: true\nrows:\n  - {id: f, name: one, provides: [fs], config: {cwd: "+a+
		"}}\n  - {id: p, name: two, provides: [exec], config: {cwd: "+b+"}}\n")
	if status, out, errs := d.run("fs", "path", "x"); status != 0 || out != a+"/x\n" {
		t.Errorf("%d %q %q", status, out, errs)
	}
	if status, out, errs := d.run("exec", "--", "pwd"); status != 0 || out != b+"\n" {
		t.Errorf("%d %q %q", status, out, errs)
	}
	if !slices.Equal(opened[:2], []string{"one " + a, "two " + b}) || !slices.Equal(closed[:2], []string{"two", "one"}) {
		t.Errorf("%v %v", opened, closed)
	}
}

type closing struct {
	backend.World
	closed func()
}

func (c closing) Close(ctx context.Context) error {
	c.closed()
	return c.World.Close(ctx)
}

// The fence of the profile stands around the files of every command.
func TestFenceOfTheProfile(t *testing.T) {
	d := newDesk(t, local.Provider())
	d.user("default", "version: 1\nfence: {}\n")
	if status, _, errs := d.run("fs", "write", "x", "--content", "y"); status != exitDenied || !strings.Contains(errs, "FS_SANDBOX_DENIED") {
		t.Errorf("%d %s", status, errs)
	}
	if status, _, errs := d.run("fs", "write", "x", "--content", "y", "--set", "fence.mode=workspace-write"); status != 0 {
		t.Errorf("%d %s", status, errs)
	}
}

// fs.newFileMode reaches the world.
func TestNewFileModeOfTheProfile(t *testing.T) {
	d := newDesk(t, local.Provider())
	if status, _, errs := d.run("fs", "write", "x", "--content", "y", "--set", `fs.newFileMode="0600"`); status != 0 {
		t.Errorf("%d %s", status, errs)
	}
	if info, err := os.Stat(d.root + "/home/desk/x"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

// A working directory that is not there is an error that names it.
func TestMissingWorkingDirectory(t *testing.T) {
	d := newDesk(t, local.Provider())
	for _, args := range [][]string{
		{"fs", "ls", "-C", "nosuch"}, {"fs", "read", "/etc/passwd", "--set", "config.cwd=nosuch"}, {"fs", "write", "x", "--content", "y", "-C", d.root + "/home/desk/nosuch"},
	} {
		if status, out, errs := d.run(args...); status != exitAbsent || out != "" || !strings.Contains(errs, `the working directory "`+d.root+`/home/desk/nosuch" does not exist`) {
			t.Errorf("%v: %d %q %q", args, status, out, errs)
		}
	}
	if _, err := os.Stat(d.root + "/home/desk/nosuch"); err == nil {
		t.Error("it was made")
	}
	if err := os.WriteFile(d.root+"/home/desk/file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := d.run("fs", "ls", "-C", "file"); status != exitKind || !strings.Contains(errs, "is not a directory") {
		t.Errorf("%d %s", status, errs)
	}
}

// Case 30: the defaults can be shown while the user's file is broken, also the
// project's.
func TestCase030DumpDefaultConfig(t *testing.T) {
	d := newDesk(t, local.Provider())
	d.user("default", "[")
	if err := os.WriteFile(d.root+"/home/desk/.afield.yaml", []byte("]"), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, out, errs := d.run("fs", "read", "x", "--dump-default-config"); status != 0 || !strings.Contains(out, "name: local") || errs != "" {
		t.Errorf("%d %s %s", status, out, errs)
	}
	for _, flag := range []string{"--set=a=b", "--profile-file=x", "--set-string=a=b", "-C=/x", "--dump-config"} {
		if status, out, errs := d.run("fs", "read", "x", "--dump-default-config", flag); status != 2 || out != "" || !strings.Contains(errs, "[USAGE]") {
			t.Errorf("%s: %d %s %s", flag, status, out, errs)
		}
	}
}

// Arguments that set values count in their order, whichever flags they are.
func TestOrderOfOverrides(t *testing.T) {
	d := newDesk(t, local.Provider())
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"/c", []string{"-C", "/a", "--set", "config.cwd=/b", "--cwd=/c"}},
		{"/b", []string{"-C", "/a", "--set", "config.cwd=/b"}},
		{"[x]", []string{"--set", "config.cwd=/b", "--set-string", "config.cwd=[x]"}},
	} {
		_, out, errs := d.run(append([]string{"profile", "explain", "config.cwd", "--json"}, tt.args...)...)
		var r explainResult
		if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Values) != 1 || r.Values[0].Value != tt.want {
			t.Errorf("%v: %s %s %v", tt.args, out, errs, err)
		}
	}
}

// The fields of the profile commands and doctor, stated a second time.
func TestProfileJSONFields(t *testing.T) {
	d := newDesk(t, local.Provider())
	d.user("bad", "version: 1\nbakend: x\n")
	project := d.root + "/home/desk/.afield.yaml"
	if err := os.WriteFile(project, []byte("version: 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"path sha256", []string{"profile", "trust"}},
		{"path sha256", []string{"profile", "trusted"}},
		{"backend current layers name problem services valid why", []string{"profile", "list"}},
		{"digest name problems profile valid why", []string{"profile", "show"}},
		{"digest name values", []string{"profile", "explain", "fs"}},
		{"exists layer mode path trusted", []string{"profile", "path"}},
		{"code column file hint line message path", []string{"profile", "validate", "bad"}},
		{"file name", []string{"profile", "init", "x"}},
		{"file name", []string{"profile", "use", "x"}},
		{"changed path trusted", []string{"profile", "untrust"}},
		{"checks ok", []string{"doctor", "--no-project"}},
		{"digest name problems profile valid why", []string{"fs", "read", "x", "--dump-config", "--no-project"}},
	} {
		_, out, errs := d.run(append(tt.args, "--json")...)
		if got := fieldNames(t, out); got != tt.want {
			t.Errorf("%v: fields %q, want %q: %s %s", tt.args, got, tt.want, out, errs)
		}
	}
	_, out, _ := d.run("profile", "explain", "fs.readLimit", "--json", "--set", "fs.readLimit=5", "--no-project")
	var r struct{ Values []json.RawMessage }
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if got := fieldNames(t, string(r.Values[0])); got != "column file layer line note over path secret source value" {
		t.Error(got)
	}
	_, out, _ = d.run("doctor", "--json", "--no-project")
	var doc struct{ Checks []json.RawMessage }
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	if got := fieldNames(t, string(doc.Checks[0])); got != "detail hint name ok" {
		t.Error(got)
	}
}

// fieldNames gives the sorted keys of a JSON object, or of the first of an
// array.
func fieldNames(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if list, ok := v.([]any); ok && len(list) > 0 {
		v = list[0]
	}
	m, ok := v.(map[string]any)
	if !ok {
		t.Fatalf("no object: %s", text)
	}
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

// Doctor fails with the status of what fails first, and goes on with the rest.
func TestDoctor(t *testing.T) {
	d := newDesk(t, local.Provider())
	status, out, errs := d.run("doctor", "--json")
	var r doctorResult
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err, out)
	}
	var names []string
	for _, c := range r.Checks {
		names = append(names, c.Name)
	}
	if status != 0 || !r.OK || strings.Join(names, " ") != "state sockets profile backend files processes terminal" {
		t.Errorf("%d %v %s", status, names, errs)
	}
	d.user("default", "version: 1\nbackend: nosuch\n")
	if status, out, _ := d.run("doctor"); status != 2 || !strings.Contains(out, "FAIL  profile") || !strings.Contains(out, "ok    terminal") {
		t.Errorf("%d %s", status, out)
	}
	d.user("default", "version: 1\nbackend: local\nconfig: {cwd: /nosuch}\n")
	if status, out, _ := d.run("doctor"); status != exitAbsent || !strings.Contains(out, `FAIL  backend    the working directory "/nosuch" does not exist`) {
		t.Errorf("%d %s", status, out)
	}
	d.user("default", "version: 1\n")
	blocked := d.root + "/file"
	if err := os.WriteFile(blocked, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d.env = append(d.env, "AFIELD_STATE_DIR="+blocked)
	if status, out, _ := d.run("doctor"); status != exitIO || !strings.Contains(out, "FAIL  state") || !strings.Contains(out, "hint: set AFIELD_STATE_DIR") {
		t.Errorf("%d %s", status, out)
	}
}

// --profile and the arguments of the profile commands complete to names.
func TestProfileCompletion(t *testing.T) {
	d := newDesk(t, local.Provider())
	d.user("ci", "version: 1\n")
	d.user("UPPER", "version: 1\n")
	for _, args := range [][]string{{"fs", "read", "-P", ""}, {"profile", "show", ""}, {"profile", "use", "c"}, {"profile", "init", "--from", "c"}} {
		_, out, _ := d.run(append([]string{"__complete"}, args...)...)
		if !strings.Contains(out, "ci\n") || strings.Contains(out, "UPPER") || args[len(args)-1] == "c" && strings.Contains(out, "default") {
			t.Errorf("%v: %s", args, out)
		}
	}
}

// A new profile is valid as it is written, for every provider whose required
// keys can be left blank.
func TestTemplatesAreValid(t *testing.T) {
	d := newDesk(t, local.Provider(), untouched(t, "far"))
	for _, name := range []string{"local", "far"} {
		if status, _, errs := d.run("profile", "init", "p-"+name, "--backend", name); status != 0 {
			t.Fatal(errs)
		}
		if status, out, errs := d.run("profile", "validate", "p-"+name); status != 0 || out != "" {
			t.Errorf("%s: %d %s %s", name, status, out, errs)
		}
	}
	if status, _, errs := d.run("profile", "init", "p-local"); status != exitGuard || !strings.Contains(errs, "[PROFILE_EXISTS]") {
		t.Errorf("%d %s", status, errs)
	}
	if status, _, errs := d.run("profile", "init", "copy", "--from", "p-far"); status != 0 {
		t.Error(errs)
	}
	for _, args := range [][]string{{"init", "../x"}, {"init", "x", "--from", "nosuch"}, {"init", "x", "--from", "default"}, {"init", "x", "--backend", "nosuch"}, {"init", "x", "--from", "copy", "--backend", "far"}} {
		if status, _, errs := d.run(append([]string{"profile"}, args...)...); status != 2 {
			t.Errorf("%v: %d %s", args, status, errs)
		}
	}
}

// The levels of diagnostics follow --quiet and --verbose.
func TestLogLevels(t *testing.T) {
	for _, tt := range []struct {
		flags globalFlags
		want  slog.Level
	}{
		{globalFlags{quiet: true}, slog.LevelError}, {globalFlags{}, slog.LevelWarn},
		{globalFlags{verbose: 1}, slog.LevelInfo}, {globalFlags{verbose: 2}, slog.LevelDebug},
	} {
		a := &app{flags: tt.flags, Streams: &Streams{Err: &bytes.Buffer{}}}
		if !a.logger().Enabled(context.Background(), tt.want) || a.logger().Enabled(context.Background(), tt.want-1) {
			t.Errorf("%+v", tt.flags)
		}
	}
}
