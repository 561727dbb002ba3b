package script

import (
	"crypto/sha256"
	"fmt"
	"strconv"
)

// StoreSpec describes a guarded write whose content is not known beforehand.
type StoreSpec struct {
	Path      string
	Canonical bool
	Intent    Intent
	Version   string // of Replace
	Mode      int    // -1: that of the replaced file, else NewMode
	NewMode   int    // 0 or less: what the world's umask leaves
	InPlace   bool   // through the open file, not atomic
	// Ready: the program says when it has looked at the guard and staged, so that
	// large content is not sent in vain. ReadReady reads that.
	Ready bool
}

// Store asks for a guarded write. It first tells the canonical path and waits for
// a line on the input, so that a lock can be taken before it looks at what the
// guard is about; then come the content, Trailer, and the end of the input.
// ReadPlace reads the first answer, ReadStored the rest.
func Store(w StoreSpec) Call {
	intent := string(w.Intent)
	if w.InPlace {
		intent += "i"
	}
	fresh := "=-"
	if w.NewMode > 0 {
		fresh = mode(w.NewMode)
	}
	c := call("store", Word(w.Path), flag(w.Canonical), "="+intent, "="+w.Version, mode(w.Mode), fresh)
	if w.Ready {
		c.Words = append(c.Words, "=y")
	}
	return c
}

// ReadReady waits until the content of a Store with Ready may come; a refusal
// comes as a *Failure.
func ReadReady(a *Answer) error {
	if next, err := a.Peek(1); err == nil && next[0] == 'E' {
		_, err := a.Status(0)
		return err
	}
	word, err := a.Field()
	if err == nil && word != "ready" {
		err = fmt.Errorf("answer holds %.20q", word)
	}
	return err
}

// Trailer is what follows the content of Store: 118 bytes that hold its length
// and its SHA-256.
func Trailer(c Call, size int64, digest [sha256.Size]byte) []byte {
	return fmt.Appendf(nil, "%s %20d %x", c.Nonce, size, digest)
}

// ReadPlace gives the canonical path of a Store and whether something was there.
func ReadPlace(a *Answer, c Call) (key string, exists bool, err error) {
	if _, err := a.Begin(c.Nonce); err != nil {
		return "", false, err
	}
	if next, err := a.Peek(1); err == nil && next[0] == 'E' {
		_, err := a.Status(0)
		return "", false, err
	}
	if key, err = a.Field(); err != nil {
		return "", false, err
	}
	there, err := a.Field()
	return key, there == "y", err
}

// ReadStored reads the final answer of Store.
func ReadStored(a *Answer) (Written, error) {
	f, err := a.Status(3)
	if err != nil {
		return Written{}, err
	}
	return Written{Key: f[0], Created: f[1] == "create", Version: f[2]}, nil
}

// ReadInline asks for a file as Read does, and for its content only if that has
// at most inline bytes.
func ReadInline(path string, canonical bool, limit, inline int64) Call {
	c := Read(path, canonical, limit)
	c.Words = append(c.Words, "="+strconv.FormatInt(inline, 10))
	return c
}

// Own says, of SignalForeground, that the leader's own group is in front, which
// is not to be killed.
const Own Delivery = "own"

// SignalForeground asks for a signal to the foreground group of the leader's
// terminal, by one look and one kill. ReadSignalForeground reads the answer.
func SignalForeground(s Started, signal string) Call {
	return call("front", append(s.words()[:2], "="+signal)...)
}

// ReadSignalForeground gives the group, 0 if there is none, and what became of
// the signal.
func ReadSignalForeground(a *Answer, c Call) (group int, d Delivery, err error) {
	f, err := a.Head(c.Nonce, 2)
	if err != nil {
		return 0, "", err
	}
	group, err = strconv.Atoi(f[0])
	return group, Delivery(f[1]), err
}
