package fstest

import (
	"path"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// fenceCases are table K: the write fence. They happen outside of the
// directories that every fence lets through.
func fenceCases() []Case {
	return []Case{
		{240, "nothing is changed behind a read-only fence", L, 0, func(e *env) {
			e.fenced(remotefs.FenceReadOnly)
			e.file("ws/f", "old")
			e.denied("ws/f", e.put("ws/f", want("x")))
			e.denied("ws/f", e.alter("ws/f", "old", "new", ""))
			e.reads("ws/f", "old", false)
		}},
		{241, "the workspace may be changed", L, 0, func(e *env) {
			e.fenced(remotefs.FenceWorkspaceWrite)
			e.write(e.at("ws/nested/ok.txt"), want("ok"))
			e.holds("ws/nested/ok.txt", "ok")
			e.edit("ws/nested/ok.txt", "ok", "fine", "")
		}},
		{242, "the temporary directory may be changed", L, 0, func(e *env) {
			e.fenced(remotefs.FenceWorkspaceWrite)
			name := "/tmp/" + path.Base(path.Dir(e.dir)) + ".fence"
			e.atEnd(func() { e.must(e.World.Remove(name)) })
			e.write(remotefs.AtPath(name+"/f", ""), want("ok"))
		}},
		{243, "what is outside may not", L, 0, func(e *env) {
			e.fenced(remotefs.FenceWorkspaceWrite)
			e.denied("out", e.put("out", want("x")))
			e.denied("out", e.put("ws/../sib", want("x")))
			e.gone("out", "sib")
		}},
		{244, "a link that leads out leads to what may not", L, 0, func(e *env) {
			e.fenced(remotefs.FenceWorkspaceWrite)
			e.mkdir("outside")
			e.link("../outside", "ws/link")
			e.denied("outside", e.put("ws/link/f", want("x")))
			e.denied("outside", e.put("ws/link/newdir/deep", want("x")))
			tree, err := e.World.Tree(e.path("outside"))
			e.must(err)
			same(e, "entries", len(tree), 0)
		}},
		{245, "a stale key is resolved again", L, 0, func(e *env) {
			e.fenced(remotefs.FenceWorkspaceWrite)
			e.file("outside", "theirs")
			stale := remotefs.Target{Key: e.path("outside"), Display: e.path("ws/f")}
			e.write(remotefs.AtTarget(stale), want("ours"))
			e.holds("ws/f", "ours")
			e.holds("outside", "theirs")
		}},
		{246, "the root itself is a directory", L, 0, func(e *env) {
			e.fenced(remotefs.FenceWorkspaceWrite)
			e.refused("ws", e.put("ws", want("x")), fault.FSNotRegularFile)
		}},
		{247, "the root of all as workspace", L, 0, func(e *env) {
			e.fenced(remotefs.FenceWorkspaceWrite)
			e.Files = remotefs.NewFence(e.inside(), remotefs.FenceOptions{Mode: remotefs.FenceWorkspaceWrite, Root: "/"})
			e.write(e.at("anywhere"), want("x"))
		}},
		{248, "one call may be let further", L, 0, func(e *env) {
			f := e.fenced(remotefs.FenceReadOnly)
			e.Files = f.Wider(remotefs.FenceWorkspaceWrite)
			e.write(e.at("ws/f"), want("x"))
			e.Files = f
			e.denied("ws/f", e.put("ws/f", want("y")))
		}},
		{249, "a root through a link, and one that is missing", L, 0, func(e *env) {
			e.fenced(remotefs.FenceWorkspaceWrite)
			inside := e.inside()
			e.link("ws", "alias")
			e.Files = remotefs.NewFence(inside, remotefs.FenceOptions{Mode: remotefs.FenceWorkspaceWrite, Root: e.path("alias")})
			e.write(e.at("ws/f"), want("x"))
			e.Files = remotefs.NewFence(inside, remotefs.FenceOptions{Mode: remotefs.FenceWorkspaceWrite, Root: e.path("missing")})
			e.denied("ws/g", e.put("ws/g", want("x")))
		}},
		{250, "an edit outside is refused with the words of a write", L, 0, func(e *env) {
			e.fenced(remotefs.FenceWorkspaceWrite)
			e.file("out", "old")
			e.says(e.denied("out", e.alter("out", "old", "new", "")), "cannot write")
		}},
	}
}

// fenced moves the case to a directory outside of /tmp, with a workspace ws, and
// puts a fence around the files.
func (e *env) fenced(mode remotefs.FenceMode) *remotefs.Fence {
	e.Helper()
	e.dir = "/var/tmp/" + path.Base(path.Dir(e.Dir)) + "-" + path.Base(e.Dir) + "-" + path.Base(e.dir)
	dir := e.dir
	e.must(e.World.Remove(dir))
	e.atEnd(func() { e.must(e.World.Remove(dir)) })
	e.mkdir("ws")
	f := remotefs.NewFence(e.Files, remotefs.FenceOptions{Mode: mode, Root: e.path("ws")})
	e.Files = f
	return f
}

// inside gives the files without their fence.
func (e *env) inside() remotefs.FS { return e.Files.(*remotefs.Fence).FS }

func (e *env) denied(name string, change func() error) error {
	e.Helper()
	return e.refused(name, change, fault.FSSandboxDenied)
}
