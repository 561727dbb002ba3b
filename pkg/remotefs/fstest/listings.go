package fstest

import (
	"slices"
	"strconv"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// listCases are table D: listDir.
func listCases() []Case {
	return []Case{
		{64, "a directory is listed by name", All, 0, func(e *env) {
			skills(e)
			same(e, "entries", e.names("d"), "alpha.md file,broken-link other,dir-skill directory,zeta.md file")
			for _, entry := range e.list("d") {
				same(e, "display", entry.Target.Display, e.path("d/"+entry.Name))
			}
		}},
		{65, "files have size and version, directories no size, dangling links neither", All, 0, func(e *env) {
			skills(e)
			list := e.list("d")
			same(e, "size", list[0].Size, 5)
			same(e, "version", list[0].Version, e.version("d/alpha.md"))
			same(e, "dangling", list[1].Version+strconv.FormatInt(list[1].Size, 10), "-1")
			same(e, "directory", list[2].Size, -1)
		}},
		{66, "the order is that of bytes", All, 0, func(e *env) {
			for _, name := range strings.Fields("b B a _ 10 2 .h é") {
				e.file("d/"+name, "")
			}
			var names []string
			for _, entry := range e.list("d") {
				names = append(names, entry.Name)
			}
			same(e, "names", strings.Join(names, " "), ".h 10 2 B _ a b é")
		}},
		{67, "an empty directory", All, 0, func(e *env) {
			e.mkdir("d")
			same(e, "entries", len(e.list("d")), 0)
		}},
		{68, "odd names are exact and can be read", All, 0, func(e *env) {
			odd := []string{"-rf", "a b", "new\nline", "quote's", `dq"`, `back\slash`, "*", "..x", "$HOME", "#", " ", "end\n"}
			for _, name := range odd {
				e.file("d/"+name, name)
			}
			slices.Sort(odd)
			list := e.list("d")
			if len(list) != len(odd) {
				e.Fatalf("%d entries: %+v", len(list), list)
			}
			for i, entry := range list {
				same(e, "name", entry.Name, odd[i])
				got, err := e.Files.ReadText(e.ctx, remotefs.AtTarget(entry.Target))
				if err != nil || got.Text != odd[i] {
					e.Errorf("%q: read %q, %v", odd[i], got.Text, err)
				}
			}
		}},
		{69, "what is no directory is not listed", All, 0, func(e *env) {
			e.file("f", "")
			e.must(e.World.Fifo(e.path("fifo")))
			e.unlisted("none", fault.FSNotFound)
			e.unlisted("f", fault.FSNotDirectory)
			e.unlisted("fifo", fault.FSNotDirectory)
		}},
		{70, "a listing through a link", All, 0, func(e *env) {
			e.file("rd/x", "")
			e.link("rd", "ld")
			entry := e.list("ld")[0]
			same(e, "target", entry.Target, remotefs.Target{Key: e.path("rd/x"), Display: e.path("ld/x")})
		}},
		{71, "a link that is re-pointed later does not redirect a listing", All, 0, func(e *env) {
			e.file("real-one/one", "")
			e.file("real-two/two", "")
			e.link("real-one", "link")
			t := e.resolve("link")
			e.must(e.World.Remove(e.path("link")))
			e.link("real-two", "link")
			_, list, err := e.Files.ListDir(e.ctx, remotefs.AtTarget(t))
			if err != nil || len(list) != 1 || list[0].Name != "one" {
				e.Errorf("%+v, %v", list, err)
			}
		}},
		{72, "links are listed as what they name", All, 0, func(e *env) {
			e.file("f", "abc")
			e.mkdir("rd")
			e.mkdir("d")
			e.link(e.path("f"), "d/l")
			e.link(e.path("rd"), "d/lD")
			list := e.list("d")
			same(e, "names", e.names("d"), "l file,lD directory")
			same(e, "size", list[0].Size, 3)
			same(e, "key", list[0].Target.Key, e.path("f"))
			same(e, "version", list[0].Version, e.version("f"))
			same(e, "size", list[1].Size, -1)
			same(e, "key", list[1].Target.Key, e.path("rd"))
		}},
		{73, "a FIFO is listed", All, 0, func(e *env) {
			e.mkdir("d")
			e.must(e.World.Fifo(e.path("d/fifo")))
			entry := e.list("d")[0]
			same(e, "type", entry.Type, remotefs.TypeOther)
			same(e, "size", entry.Size, -1)
			same(e, "has a version", entry.Version != "", true)
		}},
		{74, "a child that is a link to itself fails the listing", L, 0, func(e *env) {
			e.mkdir("d")
			e.link("self", "d/self")
			_, _, err := e.Files.ListDir(e.ctx, e.at("d"))
			e.fails(err, fault.FSIOError)
			e.says(err, "d/self")
		}},
		{75, "a child that is a link to itself", R, 0, func(e *env) {
			e.mkdir("d")
			e.link("self", "d/self")
			_, list, err := e.Files.ListDir(e.ctx, e.at("d"))
			if err != nil {
				e.fails(err, fault.FSIOError)
			} else if len(list) != 1 || list[0].Type != remotefs.TypeOther {
				e.Errorf("%+v", list)
			}
		}},
		{76, "a directory that may not be read", All, Unprivileged, func(e *env) {
			e.file("d0/f", "")
			e.file("d1/f", "")
			e.chmod("d0", 0)
			e.chmod("d1", 0o111)
			e.unlisted("d0", fault.FSPermissionDenied)
			e.unlisted("d1", fault.FSPermissionDenied)
		}},
		{77, "a directory that may be read and not searched", All, Unprivileged, func(e *env) {
			e.file("d/f", "")
			e.chmod("d", 0o444)
			e.unlisted("d", fault.FSPermissionDenied)
		}},
		{78, "a link into a directory that may not be searched", L, Unprivileged, func(e *env) {
			e.file("np/f", "")
			e.mkdir("d")
			e.link("../np/f", "d/l")
			e.chmod("np", 0)
			e.unlisted("d", fault.FSPermissionDenied)
		}},
		{79, "a file that may not be read is listed", All, Unprivileged, func(e *env) {
			e.file("d/f", "four")
			e.chmod("d/f", 0)
			same(e, "size", e.list("d")[0].Size, 4)
		}},
		{81, "a cancelled listing", All, 0, func(e *env) {
			_, _, err := e.Files.ListDir(e.cancelled(), remotefs.AtPath(".", e.dir))
			e.fails(err, fault.FSAborted)
		}},
		{82, "a name that is not text", All, 0, func(e *env) {
			e.file("d/bad\xFFname", "x")
			e.file("d/good", "x")
			list := e.list("d")
			if len(list) != 2 {
				e.Fatalf("%+v", list)
			}
			bad := list[0]
			same(e, "name", bad.Name, "bad\uFFFDname")
			same(e, "raw", string(bad.RawName), "bad\xFFname")
			same(e, "facts", string(bad.Type)+bad.Version+strconv.FormatInt(bad.Size, 10), "other-1")
		}},
		{83, "ten thousand entries in order", All, 0, func(e *env) {
			e.mkdir("d")
			e.must(e.World.Fill(e.path("d"), 10_000))
			list := e.list("d")
			same(e, "entries", len(list), 10_000)
			if !slices.IsSortedFunc(list, func(a, b remotefs.DirEntry) int { return strings.Compare(a.Name, b.Name) }) {
				e.Errorf("not in order")
			}
		}},
	}
}

func skills(e *env) {
	e.file("d/zeta.md", "")
	e.file("d/alpha.md", "alpha")
	e.mkdir("d/dir-skill")
	e.link("missing", "d/broken-link")
}

// list lists a directory of the case.
func (e *env) list(name string) []remotefs.DirEntry {
	e.Helper()
	t, list, err := e.Files.ListDir(e.ctx, e.at(name))
	if err != nil {
		e.Fatalf("list %s: %v", name, err)
	}
	same(e, "display of the directory", t.Display, e.path(name))
	return list
}

// names gives the entries of a directory as one text.
func (e *env) names(name string) string {
	e.Helper()
	var all []string
	for _, entry := range e.list(name) {
		all = append(all, entry.Name+" "+string(entry.Type))
	}
	return strings.Join(all, ",")
}

func (e *env) unlisted(name string, code fault.Code) {
	e.Helper()
	_, _, err := e.Files.ListDir(e.ctx, e.at(name))
	e.fails(err, code)
}
