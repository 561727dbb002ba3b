package plugin

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// member is one member of an archive that a test makes.
type member struct {
	name string
	body string
	h    tar.Header // what else is set
}

// tarOf makes a tar stream.
func tarOf(t testing.TB, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		h := m.h
		h.Name, h.Size = m.name, int64(len(m.body))
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Typeflag != tar.TypeReg {
			h.Size = 0
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			io.WriteString(w, m.body)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gz(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

func tgz(t testing.TB, members ...member) []byte { return gz(tarOf(t, members...)) }

// unpackHere unpacks into a fresh directory inside another that must stay
// empty.
func unpackHere(t testing.TB, archive []byte, lim Limits) (string, Tree, error) {
	t.Helper()
	outer := t.TempDir()
	dir := filepath.Join(outer, "tree")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	tree, err := unpack(context.Background(), bytes.NewReader(archive), root, lim)
	if found, _ := os.ReadDir(outer); len(found) != 1 {
		t.Errorf("something was written outside: %v", found)
	}
	return dir, tree, err
}

func wantCode(t testing.TB, err error, code fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Errorf("got %v (%s), want %s", err, fault.CodeOf(err), code)
	}
	if err != nil && strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x7f }) {
		t.Errorf("the message has control characters: %q (case 87)", err)
	}
}

func file(name string) member { return member{name: name, body: "x"} }

func link(kind byte, name, to string) member {
	return member{name: name, h: tar.Header{Typeflag: kind, Linkname: to}}
}

// Cases 72 to 77: each is refused as a whole.
func TestHostileMembersAreRefused(t *testing.T) {
	long := strings.Repeat("a", 256)
	deep := "p/" + strings.Repeat("d/", 32) + "f"
	for name, members := range map[string][]member{
		"72 dot dot inside":          {file("package/../../x")},
		"72 dot dot first":           {file("../x")},
		"72 absolute":                {file("/etc/x")},
		"72 drive":                   {file("C:/x")},
		"72 drive relative":          {file("C:x")},
		"72 share":                   {file(`\\srv\x`)},
		"72 backslashes":             {file(`a\..\..\x`)},
		"72 backslashes below":       {file(`p/a\..\..\x`)},
		"73 link":                    {link(tar.TypeSymlink, "p/l", "x")},
		"73 through a link":          {link(tar.TypeSymlink, "p/l", "/tmp"), file("p/l/x")},
		"73 hard link":               {link(tar.TypeLink, "p/l", "/etc/passwd")},
		"73 hard link to a member":   {file("p/a"), link(tar.TypeLink, "p/l", "p/a")},
		"74 character device":        {{name: "p/d", h: tar.Header{Typeflag: tar.TypeChar}}},
		"74 block device":            {{name: "p/d", h: tar.Header{Typeflag: tar.TypeBlock}}},
		"74 fifo":                    {{name: "p/d", h: tar.Header{Typeflag: tar.TypeFifo}}},
		"74 contiguous":              {{name: "p/d", h: tar.Header{Typeflag: tar.TypeCont}}},
		"74 unknown":                 {{name: "p/d", h: tar.Header{Typeflag: 'Z'}}},
		"75 twice":                   {file("p/a"), file("p/a")},
		"75 by case":                 {file("p/A"), file("p/a")},
		"75 directories by case":     {file("p/A/x"), file("p/a/y")},
		"75 by form":                 {file("p/\u00e9"), file("p/e\u0301")},
		"75 kelvin":                  {file("p/k"), file("p/\u212a")},
		"75 file then directory":     {file("p/d"), file("p/d/x")},
		"75 directory then file":     {file("p/d/x"), file("p/d")},
		"75 directory twice":         {link(tar.TypeDir, "p/d/", ""), link(tar.TypeDir, "p/d/", "")},
		"76 two tops":                {file("p/a"), file("q/b")},
		"76 only the first":          {file("p")},
		"76 no directory":            {file("a"), file("b")},
		"76 dot":                     {file("./a")},
		"77 newline":                 {file("p/a\nb")},
		"77 escape":                  {file("p/\x1b[2Jb")},
		"77 colon":                   {file("p/a:b")},
		"77 trailing dot":            {file("p/a.")},
		"77 trailing blank":          {file("p/a ")},
		"77 CON":                     {file("p/CON")},
		"77 nul.txt":                 {file("p/nul.txt")},
		"77 lpt1 below":              {file("p/lpt1.d/x")},
		"77 not UTF-8":               {file("p/\xff")},
		"77 long component":          {file("p/" + long)},
		"77 long path":               {file("p/" + strings.Repeat(strings.Repeat("b", 204)+"/", 5) + "c")},
		"77 deep":                    {file(deep)},
		"77 GNU long name":           {{name: "p/" + strings.Repeat("x/", 100) + "../../y", body: "x", h: tar.Header{Format: tar.FormatGNU}}},
		"77 PAX path":                {{name: "p/" + strings.Repeat("y/", 100) + "../é", body: "x", h: tar.Header{Format: tar.FormatPAX}}},
		"74 sparse":                  {{name: "p/s", body: "x", h: tar.Header{Typeflag: tar.TypeGNUSparse, Format: tar.FormatGNU}}},
		"79 no member":               {},
		"77 empty component":         {file("p//x")},
		"77 the last component: dot": {file("p/.")},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := unpackHere(t, tgz(t, members...), StandardLimits())
			wantCode(t, err, fault.PluginArchiveInvalid)
		})
	}
}

// Case 77: paths of exactly the bounds are accepted; one more is not (above).
func TestPathBounds(t *testing.T) {
	for _, name := range []string{
		"p/" + strings.Repeat("a", 255),
		"p/" + strings.Repeat("d/", 31) + "f",
		"p/" + strings.Repeat(strings.Repeat("b", 204)+"/", 4) + strings.Repeat("c", 204),
	} {
		if _, _, err := unpackHere(t, tgz(t, file(name)), StandardLimits()); err != nil {
			t.Errorf("%.40s…: %v", name, err)
		}
	}
	if reason := checkPath(strings.Repeat(strings.Repeat("b", 204)+"/", 5) + ""); reason == "" {
		t.Error("a path of 1025 bytes is accepted")
	}
}

// rawHeader makes the header block of a member by hand, with a right sum.
func rawHeader(name string, size int, kind byte) []byte {
	b := make([]byte, 512)
	copy(b, name)
	copy(b[100:], "0000644\x000000000\x000000000\x00")
	copy(b[124:], fmt.Sprintf("%011o\x00", size))
	copy(b[136:], "00000000000\x00        ")
	b[156] = kind
	copy(b[257:], "ustar\x0000")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

func block(s string) []byte {
	b := make([]byte, (len(s)+511)/512*512)
	copy(b, s)
	return b
}

// Case 77: what header records hide is found.
func TestHeaderRecordsCannotHide(t *testing.T) {
	end := make([]byte, 1024)
	for name, archive := range map[string][]byte{
		"PAX path":  bytes.Join([][]byte{rawHeader("p/x", 13, 'x'), block("13 path=../x\n"), rawHeader("p/a", 1, '0'), block("x"), end}, nil),
		"PAX size":  bytes.Join([][]byte{rawHeader("p/x", 9, 'x'), block("9 size=3\n"), rawHeader("p/a", 1, '0'), block("x"), end}, nil),
		"GNU name":  bytes.Join([][]byte{rawHeader("p/x", 9, 'L'), block("p/../../x"), rawHeader("p/a", 1, '0'), block("x"), end}, nil),
		"PAX parts": bytes.Join([][]byte{rawHeader("p/x", 22, 'x'), block("22 GNU.sparse.major=1\n"), rawHeader("p/a", 1, '0'), block("x"), end}, nil),
	} {
		_, _, err := unpackHere(t, gz(archive), StandardLimits())
		if fault.CodeOf(err) != fault.PluginArchiveInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// zeros are so many zero bytes.
type zeros int64

func (z *zeros) Read(p []byte) (int, error) {
	if *z <= 0 {
		return 0, io.EOF
	}
	n := min(len(p), int(*z))
	clear(p[:n])
	*z -= zeros(n)
	return n, nil
}

// bomb is an archive whose one file is announced with size and made of zeros,
// body of them.
func bomb(t *testing.T, size, body int64) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(rawHeader("p/zeros", int(size), '0'))
	z := zeros(body)
	io.Copy(w, &z)
	w.Close()
	return out.Bytes()
}

// Case 78: each bound holds at its value, and one beyond is refused at the
// bound.
func TestBoundsStopTheReading(t *testing.T) {
	small := StandardLimits()
	small.Members, small.Total, small.File, small.Records = 3, 100, 60, 1000
	body := func(n int) string { return strings.Repeat("z", n) }
	records := func(n int) member {
		return member{name: "p/a", h: tar.Header{Format: tar.FormatPAX, PAXRecords: map[string]string{"A.b": body(n - 3)}}}
	}
	for _, c := range []struct {
		name    string
		members []member
		refused bool
	}{
		{"members", []member{file("p/a"), file("p/b"), file("p/c")}, false},
		{"members + 1", []member{file("p/a"), file("p/b"), file("p/c"), file("p/d")}, true},
		{"file", []member{{name: "p/a", body: body(60)}}, false},
		{"file + 1", []member{{name: "p/a", body: body(61)}}, true},
		{"total", []member{{name: "p/a", body: body(50)}, {name: "p/b", body: body(50)}}, false},
		{"total + 1", []member{{name: "p/a", body: body(50)}, {name: "p/b", body: body(51)}}, true},
		{"records", []member{records(1000)}, false},
		{"records + 1", []member{records(1001)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := unpackHere(t, tgz(t, c.members...), small)
			if c.refused {
				wantCode(t, err, fault.PluginTooLarge)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// Case 78: 40 MiB of zeros in some 40 kB, 257 MiB in one file, an archive over
// its own bound: memory stays below 64 MiB and the disk below the bound.
func TestBombs(t *testing.T) {
	for _, c := range []struct {
		name string
		size int64
		body int64
		disk int64
	}{{"ratio", 200 << 20, 40 << 20, 32 << 20}, {"one file", 257 << 20, 0, 0}} {
		archive := bomb(t, c.size, c.body)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		dir, _, err := unpackHere(t, archive, StandardLimits())
		runtime.ReadMemStats(&after)
		wantCode(t, err, fault.PluginTooLarge)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
			t.Errorf("%s: allocated %d bytes", c.name, grown)
		}
		if info, err := os.Stat(filepath.Join(dir, "zeros")); err == nil && info.Size() > c.disk {
			t.Errorf("%s: wrote %d bytes", c.name, info.Size())
		}
	}
	lim := StandardLimits()
	lim.Packed = 100
	_, _, err := unpackHere(t, tgz(t, member{name: "p/a", body: rand4k()}), lim)
	wantCode(t, err, fault.PluginTooLarge)
}

// rand4k is text that does not pack well.
func rand4k() string {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "%x", i*i*7919)
	}
	return b.String()
}

// Case 78: no end of directories ends at the bound of members.
func TestManyDirectories(t *testing.T) {
	lim := StandardLimits()
	lim.Members = 300
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	for i := range 5000 {
		w.Write(rawHeader(fmt.Sprintf("p/d%d/", i), 0, '5'))
	}
	w.Close()
	dir, _, err := unpackHere(t, out.Bytes(), lim)
	wantCode(t, err, fault.PluginTooLarge)
	if found, _ := os.ReadDir(dir); len(found) > lim.Members {
		t.Errorf("made %d directories", len(found))
	}
}

// Case 79: what is not one whole gzip member with one whole tar stream.
func TestBrokenArchives(t *testing.T) {
	plain := tarOf(t, file("p/a"), file("p/b"))
	whole := gz(plain)
	for name, archive := range map[string][]byte{
		"truncated gzip":           whole[:len(whole)-4],
		"cut in the middle":        whole[:len(whole)/2],
		"truncated tar":            gz(plain[:700]),
		"tar without an end":       gz(plain[:2048]),
		"tar with half an end":     gz(plain[:2048+512]),
		"trailing bytes":           append(append([]byte{}, whole...), "garbage"...),
		"trailing bytes inside":    gz(append(append([]byte{}, plain...), "garbage"...)),
		"two gzip members":         append(append([]byte{}, whole...), whole...),
		"gzip inside gzip":         gz(whole),
		"a zip":                    []byte("PK\x03\x04rest of a zip file"),
		"text":                     []byte("hello\n"),
		"nothing":                  {},
		"wrong sum of a tar block": gz(append([]byte{0xff}, plain[1:]...)),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := unpackHere(t, archive, StandardLimits())
			wantCode(t, err, fault.PluginArchiveInvalid)
		})
	}
	padded := append(append([]byte{}, gz(append(plain, make([]byte, 10240)...))...), 0, 0, 0)
	if _, _, err := unpackHere(t, padded, StandardLimits()); err != nil {
		t.Errorf("zero padding is accepted (U-7): %v", err)
	}
}

// Case 81: odd modes, owners and times are accepted and not restored.
func TestModesAreOurOwn(t *testing.T) {
	odd := func(name string, mode int64, year int) member {
		return member{name: name, body: "x", h: tar.Header{Mode: mode, Uname: "root", ModTime: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)}}
	}
	dir, tree, err := unpackHere(t, tgz(t, odd("p/suid", 0o4755, 1970), odd("p/sticky", 0o1666, 2100), odd("p/d/x", 0o100, 1970)), StandardLimits())
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{"suid": 0o755, "sticky": 0o644, "d/x": 0o755} {
		info, err := os.Lstat(filepath.Join(dir, path))
		if err != nil || info.Mode() != want || time.Since(info.ModTime()) > time.Hour {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	root, _ := os.OpenRoot(dir)
	defer root.Close()
	if again, err := readTree(root); err != nil || again.Digest != tree.Digest || len(tree.Files) != 3 {
		t.Errorf("the tree read back is another: %v %v", again, err)
	}
}

// Archives of real programs are accepted, and give the tree of their directory.
func TestRealArchivers(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "src")
	os.MkdirAll(filepath.Join(src, "bin"), 0o755)
	os.WriteFile(filepath.Join(src, "package.json"), []byte(`{"name":"real","version":"1.0.0"}`), 0o644)
	os.WriteFile(filepath.Join(src, "bin", strings.Repeat("long", 40)), []byte("x"), 0o755)
	from, _ := os.OpenRoot(src)
	defer from.Close()
	copied := filepath.Join(dir, "copy")
	os.Mkdir(copied, 0o700)
	to, _ := os.OpenRoot(copied)
	defer to.Close()
	want, err := copyDirectory(context.Background(), from, to, StandardLimits())
	if err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{
		{"tar", "czf", "../a.tgz", "../src", "--transform=s,^../,,"},
		{"tar", "--format=pax", "-C", "..", "-czf", "../a.tgz", "src"},
		{"tar", "--format=gnu", "-C", "..", "-czf", "../a.tgz", "src"},
		{"bsdtar", "-C", "..", "-czf", "../a.tgz", "src"},
		{"sh", "-c", "npm pack --silent --pack-destination .. >/dev/null && mv ../real-1.0.0.tgz ../a.tgz"},
	} {
		t.Run(argv[0]+" "+argv[1], func(t *testing.T) {
			program := argv[0]
			if program == "sh" {
				program = "npm"
			}
			if _, err := exec.LookPath(program); err != nil {
				if program != "bsdtar" && os.Getenv("AFIELD_TEST_REQUIRE") != "" {
					t.Fatal(err)
				}
				t.Skipf("SKIPPED: %v", err)
			}
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Dir = src
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			archive, _ := os.ReadFile(filepath.Join(dir, "a.tgz"))
			os.Remove(filepath.Join(dir, "a.tgz"))
			_, got, err := unpackHere(t, archive, StandardLimits())
			if err != nil {
				t.Fatal(err)
			}
			if program == "npm" { // npm drops nothing here, but sets modes of its own
				if len(got.Files) != len(want.Files) {
					t.Errorf("got %s", got.List())
				}
			} else if got.Digest != want.Digest {
				t.Errorf("got %s want %s", got.List(), want.List())
			}
		})
	}
}

// Case 84: what a directory may not hold.
func TestDirectoryRules(t *testing.T) {
	copyFrom := func(t *testing.T, prepare func(dir string)) (Tree, error) {
		dir := t.TempDir()
		os.WriteFile(filepath.Join(dir, "a"), []byte("a"), 0o644)
		prepare(dir)
		from, _ := os.OpenRoot(dir)
		defer from.Close()
		to, _ := os.OpenRoot(t.TempDir())
		defer to.Close()
		return copyDirectory(context.Background(), from, to, StandardLimits())
	}
	for name, prepare := range map[string]func(dir string){
		"link inside": func(dir string) { os.Symlink("a", filepath.Join(dir, "l")) },
		"fifo":        func(dir string) { exec.Command("mkfifo", filepath.Join(dir, "f")).Run() },
		"bad name":    func(dir string) { os.WriteFile(filepath.Join(dir, "a:b"), nil, 0o644) },
	} {
		_, err := copyFrom(t, prepare)
		t.Run(name, func(t *testing.T) { wantCode(t, err, fault.PluginArchiveInvalid) })
	}
	tree, err := copyFrom(t, func(dir string) {
		os.MkdirAll(filepath.Join(dir, ".git/objects"), 0o755)
		os.MkdirAll(filepath.Join(dir, "node_modules/.cache/x"), 0o755)
		os.Symlink("a", filepath.Join(dir, ".git", "l"))
		os.WriteFile(filepath.Join(dir, ".DS_Store"), nil, 0o644)
	})
	if err != nil || len(tree.Files) != 1 {
		t.Errorf("%v %v: .git and caches are left out", tree, err)
	}
}

// Case 84: a file that has another size than it was announced with.
func TestGrowingFileIsRefused(t *testing.T) {
	root, _ := os.OpenRoot(t.TempDir())
	defer root.Close()
	for _, body := range []string{"abc", "a"} {
		w := treeWriter{root: root, lim: StandardLimits()}
		err := w.file("f"+body, false, 2, strings.NewReader(body))
		wantCode(t, err, fault.PluginArchiveInvalid)
	}
}

// A cancelled unpacking ends with the word for it.
func TestUnpackIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(fault.ErrInterrupted)
	root, _ := os.OpenRoot(t.TempDir())
	defer root.Close()
	_, err := unpack(ctx, bytes.NewReader(tgz(t, file("p/a"))), root, StandardLimits())
	if !errors.Is(err, fault.ErrInterrupted) {
		t.Errorf("got %v", err)
	}
}

// Whatever the bytes are: no panic, nothing outside, and a tree that reads back
// as it was reported.
func FuzzUnpack(f *testing.F) {
	f.Add(tgz(f, file("p/a"), link(tar.TypeDir, "p/d/", ""), file("p/d/x")))
	f.Add(tgz(f, file("p/../x")))
	f.Add(tgz(f, link(tar.TypeSymlink, "p/l", "/tmp"), file("p/l/x")))
	f.Add(tgz(f, member{name: "p/" + strings.Repeat("y", 120), body: "x", h: tar.Header{Format: tar.FormatPAX}}))
	f.Add([]byte("hello"))
	lim := Limits{Members: 50, Total: 1 << 20, File: 1 << 20, Packed: 1 << 20, Records: 4096, Ratio: 200, Free: 1 << 20}
	f.Fuzz(func(t *testing.T, archive []byte) {
		for _, a := range [][]byte{archive, gz(archive)} {
			dir, tree, err := unpackHere(t, a, lim)
			if err != nil {
				if fault.CodeOf(err) == "" {
					t.Errorf("an error without a code: %v", err)
				}
				continue
			}
			root, _ := os.OpenRoot(dir)
			again, err := readTree(root)
			root.Close()
			if err != nil || again.Digest != tree.Digest {
				t.Errorf("%v: read back %s, reported %s", err, again.List(), tree.List())
			}
		}
	})
}
