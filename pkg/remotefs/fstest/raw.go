package fstest

import (
	"context"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// bytesCases are table F: readBytes.
func bytesCases() []Case {
	return []Case{
		{116, "bytes are given as they are", All, 0, func(e *env) { e.raw("h\x00i\xFF", 4, "") }},
		{117, "the limit is inclusive", All, 0, func(e *env) {
			e.raw("four", 4, "")
			e.raw("four", 3, fault.FSTooLarge)
		}},
		{118, "an empty file under a limit of 0", All, 0, func(e *env) { e.raw("", 0, "") }},
		{119, "a byte under a limit of 0", All, 0, func(e *env) { e.raw("x", 0, fault.FSTooLarge) }},
		{122, "a file whose size is said to be 0", All, 0, func(e *env) {
			_, err := e.Files.ReadBytes(e.ctx, remotefs.AtPath("/proc/version", ""), 4)
			e.fails(err, fault.FSTooLarge)
		}},
		{123, "what is no regular file", All, 0, func(e *env) {
			e.mkdir("d")
			e.must(e.World.Fifo(e.path("fifo")))
			for name, code := range map[string]fault.Code{
				"none": fault.FSNotFound, "d": fault.FSNotRegularFile, "fifo": fault.FSNotRegularFile,
			} {
				_, err := e.Files.ReadBytes(e.ctx, e.at(name), 10)
				e.fails(err, code)
			}
		}},
		{124, "the size is looked at before the file is opened", All, Unprivileged, func(e *env) {
			e.file("f", "sixsix")
			e.chmod("f", 0)
			_, err := e.Files.ReadBytes(e.ctx, e.at("f"), 1)
			e.fails(err, fault.FSTooLarge)
			_, err = e.Files.ReadBytes(e.ctx, e.at("f"), 100)
			e.fails(err, fault.FSPermissionDenied)
		}},
		{125, "a cancelled read", All, 0, func(e *env) {
			e.file("f", "x")
			_, err := e.Files.ReadBytes(e.cancelled(), e.at("f"), 10)
			e.fails(err, fault.FSAborted)
		}},
		{125, "a read that is cancelled in flight", All, Steps, func(e *env) {
			e.file("f", "x")
			ctx, cancel := context.WithCancel(e.ctx)
			_, err := e.stepped(steps{call: cancel}).ReadBytes(ctx, e.at("f"), 10)
			e.fails(err, fault.FSAborted)
		}},
		{126, "a limit below 0 is a mistake of the caller", All, 0, func(e *env) {
			_, err := e.Files.ReadBytes(e.ctx, e.at("none"), -1)
			e.fails(err, fault.Usage)
		}},
	}
}

// raw reads a file of this content and gets it, or fails with code.
func (e *env) raw(content string, max int64, code fault.Code) {
	e.Helper()
	e.file("f", content)
	got, err := e.Files.ReadBytes(e.ctx, e.at("f"), max)
	if code != "" {
		e.fails(err, code)
		return
	}
	if err != nil || string(got.Content) != content {
		e.Errorf("got %q, %v; want %q", got.Content, err, content)
	}
	same(e, "version", got.Version, e.version("f"))
}
