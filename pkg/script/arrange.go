package script

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Mkdir asks for a directory; a mode of -1 is what the umask leaves. ReadMade
// reads the answer.
func Mkdir(path string, perm int, parents bool) Call {
	return call("mkdir", Word(path), choice(parents, "p"), mode(perm))
}

// Remove asks for the end of an entry. ReadDone reads the answer.
func Remove(path string, recursive bool) Call {
	return call("remove", Word(path), choice(recursive, "r"))
}

// Move asks for another name. ReadDone reads the answer.
func Move(from, to string, noReplace bool) Call {
	return call("move", Word(from), Word(to), choice(noReplace, "n"))
}

// Copy asks for a copy. ReadDone reads the answer.
func Copy(from, to string, noReplace bool) Call {
	return call("copy", Word(from), Word(to), choice(noReplace, "n"))
}

// Chmod asks for permission bits. ReadDone reads the answer.
func Chmod(path string, perm int, recursive bool) Call {
	return call("chmod", Word(path), mode(perm), choice(recursive, "r"))
}

// Symlink asks for a symbolic link. ReadDone reads the answer.
func Symlink(text, path string) Call { return call("link", Word(text), Word(path)) }

// Touch asks for a time of modification; the zero time is the world's now.
// ReadMade reads the answer.
func Touch(path string, at time.Time, exist bool) Call {
	when := "=-"
	if !at.IsZero() {
		when = fmt.Sprintf("=%d.%09d", at.Unix(), at.Nanosecond())
	}
	return call("touch", Word(path), when, choice(exist, "c"))
}

// choice is a flag that is there or not.
func choice(yes bool, letter string) string {
	if yes {
		return "=" + letter
	}
	return "=-"
}

// ReadMade reads the answer of Mkdir and Touch: whether something was made.
func ReadMade(a *Answer, c Call) (bool, error) {
	f, err := a.Head(c.Nonce, 1)
	return err == nil && f[0] == "y", err
}

// Walk asks for everything below a directory, as deep as depth says, 0 without
// bound; what has one of the names of skip is left out. ReadWalk reads the answer.
func Walk(path string, names bool, depth int, skip []string) Call {
	words := []string{Word(path), choice(names, "n"), "=" + strconv.Itoa(depth)}
	for _, s := range skip {
		words = append(words, Word(s))
	}
	return call("walk", words...)
}

// Found is an entry of a walk. Kind is a letter of find: f, d, l, or another.
type Found struct {
	Path    string // below the root
	Kind    byte
	Mode    int
	Size    int64
	ModTime time.Time
	State   string
	Link    string
}

// ReadWalk reads the answer of Walk as it comes. trouble is what find said of
// entries that it could not look at.
func ReadWalk(a *Answer, c Call, visit func(Found) error) (trouble string, err error) {
	f, err := a.Head(c.Nonce, 1)
	if err != nil {
		return "", err
	}
	if f[0] == "s" {
		err = readStatWalk(a, visit)
	} else {
		err = readFindWalk(a, c.Words[1] == "=n", visit)
	}
	if err != nil {
		return "", err
	}
	if trouble, err = a.Field(); err != nil {
		return "", err
	}
	if end, err := a.Field(); err != nil || end != "end" {
		return "", io.ErrUnexpectedEOF
	}
	return trouble, nil
}

// readFindWalk reads records of find up to an empty field.
func readFindWalk(a *Answer, names bool, visit func(Found) error) error {
	for {
		record, err := a.Field()
		if err != nil || record == "" {
			return err
		}
		link, err := a.Field()
		if err != nil {
			return err
		}
		e, err := parseFound(record, names)
		if err != nil {
			return err
		}
		if e.Kind == 'l' {
			e.Link = link
		}
		if err := visit(e); err != nil {
			return err
		}
	}
}

// parseFound reads "type path" or "type mode size time state path".
func parseFound(record string, names bool) (Found, error) {
	bad := fmt.Errorf("cannot read the record %.80q of a walk", record)
	if names {
		kind, path, ok := strings.Cut(record, " ")
		if !ok || kind == "" || path == "" {
			return Found{}, bad
		}
		return Found{Kind: kind[0], Path: path}, nil
	}
	w := strings.SplitN(record, " ", 6)
	if len(w) != 6 || w[0] == "" || w[5] == "" {
		return Found{}, bad
	}
	e := Found{Kind: w[0][0], State: w[4], Path: w[5]}
	perm, err1 := strconv.ParseUint(w[1], 8, 16)
	size, err2 := strconv.ParseInt(w[2], 10, 64)
	at, err3 := parseTime(w[3])
	if err1 != nil || err2 != nil || err3 != nil {
		return Found{}, bad
	}
	e.Mode, e.Size, e.ModTime = int(perm), size, at
	return e, nil
}

// parseTime reads seconds with a fraction.
func parseTime(s string) (time.Time, error) {
	whole, part, _ := strings.Cut(s, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	nanos, err := strconv.ParseInt((part + "000000000")[:9], 10, 64)
	return time.Unix(seconds, nanos), err
}

// recordEnd ends a record of stat: no path holds two slashes.
const recordEnd = "//\n"

// readStatWalk reads records of stat, and then the texts of the links. Records
// are kept until these are known.
func readStatWalk(a *Answer, visit func(Found) error) error {
	block, err := readBlock(a)
	if err != nil {
		return err
	}
	var all []Found
	index := map[string]int{}
	for _, record := range strings.SplitAfter(string(block), recordEnd) {
		if record == "" {
			continue
		}
		e, err := parseStat(record)
		if err != nil {
			return err
		}
		index[e.Path] = len(all)
		all = append(all, e)
	}
	for {
		path, err := a.Field()
		if err != nil {
			return err
		}
		if path == "" {
			break
		}
		text, err := a.Field()
		if err != nil {
			return err
		}
		if i, ok := index[strings.TrimPrefix(path, "./")]; ok {
			all[i].Link = text
		}
	}
	for _, e := range all {
		if err := visit(e); err != nil {
			return err
		}
	}
	return nil
}

// parseStat reads "rawmode mode size seconds date time zone date time zone inode
// ./path//".
func parseStat(record string) (Found, error) {
	bad := fmt.Errorf("cannot read the record %.80q of a walk", record)
	w := strings.SplitN(strings.TrimSuffix(record, recordEnd), " ", 12)
	if len(w) != 12 || !strings.HasSuffix(record, recordEnd) {
		return Found{}, bad
	}
	raw, err1 := strconv.ParseUint(w[0], 16, 32)
	size, err2 := strconv.ParseInt(w[2], 10, 64)
	at, err3 := time.Parse("2006-01-02 15:04:05 -0700", strings.Join(w[4:7], " "))
	path, ok := strings.CutPrefix(w[11], "./")
	if err1 != nil || err2 != nil || err3 != nil || !ok {
		return Found{}, bad
	}
	e := Found{Path: path, Kind: 'o', Mode: int(raw & 0o7777), Size: size, ModTime: at,
		State: strings.Join([]string{w[10], w[2], w[4], w[5], w[7], w[8]}, ":")}
	switch raw & typeMask {
	case typeRegular:
		e.Kind = 'f'
	case typeDirectory:
		e.Kind = 'd'
	case typeLink:
		e.Kind = 'l'
	}
	return e, nil
}
