package script

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// flag says whether a path is canonical already.
func flag(canonical bool) string {
	if canonical {
		return "=c"
	}
	return "=-"
}

func mode(m int) string {
	if m < 0 {
		return "=-"
	}
	return fmt.Sprintf("=%04o", m)
}

// Stat asks for the canonical path and what is there. ReadStat reads the answer.
func Stat(path string, canonical bool) Call { return call("stat", Word(path), flag(canonical)) }

// Lstat asks for the entry itself. ReadStat reads the answer.
func Lstat(path string) Call { return call("lstat", Word(path)) }

// Entry is the answer of Stat and Lstat. Facts is nil when nothing is there.
type Entry struct {
	Key   string
	Facts *Facts
	// Link is the text of a symbolic link, from Lstat.
	Link string
	// NotDir: nothing is there because something above is no directory.
	NotDir bool
}

// ReadStat reads the answer of Stat, of Lstat, and the head of that of Read.
func ReadStat(a *Answer, c Call) (Entry, error) {
	f, err := a.Head(c.Nonce, 3)
	if err != nil {
		return Entry{}, err
	}
	facts, err := parseFacts(f[1])
	e := Entry{Key: f[0], Facts: facts, NotDir: facts == nil && f[2] == "notdir"}
	if c.Name == "lstat" {
		e.Link = f[2]
	}
	return e, err
}

// Read asks for a file. After the head, which ReadStat reads, the rest of the
// answer is the content; the program's status tells whether it is whole. A limit
// that is not negative refuses a larger file with TooLarge.
func Read(path string, canonical bool, limit int64) Call {
	return call("read", Word(path), flag(canonical), "="+strconv.FormatInt(limit, 10))
}

// List asks for a directory. ReadList reads the answer.
func List(path string, canonical bool) Call { return call("list", Word(path), flag(canonical)) }

// Child is one name of a listing with the facts of what it leads to; Facts is
// nil when it leads nowhere. Key is the canonical path of that.
type Child struct {
	Name  string
	Key   string
	Facts *Facts
}

// ReadList reads the answer of List: the canonical path and the children in the
// order of the world. Every name is there, or it fails.
func ReadList(a *Answer, c Call) (string, []Child, error) {
	f, err := a.Head(c.Nonce, 1)
	if err != nil {
		return "", nil, err
	}
	dir := strings.TrimSuffix(f[0], "/") + "/"
	children, index, err := readNames(a, dir)
	if err != nil {
		return "", nil, err
	}
	facts, err := readBlock(a)
	if err != nil {
		return "", nil, err
	}
	if err := assignFacts(children, index, dir, facts); err != nil {
		return "", nil, err
	}
	return f[0], children, readLinks(a, children, index)
}

// readNames reads full paths up to an empty field.
func readNames(a *Answer, dir string) ([]Child, map[string]int, error) {
	var children []Child
	index := map[string]int{}
	for {
		path, err := a.Field()
		if err != nil {
			return nil, nil, err
		}
		if path == "" {
			break
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		index[name] = len(children)
		children = append(children, Child{Name: name, Key: dir + name})
	}
	if next, err := a.Peek(1); err == nil && next[0] == 'E' {
		_, err := a.Status(0)
		return nil, nil, err
	}
	return children, index, nil
}

// readBlock reads up to a NUL, whatever the length.
func readBlock(a *Answer) ([]byte, error) {
	block, err := a.ReadBytes(0)
	if err != nil {
		return nil, unexpected(err)
	}
	return block[:len(block)-1], nil
}

// assignFacts cuts the block of facts. A record is the facts, the path, and a
// newline; a name may hold newlines itself, so a record ends where a known name
// ends, the expected one first.
func assignFacts(children []Child, index map[string]int, dir string, block []byte) error {
	next := 0
	for len(block) > 0 {
		at := factsEnd(block)
		if at < 0 || !bytes.HasPrefix(block[at:], []byte(dir)) {
			return fmt.Errorf("listing of %q: cannot read %.80q", dir, block)
		}
		facts, err := parseFacts(string(block[:at]))
		if err != nil {
			return err
		}
		block = block[at+len(dir):]
		i, ok := expected(children, next, block)
		if !ok {
			i, ok = longest(index, block)
		}
		if !ok {
			// A name that appeared after the names were listed.
			end := bytes.IndexByte(block, '\n')
			block = block[end+1:]
			continue
		}
		children[i].Facts = facts
		block, next = block[len(children[i].Name)+1:], i+1
	}
	return nil
}

// factsEnd gives where the path begins: after ten words.
func factsEnd(block []byte) int {
	for i, words := 0, 0; i < len(block); i++ {
		if block[i] == ' ' {
			if words++; words == 10 {
				return i + 1
			}
		}
	}
	return -1
}

// expected looks for the next child's name at the beginning of block, passing
// over those that have no facts.
func expected(children []Child, from int, block []byte) (int, bool) {
	for i := from; i < len(children); i++ {
		if hasRecord(block, children[i].Name) {
			return i, true
		}
		if i-from > 64 {
			break
		}
	}
	return 0, false
}

// longest looks for the longest known name at the beginning of block.
func longest(index map[string]int, block []byte) (int, bool) {
	best, found := 0, false
	for end := bytes.IndexByte(block, '\n'); end >= 0; {
		if i, ok := index[string(block[:end])]; ok {
			best, found = i, true
		}
		more := bytes.IndexByte(block[end+1:], '\n')
		if more < 0 || end > 255 {
			break
		}
		end += 1 + more
	}
	return best, found
}

func hasRecord(block []byte, name string) bool {
	return len(block) > len(name) && string(block[:len(name)]) == name && block[len(name)] == '\n'
}

// readLinks reads pairs of name and canonical path up to an empty name, and the
// mark of the end.
func readLinks(a *Answer, children []Child, index map[string]int) error {
	for {
		name, err := a.Field()
		if err != nil {
			return err
		}
		if name == "" {
			break
		}
		key, err := a.Field()
		if err != nil {
			return err
		}
		if i, ok := index[name]; ok {
			children[i].Key = key
		}
	}
	if end, err := a.Field(); err != nil || end != "end" {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// Intent is the guard of a write.
type Intent string

// The intents: create or replace, create only, replace only the version.
const (
	Any     Intent = "n"
	Create  Intent = "c"
	Replace Intent = "r"
)

// WriteSpec describes a guarded write of known content.
type WriteSpec struct {
	Path      string
	Canonical bool
	Intent    Intent
	Version   string // of Replace
	Size      int64
	Mode      int  // -1: that of the replaced file, else NewMode
	NewMode   int  // -1: what the world's umask leaves
	InPlace   bool // through the open file, not atomic
}

// Write asks for a guarded write. ReadAdmitted reads the first part of the answer:
// the write is refused before any content is taken, or it is staged and the content
// may follow on the input up to its end. ReadWrite reads the rest.
func Write(w WriteSpec) Call {
	intent := string(w.Intent)
	if w.InPlace {
		intent += "i"
	}
	return call("write", Word(w.Path), flag(w.Canonical), "="+intent, "="+w.Version,
		"="+strconv.FormatInt(w.Size, 10), mode(w.Mode), mode(w.NewMode))
}

// Empty is what follows a write of no content on the input; without it the write
// is given up, as with less content than announced.
const Empty = "go\n"

// Written is the answer of Write and Publish.
type Written struct {
	Key     string
	Created bool // of Write
	Version string
}

// ReadAdmitted reads the first part of the answer of Write: the canonical path.
func ReadAdmitted(a *Answer, c Call) (string, error) {
	f, err := a.Head(c.Nonce, 1)
	if err != nil {
		return "", err
	}
	return f[0], nil
}

// ReadPublished reads the answer of Publish.
func ReadPublished(a *Answer, c Call) (Written, error) {
	if _, err := a.Begin(c.Nonce); err != nil {
		return Written{}, err
	}
	return ReadWrite(a)
}

// ReadWrite reads the rest of the answer of Write, after ReadAdmitted.
func ReadWrite(a *Answer) (Written, error) {
	f, err := a.Status(3)
	if err != nil {
		return Written{}, err
	}
	return Written{Key: f[0], Created: f[1] == "create", Version: f[2]}, nil
}

// Folder is the private folder that a call with this nonce stages key in.
func Folder(key, nonce string) string {
	return key[:strings.LastIndexByte(key, '/')] + "/.afield-" + nonce + ".tmp"
}

// Upload stages content of unknown length, which follows on the input up to its
// end, and leaves it staged. Keep carries the attributes of the file at key over.
func Upload(key string, mod, newMode int, keep bool) Call {
	k := "=n"
	if keep {
		k = "=y"
	}
	return call("upload", Word(key), mode(mod), k, mode(newMode))
}

// Uploaded is the answer of Upload: where the content is, and how much of it arrived.
// A cut connection looks like the end of the content; everything else the transport
// guards.
type Uploaded struct {
	Folder string
	Size   int64
}

// ReadUpload reads the answer of Upload.
func ReadUpload(a *Answer, c Call) (Uploaded, error) {
	f, err := a.Head(c.Nonce, 2)
	if err != nil {
		return Uploaded{}, err
	}
	n, err := strconv.ParseInt(f[1], 10, 64)
	return Uploaded{Folder: f[0], Size: n}, err
}

// Publish makes uploaded content visible under key in one step. A version that
// is not empty is compared right before it. ReadPublished reads the answer.
func Publish(key, folder string, noReplace bool, version string) Call {
	f := "=n"
	if noReplace {
		f = "=c"
	}
	return call("publish", Word(key), f, "="+version, Word(folder))
}

// Discard removes uploaded content. ReadDone reads the answer.
func Discard(folder string) Call { return call("discard", Word(folder)) }

// ReadDone reads an answer without fields.
func ReadDone(a *Answer, c Call) error {
	_, err := a.Head(c.Nonce, 0)
	return err
}

// Settle asks what became of a write whose connection was lost. It removes what
// is staged in folder, so that nothing is published later.
func Settle(key, folder string) Call { return call("settle", Word(key), Word(folder)) }

// Settled is the answer of Settle. Staged: the write had not been published, and
// now never will be. Facts, Sum and Size are of the file that stands at the key.
type Settled struct {
	Staged bool
	Facts  *Facts
	Sum    string
	Size   int64
}

// ReadSettle reads the answer of Settle.
func ReadSettle(a *Answer, c Call) (Settled, error) {
	f, err := a.Head(c.Nonce, 4)
	if err != nil {
		return Settled{}, err
	}
	facts, err := parseFacts(f[1])
	if err != nil {
		return Settled{}, err
	}
	s := Settled{Staged: f[2] == "staged", Facts: facts}
	if w := strings.Fields(f[3]); len(w) >= 2 {
		s.Sum = w[0]
		s.Size, err = strconv.ParseInt(w[1], 10, 64)
	}
	return s, err
}
