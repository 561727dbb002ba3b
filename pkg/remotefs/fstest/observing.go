package fstest

import (
	"fmt"
	"path"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

const (
	readFirst = " — read the file, then retry"
	readAgain = " — re-read the file, then retry"
)

// policyCases are table O, but for what the command line alone decides.
func policyCases() []Case {
	return []Case{
		{272, "an unseen file is not replaced", All, 0, func(e *env) {
			e.file("f", "old")
			err := e.refused("f", e.owner("me").put("f", "x"), fault.FSNotObserved)
			e.says(remotefs.Advise(err), readFirst)
		}},
		{273, "an unseen file is not edited", All, 0, func(e *env) {
			e.file("f", "old")
			err := e.refused("f", e.owner("me").alter("f", "old", "new"), fault.FSNotObserved)
			e.says(remotefs.Advise(err), fmt.Sprintf("edit requires reading %q first%s", e.path("f"), readFirst))
		}},
		{274, "what is missing is made and not edited", All, 0, func(e *env) {
			o := e.owner("me")
			e.fails(o.alter("f", "a", "b")(), fault.FSNotObserved)
			e.must(o.put("f", "new")())
		}},
		{275, "what was read is replaced", All, 0, func(e *env) {
			e.file("f", "old")
			o := e.owner("me")
			o.sees("f")
			e.must(o.put("f", "new")())
			e.holds("f", "new")
		}},
		{276, "what was changed since is read again first", All, 0, func(e *env) {
			e.file("f", "old")
			o := e.owner("me")
			o.sees("f")
			e.file("f", "theirs")
			e.says(remotefs.Advise(e.refused("f", o.put("f", "x"), fault.FSStaleVersion)), readAgain)
			e.refused("f", o.alter("f", "theirs", "x"), fault.FSStaleVersion)
			o.sees("f")
			e.must(o.alter("f", "theirs", "ours")())
		}},
		{277, "a line that was read authorises all", All, 0, func(e *env) {
			e.file("f", strings.Repeat("line\n", 11)+"twelve\n"+strings.Repeat("line\n", 8))
			o := e.owner("me")
			_, err := o.View(e.ctx, e.at("f"), remotefs.WindowOptions{Offset: 1, Limit: 1})
			e.must(err)
			e.must(o.alter("f", "twelve", "12")())
		}},
		{278, "what was written is known", All, 0, func(e *env) {
			o := e.owner("me")
			e.must(o.put("f", "mine")())
			e.must(o.alter("f", "mine", "still mine")())
			e.must(o.put("f", "again")())
		}},
		{279, "what was seen missing is made and not edited", All, 0, func(e *env) {
			o := e.owner("me")
			o.misses("f")
			e.fails(o.alter("f", "a", "b")(), fault.FSNotFound)
			e.must(o.put("f", "new")())
		}},
		{280, "what somebody made since is kept", All, 0, func(e *env) {
			o := e.owner("me")
			o.misses("f")
			e.file("f", "theirs")
			e.refused("f", o.put("f", "x"), fault.FSNotObserved)
		}},
		{281, "recovery from a deletion", All, 0, func(e *env) {
			e.file("f", "old")
			o := e.owner("me")
			o.sees("f")
			e.must(e.World.Remove(e.path("f")))
			e.fails(o.alter("f", "old", "x")(), fault.FSStaleVersion)
			e.fails(o.put("f", "x")(), fault.FSStaleVersion)
			o.misses("f")
			e.fails(o.alter("f", "old", "x")(), fault.FSNotFound)
			e.must(o.put("f", "new")())
		}},
		{282, "a read that fails observes nothing", All, 0, func(e *env) {
			o := e.owner("me")
			e.file("f", "one line")
			_, err := o.View(e.ctx, e.at("f"), remotefs.WindowOptions{Offset: 9, Limit: 1})
			e.fails(err, fault.FSNotFound)
			e.file("bin", "\x00")
			_, err = o.View(e.ctx, e.at("bin"), remotefs.WindowOptions{Offset: 1, Limit: 1})
			e.fails(err, fault.FSNotText)
			e.mkdir("d")
			_, err = o.View(e.ctx, e.at("d"), remotefs.WindowOptions{Offset: 1, Limit: 1})
			e.fails(err, fault.FSNotRegularFile)
			e.refused("f", o.alter("f", "one", "1"), fault.FSNotObserved)
			e.refused("bin", o.put("bin", "x"), fault.FSNotObserved)
			e.refused("d", o.alter("d", "a", "b"), fault.FSNotObserved)
		}},
		{283, "a read beside the policy observes nothing", All, 0, func(e *env) {
			e.file("f", "old")
			_, err := e.Files.ReadText(e.ctx, e.at("f"))
			e.must(err)
			e.refused("f", e.owner("me").alter("f", "old", "new"), fault.FSNotObserved)
		}},
		{284, "owners know nothing of each other", All, 0, func(e *env) {
			e.file("f", "old")
			e.owner("one").sees("f")
			e.refused("f", e.owner("two").alter("f", "old", "new"), fault.FSNotObserved)
			e.must(e.owner("one").alter("f", "old", "new")())
		}},
		{285, "what was read by one name is known by another", All, 0, func(e *env) {
			e.file("real", "old")
			e.link("real", "link")
			o := e.owner("me")
			o.sees("real")
			e.must(o.alter("link", "old", "new")())
		}},
		{286, "without an owner nothing is replaced or edited", All, 0, func(e *env) {
			e.file("f", "old")
			nobody := owner{remotefs.NewPolicy(e.Files, nil), e}
			nobody.sees("f")
			e.refused("f", nobody.alter("f", "old", "new"), fault.FSNotObserved)
			e.refused("f", nobody.put("f", "x"), fault.FSNotObserved)
			e.must(nobody.put("g", "x")())
		}},
		{287, "the last observation counts, also an old one", All, 0, func(e *env) {
			e.file("f", "old")
			before := e.version("f")
			o := e.owner("me")
			e.file("f", "newer")
			o.sees("f")
			e.must(e.ledger("me").Record(e.ctx, e.resolve("f").Key, remotefs.Observation{State: remotefs.SeenPresent, Version: before}))
			e.refused("f", o.alter("f", "newer", "x"), fault.FSStaleVersion)
		}},
		{288, "a failed edit changes no observation", All, 0, func(e *env) {
			e.file("f", "old")
			o := e.owner("me")
			o.sees("f")
			e.refused("f", o.alter("f", "none", "x"), fault.FSEditNotFound)
			e.must(o.alter("f", "old", "new")())
		}},
		{289, "without the policy nothing is asked for", All, 0, func(e *env) {
			e.file("f", "old")
			e.edit("f", "old", "new", "")
			e.write(e.at("f"), want("newer"))
			e.says(remotefs.Advise(e.alter("none", "a", "b", "")()), readAgain)
		}},
		{291, "other errors get no advice", All, 0, func(e *env) {
			e.file("f", "old")
			err := e.refused("f", e.alter("f", "none", "x", ""), fault.FSEditNotFound)
			same(e, "message", remotefs.Advise(err).Error(), err.Error())
		}},
	}
}

// owner acts under the policy for somebody.
type owner struct {
	*remotefs.Policy
	e *env
}

// owner gives one whose ledger is that of this case. Each call opens it anew, as
// one command after the other does.
func (e *env) owner(name string) owner {
	return owner{remotefs.NewPolicy(e.Files, e.ledger(name)), e}
}

func (e *env) ledger(name string) *remotefs.Ledger {
	return remotefs.OpenLedger(e.StateDir, name+path.Base(e.dir), "suite")
}

func (o owner) put(name, content string) func() error {
	return func() error {
		_, err := o.WriteText(o.e.ctx, o.e.at(name), want(content))
		return err
	}
}

func (o owner) alter(name, old, fresh string) func() error {
	return func() error {
		_, err := o.EditText(o.e.ctx, o.e.at(name), change(old, fresh, ""))
		return err
	}
}

// sees reads a file.
func (o owner) sees(name string) {
	o.e.Helper()
	if _, err := o.View(o.e.ctx, o.e.at(name), remotefs.WindowOptions{Offset: 1, Limit: 2000}); err != nil {
		o.e.Fatalf("view of %s: %v", name, err)
	}
}

// misses reads a file that is not there.
func (o owner) misses(name string) {
	o.e.Helper()
	_, err := o.View(o.e.ctx, o.e.at(name), remotefs.WindowOptions{Offset: 1, Limit: 2000})
	o.e.fails(err, fault.FSNotFound)
}
