package ssh

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/afield-dev/afield/pkg/fault"
)

// hostKeys checks the key of one host against the user's known hosts
// (design.md 4.9).
type hostKeys struct {
	settings Settings
	db       *knownhosts.HostKeyDB
	// seen is set once a key was accepted: what fails later is authentication.
	seen bool
	// fingerprint of the accepted key.
	fingerprint string
}

// newHostKeys reads the known hosts. Files that do not exist know nobody.
func newHostKeys(s Settings) (*hostKeys, error) {
	files := slices.DeleteFunc(slices.Clone(s.KnownHosts), func(f string) bool {
		_, err := os.Stat(f)
		return errors.Is(err, fs.ErrNotExist)
	})
	db, err := knownhosts.NewDB(files...)
	if err != nil {
		return nil, fault.Wrap(err, fault.BackendHostKey, "connect", s.Alias, "the known hosts cannot be read: %v", err)
	}
	return &hostKeys{settings: s, db: db}, nil
}

// algorithms are those of the keys that are known of the host, so that the
// server shows one of them; none if it is unknown.
func (k *hostKeys) algorithms() []string {
	if len(k.settings.HostKeyAlgorithms) > 0 && len(k.db.HostKeys(k.settings.keyName())) == 0 {
		return k.settings.HostKeyAlgorithms
	}
	return k.db.HostKeyAlgorithms(k.settings.keyName())
}

// check is the host key callback.
func (k *hostKeys) check(_ string, remote net.Addr, key ssh.PublicKey) error {
	name := k.settings.keyName()
	err := k.db.HostKeyCallback()(name, remote, key)
	switch {
	case err == nil:
	case knownhosts.IsHostKeyChanged(err):
		return k.changed(err, key)
	case !knownhosts.IsHostUnknown(err):
		return fault.Wrap(err, fault.BackendHostKey, "connect", k.settings.Alias, "host key of %s is refused: %v", k.settings.Alias, err)
	case !k.settings.AcceptNew:
		return k.unknown(err, key)
	default:
		if err := k.remember(name, remote, key); err != nil {
			return err
		}
	}
	k.seen, k.fingerprint = true, describe(key)
	return nil
}

func describe(key ssh.PublicKey) string { return key.Type() + " " + ssh.FingerprintSHA256(key) }

func (k *hostKeys) changed(err error, key ssh.PublicKey) error {
	s := k.settings
	return fault.Wrap(err, fault.BackendHostKey, "connect", s.Alias,
		"the host key of %s has changed: it shows %s, which is not the known one; somebody may be in between",
		s.Alias, describe(key)).WithHint("ask who runs the host; if the change is right, run: ssh-keygen -R '%s'%s",
		knownhosts.Normalize(s.keyName()), k.fileFlag("-f"))
}

func (k *hostKeys) unknown(err error, key ssh.PublicKey) error {
	s := k.settings
	return fault.Wrap(err, fault.BackendHostKey, "connect", s.Alias, "the host key of %s is not known: it shows %s", s.Alias, describe(key)).
		WithHint("compare the fingerprint with what the host's owner says, then add this line to %s: %s (or set hostKey: accept-new)",
			k.file(), knownhosts.Line([]string{s.keyName()}, key))
}

// file is where new keys go.
func (k *hostKeys) file() string {
	if len(k.settings.KnownHosts) > 0 {
		return k.settings.KnownHosts[0]
	}
	return ""
}

func (k *hostKeys) fileFlag(flag string) string {
	if f := k.file(); f != "" {
		return " " + flag + " '" + strings.ReplaceAll(f, "'", `'\''`) + "'"
	}
	return ""
}

// remember adds the key of a new host to the known hosts.
func (k *hostKeys) remember(name string, remote net.Addr, key ssh.PublicKey) error {
	fail := func(err error) error {
		return fault.Wrap(err, fault.BackendHostKey, "connect", k.settings.Alias, "the new host key of %s cannot be kept: %v", k.settings.Alias, err)
	}
	file := k.file()
	if file == "" {
		return fail(errors.New("no known-hosts file is configured"))
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fail(err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	if err := knownhosts.WriteKnownHost(f, name, remote, key); err != nil {
		return fail(fmt.Errorf("%s: %w", file, err))
	}
	return nil
}
