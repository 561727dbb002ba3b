package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/afield-dev/afield/pkg/fault"
)

// secrets are the secret values of a row, resolved when they are needed.
type secrets struct {
	passphrase func() (string, error)
	password   func() (string, error)
}

// auth offers the user's keys and secrets to one server, and remembers what was
// tried, for the error and for doctor. It never asks anybody.
type auth struct {
	settings Settings
	secrets  secrets

	mu    sync.Mutex
	tried []string
	used  string // the method offered last
	conn  net.Conn
	err   error // a secret that cannot be resolved
}

func (a *auth) note(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tried = append(a.tried, fmt.Sprintf(format, args...))
}

// close ends the connection to the agent.
func (a *auth) close() {
	if a.conn != nil {
		a.conn.Close()
	}
}

// methods are the ways to authenticate, in OpenSSH's order.
func (a *auth) methods() []ssh.AuthMethod {
	return []ssh.AuthMethod{
		ssh.PublicKeysCallback(a.signers),
		ssh.KeyboardInteractive(func(_, _ string, questions []string, echos []bool) ([]string, error) {
			return a.answer(questions, echos)
		}),
		ssh.PasswordCallback(func() (string, error) { return a.password("password") }),
	}
}

// errNoPassword ends a method that needs a password where the row has none.
var errNoPassword = errors.New("no password is configured")

func (a *auth) use(method string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used = method
	a.tried = append(a.tried, method)
}

func (a *auth) password(method string) (string, error) {
	p, err := a.secrets.password()
	switch {
	case err != nil:
		a.mu.Lock()
		a.err = err
		a.mu.Unlock()
		return "", err
	case p == "":
		return "", errNoPassword
	}
	a.use(method)
	return p, nil
}

// answer gives the password to every hidden question.
func (a *auth) answer(questions []string, echos []bool) ([]string, error) {
	if len(questions) == 0 {
		return nil, nil
	}
	p, err := a.password("keyboard-interactive")
	if err != nil {
		return nil, err
	}
	answers := make([]string, len(questions))
	for i := range questions {
		if echos[i] {
			return nil, fmt.Errorf("the server asks %q, which only a person can answer", questions[i])
		}
		answers[i] = p
	}
	return answers, nil
}

// signers are the keys: those of the agent that the configuration names, those
// of the files, then the rest of the agent's. A certificate goes before its key.
func (a *auth) signers() ([]ssh.Signer, error) {
	held := a.agentSigners()
	var named, rest []ssh.Signer
	files := a.fileKeys()
	for _, s := range held {
		if files.names(s.PublicKey()) {
			named = append(named, s)
		} else if !a.settings.IdentitiesOnly {
			rest = append(rest, s)
		}
	}
	all := named
	for _, f := range files {
		if f.signer != nil && !holds(named, f.signer.PublicKey()) {
			all = append(all, f.signer)
		}
	}
	all = append(all, rest...)
	all = append(a.certified(all), all...)
	for i, s := range all {
		all[i] = &noted{Signer: s, auth: a}
	}
	if len(all) == 0 {
		a.note("no key to offer")
	}
	return all, nil
}

// noted is a signer that says when it is used.
type noted struct {
	ssh.Signer
	auth *auth
}

func (n *noted) PublicKey() ssh.PublicKey {
	key := n.Signer.PublicKey()
	n.auth.offered(key)
	return key
}

func (a *auth) offered(key ssh.PublicKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used = "publickey " + describe(key)
	if line := "key " + describe(key); len(a.tried) == 0 || a.tried[len(a.tried)-1] != line {
		a.tried = append(a.tried, line)
	}
}

// SignWithAlgorithm keeps the choice of the algorithm with the key.
func (n *noted) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	if s, ok := n.Signer.(ssh.AlgorithmSigner); ok {
		return s.SignWithAlgorithm(rand, data, algorithm)
	}
	return n.Signer.Sign(rand, data)
}

func holds(signers []ssh.Signer, key ssh.PublicKey) bool {
	for _, s := range signers {
		if bytes.Equal(s.PublicKey().Marshal(), key.Marshal()) {
			return true
		}
	}
	return false
}

func (a *auth) agentSigners() []ssh.Signer {
	if a.settings.Agent == "" {
		return nil
	}
	conn, err := net.Dial("unix", a.settings.Agent)
	if err != nil {
		a.note("agent at %s: not reachable", a.settings.Agent)
		return nil
	}
	a.conn = conn
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		a.note("agent: %v", err)
	}
	return signers
}

// fileKey is an identity file: its private key if it can be used, and its public
// key if that is known.
type fileKey struct {
	public ssh.PublicKey
	signer ssh.Signer
}

type fileKeys []fileKey

func (f fileKeys) names(key ssh.PublicKey) bool {
	for _, k := range f {
		if k.public != nil && bytes.Equal(k.public.Marshal(), key.Marshal()) {
			return true
		}
	}
	return false
}

func (a *auth) fileKeys() fileKeys {
	var keys fileKeys
	for _, file := range a.settings.IdentityFiles {
		public := readPublic(file + ".pub")
		signer, err := a.readPrivate(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			a.note("key %s: %v", file, err)
		default:
			public = signer.PublicKey()
		}
		if public != nil {
			keys = append(keys, fileKey{public, signer})
		}
	}
	return keys
}

func readPublic(file string) ssh.PublicKey {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(data)
	if err != nil {
		return nil
	}
	return key
}

// readPrivate reads a private key; the passphrase is resolved only for one that
// needs it.
func (a *auth) readPrivate(file string) (ssh.Signer, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(data)
	var locked *ssh.PassphraseMissingError
	if !errors.As(err, &locked) {
		return signer, err
	}
	phrase, err := a.secrets.passphrase()
	if err != nil {
		a.mu.Lock()
		a.err = err
		a.mu.Unlock()
		return nil, err
	}
	if phrase == "" {
		return nil, errors.New("has a passphrase; set identityPassphrase or add it to an agent")
	}
	if signer, err = ssh.ParsePrivateKeyWithPassphrase(data, []byte(phrase)); err != nil {
		return nil, errors.New("the passphrase does not open it")
	}
	return signer, nil
}

// certified gives a signer for each certificate whose key is there.
func (a *auth) certified(signers []ssh.Signer) []ssh.Signer {
	files := append([]string(nil), a.settings.CertificateFiles...)
	for _, f := range a.settings.IdentityFiles {
		files = append(files, f+"-cert.pub")
	}
	var out []ssh.Signer
	for _, file := range files {
		cert, ok := readPublic(file).(*ssh.Certificate)
		if !ok {
			continue
		}
		for _, s := range signers {
			if bytes.Equal(s.PublicKey().Marshal(), cert.Key.Marshal()) {
				if c, err := ssh.NewCertSigner(cert, s); err == nil {
					out = append(out, c)
				}
				break
			}
		}
	}
	return out
}

// refused is the error of a server that accepted nothing.
func (a *auth) refused(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return fault.Wrap(a.err, first2(fault.CodeOf(a.err), fault.BackendAuthFailed), "connect", a.settings.Alias, "%s", a.err)
	}
	what := "nothing could be offered"
	if len(a.tried) > 0 {
		what = "tried " + strings.Join(a.tried, "; ")
	}
	return fault.Wrap(err, fault.BackendAuthFailed, "connect", a.settings.Alias, "%s does not let %s in: %s",
		a.settings.Alias, a.settings.User, what).
		WithHint("check user and identityFile, or run: ssh -v -p %d %s@%s true", a.settings.Port, a.settings.User, a.settings.Host)
}

func first2(a, b fault.Code) fault.Code {
	if a != "" {
		return a
	}
	return b
}

// secret makes a getter that resolves once; "" where the row does not set the key.
func secret(ctx context.Context, get func(context.Context, string) (string, error), key string) func() (string, error) {
	if get == nil {
		return func() (string, error) { return "", nil }
	}
	return sync.OnceValues(func() (string, error) { return get(ctx, key) })
}
