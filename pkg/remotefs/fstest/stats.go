package fstest

import (
	"context"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// statCases are table C: stat and lstat.
func statCases() []Case {
	return []Case{
		{49, "a file has a size and a version", All, 0, func(e *env) {
			e.file("f", "hello")
			info := e.stat("f")
			same(e, "type", info.Type, remotefs.TypeFile)
			same(e, "size", info.Size, 5)
			if info.Version == "" || strings.Trim(info.Version, versionLetters) != "" {
				e.Errorf("version %q", info.Version)
			}
		}},
		{50, "a directory has a version and no size", All, 0, func(e *env) {
			e.mkdir("d")
			for _, info := range []*remotefs.Info{e.stat("d"), e.lookAt("d")} {
				same(e, "type", info.Type, remotefs.TypeDirectory)
				same(e, "size", info.Size, -1)
				same(e, "has a version", info.Version != "", true)
			}
		}},
		{51, "absence is an answer", All, 0, func(e *env) { e.absent("none", "none/below/it") }},
		{52, "below a file nothing is there", All, 0, func(e *env) {
			e.file("a", "")
			_, info, err := e.Files.Lstat(e.ctx, "a/b", e.dir)
			if info != nil || err != nil {
				e.Errorf("lstat: %+v, %v", info, err)
			}
		}},
		{53, "FIFO, socket and device are something else", All, 0, func(e *env) {
			e.must(e.World.Fifo(e.path("fifo")))
			names := []string{"fifo", "/dev/null"}
			if err := e.World.Socket(e.path("sock")); err == nil {
				names = append(names, "sock")
			} else if !unsupported(err) {
				e.Logf("no socket in this world: %v", err)
			}
			for _, name := range names {
				info := e.stat(name)
				same(e, name, info.Type, remotefs.TypeOther)
				same(e, name+" size", info.Size, -1)
			}
		}},
		{54, "stat through a link is that of the file", All, 0, func(e *env) {
			e.file("f", "hello")
			e.link("f", "l")
			same(e, "version", e.stat("l").Version, e.stat("f").Version)
			same(e, "size", e.stat("l").Size, 5)
		}},
		{55, "lstat sees the link", All, 0, func(e *env) {
			e.file("f", "hello")
			e.mkdir("d")
			e.link("f", "l")
			e.link("d", "ld")
			for _, name := range []string{"l", "ld", "ld/"} {
				info := e.lookAt(name)
				same(e, name, info.Type, remotefs.TypeSymlink)
				if info.Size != 1 && info.Size != -1 {
					e.Errorf("%s has size %d", name, info.Size)
				}
			}
		}},
		{56, "lstat and stat of a file give one version", All, 0, func(e *env) {
			e.file("f", "hello")
			same(e, "version", e.lookAt("f").Version, e.stat("f").Version)
		}},
		{57, "lstat of a blank path", All, 0, func(e *env) {
			_, _, err := e.Files.Lstat(e.ctx, "   ", e.dir)
			e.fails(err, fault.FSNotFound)
		}},
		{58, "a cancelled look is never an absence", All, 0, func(e *env) {
			_, _, err := e.Files.Stat(e.cancelled(), e.at("none"))
			e.fails(err, fault.FSAborted)
			_, _, err = e.Files.Lstat(e.cancelled(), "none", e.dir)
			e.fails(err, fault.FSAborted)
		}},
		{58, "a look that is cancelled in flight is never an absence", All, Steps, func(e *env) {
			ctx, cancel := context.WithCancel(e.ctx)
			_, _, err := e.stepped(steps{call: cancel}).Stat(ctx, e.at("none"))
			e.fails(err, fault.FSAborted)
			ctx, cancel = context.WithCancel(e.ctx)
			_, _, err = e.stepped(steps{call: cancel}).Lstat(ctx, "none", e.dir)
			e.fails(err, fault.FSAborted)
		}},
		{59, "a rewrite with the old time is seen", L, 0, func(e *env) {
			e.file("f", "hello")
			before := e.version("f")
			at, err := e.World.Mtime(e.path("f"))
			e.must(err)
			e.file("f", "HELLO")
			e.must(e.World.SetMtime(e.path("f"), at))
			differs(e, before, e.version("f"))
		}},
		{60, "a change of mode is seen", All, 0, func(e *env) {
			e.file("f", "hello")
			e.chmod("f", 0o644)
			before := e.version("f")
			e.chmod("f", 0o600)
			differs(e, before, e.version("f"))
		}},
		{61, "reading changes nothing", All, 0, func(e *env) {
			e.file("f", "hello")
			before := e.version("f")
			_, err := e.Files.ReadText(e.ctx, e.at("f"))
			e.must(err)
			same(e, "version", e.version("f"), before)
		}},
		{62, "renaming and linking are seen", L, 0, func(e *env) {
			e.file("f", "hello")
			before := e.version("f")
			e.must(e.World.Rename(e.path("f"), e.path("g")))
			e.must(e.World.Rename(e.path("g"), e.path("f")))
			between := e.version("f")
			differs(e, before, between)
			e.must(e.World.Link(e.path("f"), e.path("h")))
			differs(e, between, e.version("f"))
		}},
		{63, "a child of a directory that may not be searched", All, Unprivileged, func(e *env) {
			e.file("np/f", "")
			t := e.resolve("np/f")
			e.chmod("np", 0)
			_, _, err := e.Files.Stat(e.ctx, remotefs.AtTarget(t))
			e.fails(err, fault.FSPermissionDenied)
		}},
	}
}

const versionLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:._-"

// stat gives what is known of a file that is there.
func (e *env) stat(name string) *remotefs.Info {
	e.Helper()
	_, info, err := e.Files.Stat(e.ctx, e.at(name))
	if err != nil || info == nil {
		e.Fatalf("stat %s: %+v, %v", name, info, err)
	}
	return info
}

// lookAt is lstat of an entry that is there.
func (e *env) lookAt(name string) *remotefs.Info {
	e.Helper()
	_, info, err := e.Files.Lstat(e.ctx, name, e.dir)
	if err != nil || info == nil {
		e.Fatalf("lstat %s: %+v, %v", name, info, err)
	}
	return info
}

// absent holds that stat and lstat answer that nothing is there.
func (e *env) absent(names ...string) {
	e.Helper()
	for _, name := range names {
		if _, info, err := e.Files.Stat(e.ctx, e.at(name)); info != nil || err != nil {
			e.Errorf("stat %s: %+v, %v", name, info, err)
		}
		if _, info, err := e.Files.Lstat(e.ctx, name, e.dir); info != nil || err != nil {
			e.Errorf("lstat %s: %+v, %v", name, info, err)
		}
	}
}

func differs(e *env, before, after string) {
	e.Helper()
	if before == after {
		e.Errorf("the version is still %q", before)
	}
}
