package profile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
)

// home is a caller's home with configuration directories of its own.
type home struct {
	t    *testing.T
	root string
	env  []string
	dir  string
}

func newHome(t *testing.T) *home {
	t.Helper()
	root := physical(t.TempDir())
	h := &home{t: t, root: root, dir: filepath.Join(root, "home", "work")}
	h.env = []string{
		"HOME=" + filepath.Join(root, "home"),
		"AFIELD_SYSTEM_DIR=" + filepath.Join(root, "etc"),
	}
	if err := os.MkdirAll(h.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *home) path(rel string) string { return filepath.Join(h.root, rel) }

func (h *home) write(rel, content string) string {
	h.t.Helper()
	path := h.path(rel)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		h.t.Fatal(err)
	}
	return path
}

func (h *home) user(name, content string) string {
	return h.write("home/.config/afield/profiles/"+name+".yaml", content)
}

func (h *home) system(name, content string) string {
	return h.write("etc/profiles/"+name+".yaml", content)
}

func (h *home) project(content string) string { return h.write("home/work/.afield.yaml", content) }

func (h *home) trust(path string) {
	h.t.Helper()
	if _, err := NewPlaces(h.env).Trust(path); err != nil {
		h.t.Fatal(err)
	}
}

func (h *home) compose(change ...func(*Request)) *Composition {
	h.t.Helper()
	req := Request{Environ: h.env, Dir: h.dir, Providers: testProviders()}
	for _, f := range change {
		f(&req)
	}
	return Compose(req)
}

func named(name string) func(*Request) { return func(r *Request) { r.Name, r.Named = name, true } }
func env(entries ...string) func(*Request) {
	return func(r *Request) { r.Environ = append(append([]string{}, r.Environ...), entries...) }
}
func files(paths ...string) func(*Request) { return func(r *Request) { r.Files = paths } }
func set(texts ...string) func(*Request) {
	return func(r *Request) {
		for _, t := range texts {
			r.Overrides = append(r.Overrides, Override{Text: t})
		}
	}
}
func cwd(dir string) func(*Request) {
	return func(r *Request) { r.Overrides = append(r.Overrides, Override{Text: dir, Cwd: true}) }
}

// testProviders are small providers in the shape of the real ones.
func testProviders() backend.Registry {
	both := []backend.Service{backend.ServiceFS, backend.ServiceExec}
	cwd := backend.Field{Key: "cwd", Kind: backend.KindText}
	return backend.Registry{
		{Name: "local", Services: both, Config: backend.Schema{cwd, {Key: "a.b", Kind: backend.KindInt}}},
		{Name: "ssh", Services: both, Config: backend.Schema{
			{Key: "host", Kind: backend.KindText, Required: true},
			{Key: "port", Kind: backend.KindInt, Min: 1, Max: 65535},
			cwd,
			{Key: "password", Kind: backend.KindText, Secret: true},
			{Key: "hostKey", Kind: backend.KindText, Enum: []string{"strict", "accept-new"}, Default: "strict"},
			{Key: "keepaliveMs", Kind: backend.KindInt, Default: 10000},
			{Key: "options", Kind: backend.KindMap},
			{Key: "jump", Kind: backend.KindList},
		}},
		{Name: "box", Services: both, Config: backend.Schema{
			{Key: "apiKey", Kind: backend.KindText, Secret: true, Default: "${BOX_KEY}"},
			{Key: "cwd", Kind: backend.KindText, Default: "/workspace"},
			{Key: "create", Kind: backend.KindMap, Fields: backend.Schema{
				{Key: "size", Kind: backend.KindText, Default: "small"},
				{Key: "ttl", Kind: backend.KindInt},
				{Key: "labels", Kind: backend.KindMap},
			}},
			{Key: "box", Kind: backend.KindText},
		}, Check: func(config map[string]any) (string, string) {
			if config["box"] != nil && config["create"] != nil {
				return "box", "goes alone, without create"
			}
			return "", ""
		}},
		{Name: "procs", Services: []backend.Service{backend.ServiceExec}, Config: backend.Schema{cwd}},
		{Name: "external", Services: both, Config: backend.Schema{cwd, {Key: "argv", Kind: backend.KindList, Required: true}}},
	}
}

// valid fails the test if the composition has problems.
func valid(t *testing.T, c *Composition) *Profile {
	t.Helper()
	p, err := c.Profile()
	if err != nil {
		t.Fatalf("not valid:\n%s", lines(c))
	}
	return p
}

func lines(c *Composition) string {
	var b strings.Builder
	for _, p := range c.Problems {
		b.WriteString(p.Line() + "\n")
	}
	return b.String()
}

// refused fails the test unless exactly one problem stands there, with this
// code and these words.
func refused(t *testing.T, c *Composition, code fault.Code, words ...string) Problem {
	t.Helper()
	if len(c.Problems) != 1 {
		t.Fatalf("%d problems, want 1:\n%s", len(c.Problems), lines(c))
	}
	p := c.Problems[0]
	if p.Code != code {
		t.Errorf("code %s, want %s: %s", p.Code, code, p.Line())
	}
	for _, w := range words {
		if !strings.Contains(p.Line(), w) {
			t.Errorf("%q is missing in %q", w, p.Line())
		}
	}
	return p
}

// leaf gives the value and the origin at a path.
func leaf(t *testing.T, c *Composition, path string) Leaf {
	t.Helper()
	found := c.Explain(path)
	if len(found) != 1 || found[0].Path != path {
		t.Fatalf("%s: %d leaves", path, len(found))
	}
	return found[0]
}
