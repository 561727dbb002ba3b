package fstest

import (
	"context"
	"path"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// identityCases are table A: resolve and identity.
func identityCases() []Case {
	return []Case{
		{1, "an empty path is not found", All, 0, unresolved(fault.FSNotFound, "")},
		{2, "blanks are an empty path", All, 0, unresolved(fault.FSNotFound, "   ")},
		{3, "other blank characters too", All, 0, unresolved(fault.FSNotFound, "\t\r\n", "\uFEFF")},
		{4, "a NUL byte is never sent", All, 0, func(e *env) {
			unresolved(fault.FSNotFound, "a\x00b")(e)
			_, _, err := e.Files.Lstat(e.ctx, "a\x00b", e.dir)
			e.fails(err, fault.FSNotFound)
		}},
		{5, "a dot is the default directory", All, 0, func(e *env) {
			t, err := e.Files.Resolve(e.ctx, ".", "")
			e.must(err)
			same(e, "display", t.Display, e.Facts.Cwd)
			physical, err := e.Files.Resolve(e.ctx, e.Facts.Cwd, "")
			e.must(err)
			same(e, "key", t.Key, physical.Key)
		}},
		{6, "a tilde is a name", All, 0, func(e *env) { same(e, "display", e.resolve("~").Display, e.path("~")) }},
		{7, "spellings of one file are one target", All, 0, func(e *env) {
			e.file("a", "")
			want := e.resolve("a")
			same(e, "display", want.Display, e.path("a"))
			for _, p := range []string{"a/", "a/.", "x/../a", ".//a", e.dir + "//a"} {
				same(e, p, e.resolve(p), want)
			}
		}},
		{8, "dots stop at the root", All, 0, func(e *env) {
			same(e, "display", e.resolve("/../../etc").Display, "/etc")
			same(e, "display", e.resolve("//etc").Display, "/etc")
		}},
		{9, "a blank at the front belongs to the name", All, 0, func(e *env) {
			e.file("a", "")
			t, info, err := e.Files.Stat(e.ctx, e.at(" a"))
			if err != nil || info != nil || t.Display != e.dir+"/ a" {
				e.Errorf("stat: %+v, %+v, %v", t, info, err)
			}
		}},
		{10, "a relative path is joined to the cwd of the call", All, 0, func(e *env) {
			e.mkdir("d1")
			e.file("d2/x", "")
			t, err := e.Files.Resolve(e.ctx, "x", e.path("d2"))
			e.must(err)
			same(e, "key", t.Key, e.path("d2/x"))
			_, info, err := e.Files.Stat(e.ctx, e.at("x"))
			if err != nil || info != nil {
				e.Errorf("without the cwd: %+v, %v", info, err)
			}
		}},
		{11, "an absolute path ignores the cwd", All, 0, func(e *env) {
			e.file("a", "")
			t, err := e.Files.Resolve(e.ctx, e.path("a"), "/nowhere/at/all")
			e.must(err)
			same(e, "key", t.Key, e.path("a"))
		}},
		{12, "a relative cwd is joined to the world's directory", All, 0, func(e *env) {
			t, err := e.Files.Resolve(e.ctx, "z", "rel")
			e.must(err)
			same(e, "display", t.Display, path.Join(e.Facts.Cwd, "rel/z"))
		}},
		{13, "a link has the key of its file and its own display", All, 0, func(e *env) {
			e.file("real.txt", "")
			e.link("real.txt", "l")
			same(e, "key", e.resolve("l").Key, e.resolve("real.txt").Key)
			same(e, "display", e.resolve("l").Display, e.path("l"))
		}},
		{14, "links are followed through links", All, 0, func(e *env) {
			e.file("real.txt", "")
			e.link("real.txt", "l1")
			e.link("l1", "l2")
			same(e, "key", e.resolve("l2").Key, e.path("real.txt"))
		}},
		{15, "a missing file below a linked directory", All, 0, func(e *env) {
			e.mkdir("rd")
			e.link("rd", "ld")
			same(e, "target", e.resolve("ld/new"), remotefs.Target{Key: e.path("rd/new"), Display: e.path("ld/new")})
		}},
		{16, "the key stays when missing parents are made", All, 0, func(e *env) {
			e.mkdir("rd")
			e.link("rd", "ld")
			before := e.resolve("ld/n1/n2/f")
			e.file("rd/n1/n2/f", "")
			same(e, "target", e.resolve("ld/n1/n2/f"), before)
		}},
		{17, "dots go up by text and not through links", All, 0, func(e *env) {
			e.mkdir("rd/sub")
			e.link("rd/sub", "ld")
			same(e, "key", e.resolve("ld/../x").Key, e.path("x"))
		}},
		{18, "a path through a file is not found", L, 0, func(e *env) {
			e.file("afile", "")
			for _, p := range []string{"afile/child", "afile/b/c"} {
				_, err := e.Files.Resolve(e.ctx, p, e.dir)
				e.fails(err, fault.FSNotFound)
				e.says(err, "a parent path segment is not a directory")
			}
		}},
		{19, "a path through a file is never an I/O error", R, 0, throughAFile},
		{20, "a dangling link has its own key", L, 0, dangling("d", "d")},
		{21, "a dangling link has the key of what it names", R, 0, dangling("d", "nowhere")},
		{22, "below a dangling link", L, 0, func(e *env) {
			e.link("nowhere", "d")
			same(e, "key", e.resolve("d/child").Key, e.path("d/child"))
		}},
		{23, "below a dangling link", R, 0, func(e *env) {
			e.link("nowhere", "d")
			same(e, "key", e.resolve("d/child").Key, e.path("nowhere/child"))
		}},
		{24, "a link loop cannot be resolved", L, 0, func(e *env) {
			loop(e)
			_, err := e.Files.Resolve(e.ctx, "l1", e.dir)
			e.fails(err, fault.FSIOError)
			_, info, err := e.Files.Lstat(e.ctx, "l1", e.dir)
			if err != nil || info == nil || info.Type != remotefs.TypeSymlink {
				e.Errorf("lstat: %+v, %v", info, err)
			}
		}},
		{25, "a link loop is read and written by nobody", R, 0, looping},
		{26, "a name that is too long makes nothing", All, 0, func(e *env) {
			name := strings.Repeat("n", 256)
			err := e.put(name, want("x"))()
			e.fails(err, fault.FSIOError)
			tree, err := e.World.Tree(e.dir)
			e.must(err)
			same(e, "entries", len(tree), 0)
		}},
		{27, "below a directory that may not be searched", All, Unprivileged, func(e *env) {
			e.file("np/f", "")
			e.chmod("np", 0)
			for _, p := range []string{"np/f", "np/none"} {
				_, err := e.Files.Resolve(e.ctx, p, e.dir)
				e.fails(err, fault.FSPermissionDenied)
			}
			same(e, "key", e.resolve("np").Key, e.path("np"))
		}},
		{28, "a cancelled resolve", All, 0, func(e *env) {
			_, err := e.Files.Resolve(e.cancelled(), "a", e.dir)
			e.fails(err, fault.FSAborted)
		}},
		{29, "a resolve that is cancelled in flight", All, Steps, func(e *env) {
			ctx, cancel := context.WithCancel(e.ctx)
			_, err := e.stepped(steps{call: cancel}).Resolve(ctx, "a", e.dir)
			e.fails(err, fault.FSAborted)
		}},
		{31, "letters beyond ASCII and a newline in a name", All, 0, exactNames("你好\nfile.ts")},
		{32, "names that a shell would read as something else", All, 0,
			exactNames("end\n", "\nstart", "it's", "`id`", "$(id)", `a\b`, "-rf", "--", "a\\\\b")},
		{33, "composed and decomposed letters are two names", All, 0, func(e *env) {
			e.file("\u00C5", "1")
			e.file("A\u030A", "2")
			if a, b := e.resolve("\u00C5"), e.resolve("A\u030A"); a.Key == b.Key {
				e.Errorf("both have the key %q", a.Key)
			}
		}},
	}
}

// unresolved holds that paths cannot be resolved.
func unresolved(code fault.Code, paths ...string) func(*env) {
	return func(e *env) {
		for _, p := range paths {
			_, err := e.Files.Resolve(e.ctx, p, e.dir)
			e.fails(err, code)
		}
	}
}

func throughAFile(e *env) {
	e.file("afile", "")
	if _, err := e.Files.Resolve(e.ctx, "afile/child", e.dir); err != nil {
		e.fails(err, fault.FSNotFound)
	}
	_, info, err := e.Files.Stat(e.ctx, e.at("afile/child"))
	if err != nil {
		e.fails(err, fault.FSNotFound)
	} else if info != nil {
		e.Errorf("stat: %+v", info)
	}
	_, err = e.Files.ReadText(e.ctx, e.at("afile/child"))
	e.fails(err, fault.FSNotFound)
}

// dangling holds the key of a link that leads nowhere.
func dangling(name, key string) func(*env) {
	return func(e *env) {
		e.link("nowhere", name)
		same(e, "target", e.resolve(name), remotefs.Target{Key: e.path(key), Display: e.path(name)})
		if _, info, err := e.Files.Stat(e.ctx, e.at(name)); info != nil || err != nil {
			e.Errorf("stat: %+v, %v", info, err)
		}
		_, info, err := e.Files.Lstat(e.ctx, name, e.dir)
		if err != nil || info == nil || info.Type != remotefs.TypeSymlink {
			e.Errorf("lstat: %+v, %v", info, err)
		}
	}
}

func loop(e *env) {
	e.link("l2", "l1")
	e.link("l1", "l2")
}

func looping(e *env) {
	loop(e)
	if _, err := e.Files.Resolve(e.ctx, "l1", e.dir); err != nil {
		e.fails(err, fault.FSIOError)
	} else if _, info, err := e.Files.Stat(e.ctx, e.at("l1")); err != nil || info == nil || info.Type != remotefs.TypeOther {
		e.Errorf("stat: %+v, %v", info, err)
	}
	_, err := e.Files.ReadText(e.ctx, e.at("l1"))
	e.fails(err, fault.FSIOError, fault.FSNotRegularFile)
	e.refused("l1", e.put("l1", want("x")), fault.FSIOError, fault.FSNotRegularFile)
	e.kind("l1", Symlink)
	e.kind("l2", Symlink)
}

// exactNames holds that names reach the world as they are.
func exactNames(names ...string) func(*env) {
	return func(e *env) {
		for _, name := range names {
			e.file(name, name)
			want := e.dir + "/" + name
			same(e, "target", e.resolve(name), remotefs.Target{Key: want, Display: want})
			got, err := e.Files.ReadText(e.ctx, e.at(name))
			if err != nil || got.Text != name {
				e.Errorf("%q: read %q, %v", name, got.Text, err)
			}
		}
	}
}
