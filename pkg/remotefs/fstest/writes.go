package fstest

import (
	"fmt"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// writeCases are table G: writeText.
func writeCases() []Case {
	return append(contentCases(), placeCases()...)
}

// contentCases are about what is written.
func contentCases() []Case {
	return []Case{
		{127, "a guarded write makes a file", All, 0, func(e *env) {
			out := e.write(e.at("f"), guarded(want("new"), ""))
			same(e, "operation", out.Operation, remotefs.OpCreate)
			e.text("before", out.Before, "<nil>")
			e.text("after", out.After, "new")
			same(e, "bytes", out.Bytes, 3)
			e.holds("f", "new")
			e.mode("f", e.newMode())
		}},
		{128, "an unguarded write makes a file", All, 0, func(e *env) {
			same(e, "operation", e.write(e.at("f"), want("new")).Operation, remotefs.OpCreate)
		}},
		{129, "a write replaces", All, 0, func(e *env) {
			e.file("f", "old body")
			out := e.write(e.at("f"), want("new body"))
			same(e, "operation", out.Operation, remotefs.OpUpdate)
			e.text("before", out.Before, "old body")
			e.text("after", out.After, "new body")
			e.holds("f", "new body")
		}},
		{130, "the same content again is a new version", All, Exact, func(e *env) {
			e.file("f", "x")
			before := e.version("f")
			out := e.write(e.at("f"), want("x"))
			same(e, "operation", out.Operation, remotefs.OpUpdate)
			differs(e, before, out.Version)
			same(e, "after", *out.After, *out.Before)
		}},
		{131, "a write that may only create does not replace", All, 0, func(e *env) {
			e.file("f", "old")
			e.refused("f", e.put("f", guarded(want("new"), "")), fault.FSNotObserved)
		}},
		{132, "a write of the version that was read", All, Exact, func(e *env) {
			e.file("f", "old")
			before := e.version("f")
			out := e.write(e.at("f"), guarded(want("new"), before))
			same(e, "operation", out.Operation, remotefs.OpUpdate)
			differs(e, before, out.Version)
		}},
		{133, "a file that was changed is not replaced", All, 0, func(e *env) {
			e.file("f", "old")
			before := e.version("f")
			e.file("f", "other")
			e.refused("f", e.put("f", guarded(want("new"), before)), fault.FSStaleVersion)
		}},
		{134, "a file that was deleted is not made again", All, 0, func(e *env) {
			e.file("f", "old")
			before := e.version("f")
			e.must(e.World.Remove(e.path("f")))
			err := e.refused("f", e.put("f", guarded(want("new"), before)), fault.FSStaleVersion)
			e.says(err, "no longer exists")
			e.gone("f")
		}},
		{138, "nothing is content", All, 0, func(e *env) {
			e.write(e.at("f"), want(""))
			e.holds("f", "")
		}},
		{139, "content is stored as it is and shown folded", All, 0, func(e *env) {
			out := e.write(e.at("f"), want("one\r\ntwo\rthree"))
			e.holds("f", "one\r\ntwo\rthree")
			e.text("after", out.After, "one\ntwo\rthree")
		}},
		{140, "before and after are folded", All, 0, func(e *env) {
			e.file("f", "a\r\nb\r\nc\r\n")
			out := e.write(e.at("f"), want("a\r\nB\r\nc\r\n"))
			e.text("before", out.Before, "a\nb\nc\n")
			e.text("after", out.After, "a\nB\nc\n")
		}},
		{141, "a NUL may be written and not read as text", All, 0, func(e *env) {
			e.write(e.at("f"), want("a\x00b"))
			e.holds("f", "a\x00b")
			e.unread("f", fault.FSNotText)
		}},
		{142, "a byte-order mark is stored and shown", All, 0, func(e *env) {
			out := e.write(e.at("f"), want("\uFEFFx"))
			e.holds("f", mark+"x")
			e.text("after", out.After, "\uFEFFx")
		}},
		{143, "a byte-order mark is not kept by a write", All, 0, func(e *env) {
			e.file("f", mark+"x")
			out := e.write(e.at("f"), want("y"))
			e.text("before", out.Before, "x")
			e.holds("f", "y")
		}},
		{144, "what was no text has no before", All, 0, func(e *env) {
			for _, prior := range []string{"\x00\x01\x02", "h\xFFi", strings.Repeat("a", 9000) + "\x00"} {
				e.file("f", prior)
				out := e.write(e.at("f"), want("text"))
				same(e, "operation", out.Operation, remotefs.OpUpdate)
				e.text("before", out.Before, "<nil>")
			}
		}},
		{145, "the basis is below its limit on both sides", All, 0, func(e *env) {
			for _, c := range []struct{ prior, content, before string }{
				{"8 bytes.", "new", "<nil>"}, {"7 bytes", "new", "7 bytes"}, {"old", "8 bytes.", "<nil>"}, {"old", "你好吗", "<nil>"},
			} {
				e.file("f", c.prior)
				w := want(c.content)
				w.BasisMax = 8
				e.text("before", e.write(e.at("f"), w).Before, c.before)
			}
		}},
		{146, "the limit of the basis is ten mebibytes", All, 0, func(e *env) {
			e.file("f", strings.Repeat("a", 10_485_759))
			if out := e.write(e.at("f"), want("small")); out.Before == nil || len(*out.Before) != 10_485_759 {
				e.Errorf("before was not kept")
			}
			e.file("f", strings.Repeat("a", 10_485_760))
			e.text("before", e.write(e.at("f"), want("small")).Before, "<nil>")
		}},
		{146, "nobody who does not ask gets a basis", All, 0, func(e *env) {
			e.file("f", "old")
			w := want("new")
			w.BasisMax = 0
			out := e.write(e.at("f"), w)
			e.text("before", out.Before, "<nil>")
			e.text("after", out.After, "<nil>")
		}},
		{147, "a file that may not be read is replaced without a before", L, Unprivileged, func(e *env) {
			e.file("f", "old")
			e.chmod("f", 0)
			out := e.write(e.at("f"), want("new"))
			e.text("before", out.Before, "<nil>")
			e.mode("f", 0)
		}},
		{173, "content that is no text is refused before anything happens", All, 0, func(e *env) {
			e.refused("f", e.put("f", want("a\xFF")), fault.FSNotText)
			e.refused("d/f", e.put("d/f", want("a\xFF")), fault.FSNotText)
			e.gone("f", "d")
		}},
		{173, "content that turns out to be no text is not published", All, 0, func(e *env) {
			for _, tail := range []string{"\xFF", "\xE2\x82", "\xED\xA0\x80"} {
				e.file("f", "old")
				e.refused("f", e.put("f", want(strings.Repeat("a", big)+tail)), fault.FSNotText)
			}
		}},
		{173, "raw bytes are stored under the same guards", All, 0, func(e *env) {
			w := want("a\xFF\x00")
			w.Raw = true
			e.write(e.at("f"), guarded(w, ""))
			e.holds("f", "a\xFF\x00")
			w = want("b\xFF" + strings.Repeat("\xC3", big))
			w.Raw = true
			e.write(e.at("f"), guarded(w, e.version("f")))
			same(e, "size", e.lstat("f").Size, big+2)
			w = want("c\xFF")
			w.Raw = true
			e.refused("f", e.put("f", guarded(w, "")), fault.FSNotObserved)
		}},
		{173, "content of another size than announced is not published", All, 0, func(e *env) {
			e.file("f", "old")
			for _, content := range []string{"too short", strings.Repeat("é", big)} {
				for _, size := range []int64{int64(len(content)) + 1, int64(len(content)) - 1} {
					w := want(content)
					w.Size = size
					e.refused("f", e.put("f", w), fault.FSIOError)
				}
			}
		}},
	}
}

// placeCases are about where it is written.
func placeCases() []Case {
	return []Case{
		{135, "a directory is not written to", All, 0, func(e *env) {
			e.mkdir("d")
			for _, w := range []func() error{
				e.put("d", want("x")), e.put("d", guarded(want("x"), "")), e.put("d", guarded(want("x"), "wrong")),
			} {
				e.refused("d", w, fault.FSNotRegularFile)
			}
		}},
		{136, "the directory itself and the root", All, 0, func(e *env) {
			e.refused(".", e.put(".", want("x")), fault.FSNotRegularFile)
			_, err := e.Files.WriteText(e.ctx, remotefs.AtPath("/", ""), want("x"))
			e.fails(err, fault.FSNotRegularFile)
		}},
		{137, "a FIFO is refused at once", All, 0, func(e *env) {
			e.must(e.World.Fifo(e.path("fifo")))
			e.refused("fifo", e.put("fifo", want("x")), fault.FSNotRegularFile)
			e.refused("fifo", e.put("fifo", guarded(want("x"), "")), fault.FSNotRegularFile)
		}},
		{149, "missing parents are made", All, 0, func(e *env) {
			e.write(e.at("p1/p2/x"), want("x"))
			e.holds("p1/p2/x", "x")
			e.mode("p1/p2/x", e.newMode())
		}},
		{150, "a replaced file keeps its mode", All, 0, func(e *env) {
			for _, mode := range []int{0o640, 0o755, 0o444, 0o000} {
				e.file("f", "old")
				e.chmod("f", mode)
				e.write(e.at("f"), want("new"))
				e.mode("f", mode)
				e.chmod("f", 0o644)
				e.holds("f", "new")
			}
		}},
		{151, "setuid and setgid are dropped", All, 0, func(e *env) {
			for _, mode := range []int{0o4755, 0o2755} {
				e.file("f", "old")
				e.chmod("f", mode)
				e.write(e.at("f"), want("new"))
				e.mode("f", 0o755)
			}
		}},
		{152, "a mode can be asked for", All, 0, func(e *env) {
			w := want("x")
			w.Mode = 0o600
			e.write(e.at("f"), w)
			e.mode("f", 0o600)
			w = want("x")
			w.Mode = 0o751
			e.write(e.at("f"), w)
			e.mode("f", 0o751)
			w.Mode = 0o10000
			e.refused("f", e.put("f", w), fault.Usage)
		}},
		{152, "the mode of new files can be set", All, Steps, func(e *env) {
			files := remotefs.New(e.Driver, remotefs.Options{NewFileMode: 0o600})
			_, err := files.WriteText(e.ctx, e.at("f"), want("x"))
			e.must(err)
			e.mode("f", 0o600)
			e.chmod("f", 0o644)
			_, err = files.WriteText(e.ctx, e.at("f"), want("y"))
			e.must(err)
			e.mode("f", 0o644)
		}},
		{153, "a write through links changes the file and keeps them", All, 0, func(e *env) {
			e.file("s1", "old")
			e.link("s1", "s2")
			e.link("s2", "s3")
			for _, name := range []string{"s2", "s3"} {
				out := e.write(e.at(name), want(name))
				same(e, "operation", out.Operation, remotefs.OpUpdate)
				same(e, "key", out.Target.Key, e.path("s1"))
				e.holds("s1", name)
			}
			e.kind("s2", Symlink)
			e.kind("s3", Symlink)
		}},
		{154, "a link to a directory", All, 0, func(e *env) {
			e.mkdir("d")
			e.link("d", "l")
			e.refused("l", e.put("l", want("x")), fault.FSNotRegularFile)
		}},
		{155, "a dangling link is a name that is taken", L, 0, func(e *env) {
			e.link("nowhere", "d")
			e.refused("d", e.put("d", guarded(want("x"), "")), fault.FSNotRegularFile)
			e.refused("d", e.put("d", guarded(want("x"), "v")), fault.FSStaleVersion)
			out := e.write(e.at("d"), want("x"))
			same(e, "operation", out.Operation, remotefs.OpCreate)
			e.kind("d", Regular)
		}},
		{156, "through a dangling link its file is made", R, 0, func(e *env) {
			e.link("n1", "d1")
			e.link("n2", "d2")
			e.write(e.at("d1"), guarded(want("x"), ""))
			e.write(e.at("d2"), want("x"))
			for _, n := range []string{"1", "2"} {
				e.kind("d"+n, Symlink)
				e.holds("n"+n, "x")
			}
		}},
		{157, "below a dangling link nothing is made", L, 0, func(e *env) {
			e.link("nowhere", "d")
			e.refused("d", e.put("d/child", want("x")), fault.FSIOError)
			e.gone("nowhere")
		}},
		{158, "another name of the file keeps the old content", All, 0, func(e *env) {
			e.file("h1", "old")
			e.must(e.World.Link(e.path("h1"), e.path("h2")))
			e.write(e.at("h1"), want("new"))
			e.holds("h2", "old")
		}},
		{159, "a slash at the end means nothing", All, 0, func(e *env) {
			e.write(e.at("newf/"), want("x"))
			e.kind("newf", Regular)
		}},
		{160, "names may be as long as they can be", All, 0, func(e *env) {
			for _, n := range []int{205, 230, 255} {
				e.cycle(strings.Repeat("n", n))
			}
		}},
		{161, "names that a shell would read as something else", All, 0, func(e *env) {
			for _, name := range []string{"-rf", "it's", "a\nb", `a\b`, "$(id)", "`id`", `"q"`, "--", "a\tb", " sp ", "😀", "end\n", "!x", "*"} {
				e.cycle(name)
			}
		}},
		{162, "a directory that may not be written", All, Unprivileged, func(e *env) {
			e.file("d/f", "old")
			e.chmod("d", 0o555)
			e.refused("d/f", e.put("d/f", want("x")), fault.FSPermissionDenied)
			e.refused("d/f", e.alter("d/f", "old", "new", ""), fault.FSPermissionDenied)
			e.refused("d/new", e.put("d/new", want("x")), fault.FSPermissionDenied)
			e.refused("d/a", e.put("d/a/b/new", want("x")), fault.FSPermissionDenied)
			e.through("d/f", "in place")
			e.holds("d/f", "in place")
		}},
		{163, "a read-only file system", All, Mounts, func(e *env) {
			m := e.small("m", 1<<20)
			e.file("m/f", "old")
			e.must(m.MountReadOnly(e.path("m")))
			e.refused("m/f", e.put("m/f", want("x")), fault.FSIOError)
			e.refused("m/f", e.alter("m/f", "old", "new", ""), fault.FSIOError)
			e.refused("m/f", e.alter("m/f", "none", "new", ""), fault.FSEditNotFound)
		}},
		{164, "a full file system", All, Mounts, func(e *env) {
			e.small("m", 1<<20)
			e.file("m/f", "old")
			e.refused("m/f", e.put("m/f", want(strings.Repeat("x", 3<<20))), fault.FSIOError)
		}},
		{165, "a file that something is mounted on", All, Mounts, func(e *env) {
			e.file("from", "mounted")
			e.file("to", "below")
			m := e.World.(Mounter)
			e.must(m.Bind(e.path("from"), e.path("to")))
			e.atEnd(func() { e.must(m.Unmount(e.path("to"))) })
			e.refused("to", e.put("to", want("x")), fault.FSIOError)
			e.through("to", "in place")
			e.holds("from", "in place")
		}},
		{166, "staging is closed to others", All, 0, staging},
		{167, "no staging is left", All, 0, func(e *env) {
			e.write(e.at("f"), want("x"))
			e.write(e.at("f"), guarded(want("y"), e.version("f")))
			e.edit("f", "y", "z", "")
			tree, err := e.World.Tree(e.dir)
			e.must(err)
			same(e, "entries", strings.Join(tree, " "), "f")
		}},
		{172, "the version of an outcome is that of a stat right after", All, 0, func(e *env) {
			created := e.write(e.at("f"), guarded(want("one"), ""))
			replaced := e.write(e.at("f"), guarded(want("two"), created.Version))
			edited := e.edit("f", "two", "three", replaced.Version)
			e.edit("f", "three", "four", edited.Version)
		}},
	}
}

// cycle makes, reads and replaces a file of an odd name.
func (e *env) cycle(name string) {
	e.Helper()
	at := remotefs.AtPath(e.dir+"/"+name, "")
	out := e.write(at, guarded(want("one"), ""))
	got, err := e.Files.ReadText(e.ctx, at)
	if err != nil || got.Text != "one" || got.Version != out.Version {
		e.Errorf("%q: read %+v, %v", name, got, err)
	}
	e.write(at, guarded(want("two"), out.Version))
	if b, err := e.World.Read(e.dir + "/" + name); err != nil || string(b) != "two" {
		e.Errorf("%q holds %q, %v", name, b, err)
	}
	e.must(e.World.Remove(e.dir + "/" + name))
}

// through writes in place (design.md 4.14), if the backend can; it ends the case
// if it cannot.
func (e *env) through(name, content string) {
	e.Helper()
	before := e.lstat(name)
	w := want(content)
	w.InPlace = true
	out, err := e.Files.WriteText(e.ctx, e.at(name), w)
	if fault.Is(err, fault.BackendUnsupported) {
		e.Skipf("the backend cannot write in place")
	}
	e.must(err)
	e.fresh(out.Target, out.Version)
	if after := e.lstat(name); after.Inode != before.Inode || after.Mode != before.Mode {
		e.Errorf("%s was %+v and is %+v", name, before, after)
	}
}

// small mounts a small file system in the case's directory.
func (e *env) small(name string, size int64) Mounter {
	e.Helper()
	m := e.World.(Mounter)
	e.mkdir(name)
	e.must(m.MountSmall(e.path(name), size))
	e.atEnd(func() { e.must(m.Unmount(e.path(name))) })
	return m
}

// staging looks at the directory while content is staged.
func staging(e *env) {
	seen := 0
	_, err := e.Files.WriteText(e.ctx, e.at("f"), late(func() error {
		tree, err := e.World.Tree(e.dir)
		if err != nil {
			return err
		}
		for _, name := range tree {
			entry, err := e.World.Lstat(e.path(name))
			if err != nil || entry == nil {
				return fmt.Errorf("%s: %+v, %w", name, entry, err)
			}
			seen++
			if wanted := map[Kind]int{Directory: 0o700, Regular: 0o600}[entry.Kind]; entry.Mode != wanted {
				e.Errorf("%s has mode %04o, want %04o", name, entry.Mode, wanted)
			}
			if !strings.HasPrefix(name, ".afield-") {
				e.Errorf("staging is called %s", name)
			}
		}
		return nil
	}))
	e.must(err)
	if want := 2; seen != want && !e.Facts.StagesApart {
		e.Errorf("%d entries while staging, want %d", seen, want)
	}
	e.clean()
}
