package profile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/afield-dev/afield/pkg/fault"
)

// Case 44.
func TestCase044Trust(t *testing.T) {
	h := newHome(t)
	path := h.project("version: 1\nfs: {readLimit: 4}\n")
	p := refused(t, h.compose(), fault.ProfileUntrusted, path, "--no-project", "afield profile trust")
	if p.Origin.Layer != LayerProject {
		t.Errorf("%+v", p)
	}
	if n := valid(t, h.compose(env("AFIELD_TRUST_PROJECT=1"))).FSBlock.ReadLimit; n != 4 {
		t.Error(n)
	}
	h.trust(path)
	c := h.compose()
	if n := valid(t, c).FSBlock.ReadLimit; n != 4 {
		t.Error(n)
	}
	if s := c.Sources[len(c.Sources)-1]; s.Layer != LayerProject || s.Trusted == nil || !*s.Trusted {
		t.Errorf("%+v", s)
	}
	h.project("version: 1\nfs: {readLimit: 5}\n")
	refused(t, h.compose(), fault.ProfileUntrusted)
	h.trust(h.project("version: 1\ntrusted: true\n"))
	refused(t, h.compose(), fault.ProfileInvalid, "trusted is not a key of a profile")
	places := NewPlaces(h.env)
	if list := places.Trusted(); len(list) != 1 || list[0].Path != path {
		t.Errorf("%+v", list)
	}
	if was, err := places.Untrust(path); !was || err != nil {
		t.Error(was, err)
	}
	if was, err := places.Untrust(path); was || err != nil || len(places.Trusted()) != 0 {
		t.Error(was, err)
	}
	info, err := os.Stat(filepath.Join(places.State, "trust"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
}

// A trusted project may still not name programs, registries or external rows.
func TestProjectRestrictions(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"plugins: {registry: x}", "may not name a plugin registry"},
		{"backend: external\nconfig: {argv: [x]}", "external row world"},
		{"rows: [{id: world, name: external, config: {argv: [x]}}]", "external row world"},
	} {
		h := newHome(t)
		h.trust(h.project("version: 1\n" + tt.text + "\n"))
		refused(t, h.compose(), fault.ProfileInvalid, tt.want)
	}
	h := newHome(t)
	h.user("default", "version: 1\nbackend: external\nconfig: {argv: [a]}\n")
	valid(t, h.compose())
	h.trust(h.project("version: 1\nrows: [{id: world, config: {argv: [b]}}]\n"))
	refused(t, h.compose(), fault.ProfileInvalid, "external row world")
	refused(t, h.compose(set("config.argv=[c]")), fault.ProfileInvalid, "external row world")
}

// Case 45.
func TestCase045WhereTheWalkEnds(t *testing.T) {
	h := newHome(t)
	mkdir := func(rel string) string {
		path := h.path(rel)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	above := h.write("home/above/.afield.yaml", "version: 1\n")
	mkdir("home/above/repo/.git")
	inside := mkdir("home/above/repo/src")
	if got := FindProject(inside, h.path("home")); got != "" {
		t.Errorf("found %s above .git", got)
	}
	if got := FindProject(mkdir("home/above/x/y"), h.path("home")); got != above {
		t.Errorf("found %q", got)
	}
	beside := h.write("home/above/repo/.afield.yaml", "version: 1\n")
	if got := FindProject(inside, h.path("home")); got != beside {
		t.Errorf("found %q", got)
	}
	h.write(".afield.yaml", "version: 1\n")
	if got := FindProject(h.dir, h.path("home")); got != "" {
		t.Errorf("found %s above home", got)
	}
	link := h.path("link")
	if err := os.Symlink(inside, link); err != nil {
		t.Fatal(err)
	}
	if got := FindProject(link, h.path("home")); got != beside {
		t.Errorf("found %q through a link", got)
	}
}

// Case 45: a file on another file system does not count.
func TestCase045OtherFileSystem(t *testing.T) {
	h := newHome(t)
	h.write("home/disk/.afield.yaml", "version: 1\n")
	mnt := h.path("home/disk/mnt")
	if err := os.MkdirAll(mnt, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", mnt, "tmpfs", 0, "size=64k"); err != nil {
		if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
			t.Fatalf("needs the right to mount: %v", err)
		}
		t.Skipf("SKIPPED: needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(mnt, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if got := FindProject(mnt, h.path("home")); got != "" {
		t.Errorf("found %s on another file system", got)
	}
	own := h.write("home/disk/mnt/.afield.yaml", "version: 1\n")
	if got := FindProject(mnt, h.path("home")); got != own {
		t.Errorf("found %q", got)
	}
}

// Case 46: trust goes by the real path.
func TestCase046TrustThroughLinks(t *testing.T) {
	h := newHome(t)
	path := h.project("version: 1\n")
	link := h.path("link.yaml")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	places := NewPlaces(h.env)
	content, _ := os.ReadFile(path)
	h.trust(link)
	if !places.Trusts(path, content) {
		t.Error("trusted through the link, not through the path")
	}
	if was, err := places.Untrust(path); !was || err != nil {
		t.Error(was, err)
	}
	h.trust(path)
	if !places.Trusts(link, content) {
		t.Error("trusted through the path, not through the link")
	}
	dir := h.path("dirlink")
	if err := os.Symlink(h.dir, dir); err != nil {
		t.Fatal(err)
	}
	valid(t, h.compose(func(r *Request) { r.Dir = dir }))
}
