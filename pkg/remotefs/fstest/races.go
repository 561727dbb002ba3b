package fstest

import (
	"context"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// raceCases are table H: races at publication.
func raceCases() []Case {
	return []Case{
		{174, "a file appears", All, 0, func(e *env) {
			e.mkdir("rd")
			e.link("rd", "ld")
			err := e.overtaken("ld/f", "", func() error { return e.World.Write(e.path("rd/f"), []byte("theirs")) }, fault.FSNotObserved)
			e.says(err, e.path("ld/f"))
			e.holds("rd/f", "theirs")
		}},
		{175, "a directory appears", All, 0, func(e *env) {
			codes := []fault.Code{fault.FSNotRegularFile}
			if e.Facts.FollowsDangling {
				codes = append(codes, fault.FSNotObserved)
			}
			e.overtaken("f", "", func() error { return e.World.Mkdir(e.path("f")) }, codes...)
			tree, err := e.World.Tree(e.path("f"))
			e.must(err)
			same(e, "entries", len(tree), 0)
		}},
		{176, "a link appears", All, 0, func(e *env) {
			codes := []fault.Code{fault.FSNotRegularFile}
			if e.Facts.FollowsDangling {
				codes = append(codes, fault.FSNotObserved)
			}
			e.overtaken("f", "", func() error { return e.World.Symlink("nowhere", e.path("f")) }, codes...)
			e.kind("f", Symlink)
			e.gone("nowhere")
		}},
		{177, "a directory appears before an unguarded write", All, 0, func(e *env) {
			codes := []fault.Code{fault.FSNotRegularFile}
			if e.Facts.FollowsDangling {
				codes = append(codes, fault.FSIOError)
			}
			e.overtaken("f", unguarded, func() error { return e.World.Mkdir(e.path("f")) }, codes...)
			e.kind("f", Directory)
		}},
		{178, "a link appears before an unguarded write", All, 0, func(e *env) {
			e.file("keep", "kept")
			out, err := e.Files.WriteText(e.ctx, e.at("f"), late(func() error { return e.World.Symlink("keep", e.path("f")) }))
			e.must(err)
			same(e, "operation", out.Operation, remotefs.OpCreate)
			e.kind("f", Regular)
			e.holds("keep", "kept")
			e.clean()
		}},
		{179, "the file vanishes before an unguarded write", All, 0, func(e *env) {
			e.file("f", "old")
			out, err := e.Files.WriteText(e.ctx, e.at("f"), late(func() error { return e.World.Remove(e.path("f")) }))
			e.must(err)
			same(e, "operation", out.Operation, remotefs.OpUpdate)
			same(e, "size", e.lstat("f").Size, big)
			e.fresh(out.Target, out.Version)
			e.clean()
		}},
		{182, "the directory vanishes", All, 0, func(e *env) {
			e.mkdir("d")
			codes := []fault.Code{fault.FSIOError}
			if e.Facts.FollowsDangling {
				codes = append(codes, fault.FSNotFound)
			}
			if e.Facts.StagesApart {
				e.Skipf("content is not staged in the directory")
			}
			e.overtaken("d/f", unguarded, func() error { return e.World.Remove(e.path("d")) }, codes...)
			e.gone("d")
		}},
		{183, "the directory is renamed", All, 0, func(e *env) {
			e.mkdir("d")
			if e.Facts.StagesApart {
				e.Skipf("content is not staged in the directory")
			}
			_, err := e.Files.WriteText(e.ctx, e.at("d/f"), late(func() error { return e.World.Rename(e.path("d"), e.path("moved")) }))
			e.fails(err, fault.FSIOError, fault.FSNotFound)
			e.gone("d", "moved/f")
			tree, err := e.World.Tree(e.path("moved"))
			e.must(err)
			if len(tree) > 0 {
				e.mode("moved/"+tree[0], 0o700)
			}
			e.must(e.World.Remove(e.path("moved")))
		}},
		{184, "the file changes between the guard and the write", All, 0, func(e *env) {
			e.file("f", "old")
			e.overtaken("f", e.version("f"), func() error { return e.World.Write(e.path("f"), []byte("theirs")) }, fault.FSStaleVersion)
			e.holds("f", "theirs")
		}},
		{184, "the file changes between the reading and the publishing of an edit", All, Steps, func(e *env) {
			e.file("f", "old")
			files := e.stepped(steps{publish: func() { e.must(e.World.Write(e.path("f"), []byte("theirs"))) }})
			_, err := files.EditText(e.ctx, e.at("f"), change("old", "new", e.version("f")))
			e.fails(err, fault.FSStaleVersion)
			e.holds("f", "theirs")
			e.clean()
		}},
		{235, "cancelled after staging", All, 0, func(e *env) {
			ctx, cancel := context.WithCancel(e.ctx)
			e.file("f", "old")
			_, err := e.Files.WriteText(ctx, e.at("f"), late(func() error { cancel(); return nil }))
			e.fails(err, fault.FSAborted)
			e.holds("f", "old")
			e.clean()
		}},
		{236, "cancelled after publication", All, Steps, func(e *env) {
			for _, guard := range []string{"", unguarded} {
				ctx, cancel := context.WithCancel(e.ctx)
				w := want("x")
				if guard != unguarded {
					w = guarded(w, guard)
				}
				_, err := e.stepped(steps{done: cancel}).WriteText(ctx, e.at("f"), w)
				if err != nil {
					e.Errorf("with guard %q: %v", guard, err)
				}
				e.holds("f", "x")
			}
			e.clean()
		}},
	}
}

// unguarded stands for no guard at all.
const unguarded = "unguarded"

// overtaken writes while somebody acts before the publication, and fails. It
// gives the error.
func (e *env) overtaken(name, guard string, act func() error, codes ...fault.Code) error {
	e.Helper()
	w := late(act)
	if guard != unguarded {
		w = guarded(w, guard)
	}
	_, err := e.Files.WriteText(e.ctx, e.at(name), w)
	e.fails(err, codes...)
	e.clean()
	return err
}
