package local

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// acl gives user 4242 the right to read: version 2, then entries of tag,
// permission and id for the owner, that user, the group, the mask and others.
var acl = []byte{2, 0, 0, 0,
	1, 0, 6, 0, 255, 255, 255, 255,
	2, 0, 4, 0, 146, 16, 0, 0,
	4, 0, 4, 0, 255, 255, 255, 255,
	16, 0, 4, 0, 255, 255, 255, 255,
	32, 0, 0, 0, 255, 255, 255, 255}

// A replaced file keeps its owner, its access list and its extended attributes
// (S-23), and no capability, which was given to the old content.
func TestReplacingKeepsOwnerListAndAttributes(t *testing.T) {
	f, dir := hooked(t, hooks{})
	path := filepath.Join(dir, "f")
	store(t, path, "old")
	set := map[string][]byte{"user.note": []byte("kept"), "system.posix_acl_access": acl}
	for name, value := range set {
		if err := unix.Setxattr(path, name, value, 0); err != nil {
			need(t, "setting %s in %s: %v", name, dir, err)
			t.SkipNow()
		}
	}
	root := os.Geteuid() == 0
	if root {
		if err := os.Chown(path, 4242, 4343); err != nil {
			t.Fatal(err)
		}
		capability := []byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		if err := unix.Setxattr(path, "security.capability", capability, 0); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := replace(f, "f"); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "new")
	for name, value := range set {
		if got, ok := attribute(path, name); !ok || string(got) != string(value) {
			t.Errorf("%s is %v, %v; want %v", name, got, ok, value)
		}
	}
	after, err := os.Stat(path)
	if err != nil || after.Mode() != before.Mode() {
		t.Errorf("mode %v, %v; want %v", after.Mode(), err, before.Mode())
	}
	if st := after.Sys().(*syscall.Stat_t); root && (st.Uid != 4242 || st.Gid != 4343) {
		t.Errorf("owner %d, group %d", st.Uid, st.Gid)
	}
	if _, ok := attribute(path, "security.capability"); ok {
		t.Error("the capability was kept")
	}
}

// A file made in a directory with a default access list is what any program's
// new file would be there.
func TestNewFilesFollowADefaultList(t *testing.T) {
	f, dir := hooked(t, hooks{})
	if err := unix.Setxattr(dir, "system.posix_acl_default", acl, 0); err != nil {
		need(t, "setting a default access list in %s: %v", dir, err)
		t.SkipNow()
	}
	if err := replace(f, "ours"); err != nil {
		t.Fatal(err)
	}
	store(t, filepath.Join(dir, "theirs"), "x")
	ours, err := os.Stat(filepath.Join(dir, "ours"))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := os.Stat(filepath.Join(dir, "theirs"))
	if err != nil {
		t.Fatal(err)
	}
	list, _ := attribute(filepath.Join(dir, "ours"), "system.posix_acl_access")
	other, _ := attribute(filepath.Join(dir, "theirs"), "system.posix_acl_access")
	if ours.Mode() != theirs.Mode() || string(list) != string(other) {
		t.Errorf("mode %v with list %v; another program's has %v with %v", ours.Mode(), list, theirs.Mode(), other)
	}
}
