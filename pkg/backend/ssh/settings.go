package ssh

import (
	"net"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// Settings are how a host is reached: the user's own SSH configuration with the
// values of the profile on top.
type Settings struct {
	Alias string // as the profile says it
	Host  string
	Port  int
	User  string

	IdentityFiles    []string
	CertificateFiles []string
	IdentitiesOnly   bool
	Agent            string // path of the agent's socket; "" = none

	Jumps        []string // each USER@HOST:PORT or an alias
	ProxyCommand string

	KnownHosts   []string // files; new keys go to the first
	HostKeyAlias string
	AcceptNew    bool

	ConnectTimeout time.Duration
	Keepalive      time.Duration
	DeadPeer       time.Duration

	Ciphers, MACs, KeyExchanges, HostKeyAlgorithms []string

	// Source says where the user's configuration was read: "ssh -G", a file, or
	// nowhere. Ignored are its keywords that would matter and have no effect here.
	Source  string
	Ignored []string
}

// Address is host and port to dial.
func (s Settings) Address() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// keyName is the name under which the host's key is known.
func (s Settings) keyName() string {
	if s.HostKeyAlias != "" {
		return net.JoinHostPort(s.HostKeyAlias, "22")
	}
	return s.Address()
}

// userConfig is what the user's configuration says of a host, keyword in lower
// case to values in order.
type userConfig map[string][]string

func (c userConfig) first(key string) string {
	if v := c[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (c userConfig) list(key string) []string {
	if v := c.first(key); v != "" && v != "none" {
		return strings.Split(v, ",")
	}
	return nil
}

// ignoredKeywords change what a connection does and have no effect here, unless
// they have the value that follows.
func ignoredKeywords() map[string]string {
	return map[string]string{
		"bindaddress": "", "bindinterface": "", "proxyusefdpass": "no", "pkcs11provider": "none",
		"hostbasedauthentication": "no", "gssapiauthentication": "no", "canonicalizehostname": "false",
		"requesttty": "auto", "remotecommand": "none", "sessiontype": "default", "localcommand": "none",
		"verifyhostkeydns": "false", "revokedhostkeys": "none", "controlpath": "none", "tunnel": "false",
		"forwardagent": "no", "forwardx11": "no", "setenv": "", "compression": "no",
	}
}

// apply puts the user's configuration into s.
func (s *Settings) apply(c userConfig, home string) error {
	s.Host = strings.NewReplacer("%%", "%", "%h", s.Alias).Replace(first(c.first("hostname"), s.Alias))
	s.User = first(c.first("user"), s.User)
	port, err := strconv.Atoi(first(c.first("port"), "22"))
	if err != nil || port < 1 || port > 65535 {
		return fault.New(fault.Usage, "connect", s.Alias, "port %q of %s is not a port", c.first("port"), s.Alias)
	}
	s.Port = port
	expand := func(v string) string { return expandTokens(v, home, *s) }
	for _, f := range c["identityfile"] {
		s.IdentityFiles = append(s.IdentityFiles, expand(f))
	}
	for _, f := range c["certificatefile"] {
		s.CertificateFiles = append(s.CertificateFiles, expand(f))
	}
	s.IdentitiesOnly = yes(c.first("identitiesonly"))
	switch a := c.first("identityagent"); a {
	case "", "SSH_AUTH_SOCK":
	case "none":
		s.Agent = ""
	default:
		s.Agent = expand(a)
	}
	if j := c.first("proxyjump"); j != "" && j != "none" {
		s.Jumps = strings.Split(j, ",")
	}
	if p := c.first("proxycommand"); p != "" && p != "none" && len(s.Jumps) == 0 {
		s.ProxyCommand = expandTokens(p, home, *s)
	}
	for _, f := range strings.Fields(c.first("userknownhostsfile") + " " + c.first("globalknownhostsfile")) {
		if f != "none" && f != "/dev/null" {
			s.KnownHosts = append(s.KnownHosts, expand(f))
		}
	}
	s.HostKeyAlias = c.first("hostkeyalias")
	switch strings.ToLower(c.first("stricthostkeychecking")) {
	case "accept-new", "no", "off", "false":
		s.AcceptNew = true // at most: a changed key is always an error
	}
	if n, err := strconv.Atoi(c.first("serveraliveinterval")); err == nil && n > 0 {
		s.Keepalive = time.Duration(n) * time.Second
	}
	if n, err := strconv.Atoi(c.first("connecttimeout")); err == nil && n > 0 {
		s.ConnectTimeout = time.Duration(n) * time.Second
	}
	s.Ciphers, s.MACs = c.list("ciphers"), c.list("macs")
	s.KeyExchanges, s.HostKeyAlgorithms = c.list("kexalgorithms"), c.list("hostkeyalgorithms")
	for key, plain := range ignoredKeywords() {
		if v := c.first(key); v != "" && v != plain {
			s.Ignored = append(s.Ignored, key)
		}
	}
	return nil
}

// expandTokens expands a leading tilde and the percent tokens that we know.
func expandTokens(v, home string, s Settings) string {
	if rest, ok := strings.CutPrefix(v, "~/"); ok {
		v = filepath.Join(home, rest)
	}
	return strings.NewReplacer("%%", "%", "%d", home, "%h", s.Host, "%n", s.Alias, "%p", strconv.Itoa(s.Port),
		"%r", s.User, "%k", first(s.HostKeyAlias, s.Alias)).Replace(v)
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func yes(v string) bool {
	switch strings.ToLower(v) {
	case "yes", "true":
		return true
	}
	return false
}

// splitTarget cuts USER@HOST:PORT; a missing port is 0.
func splitTarget(target string) (user, host string, port int) {
	target = strings.TrimPrefix(target, "ssh://")
	if at := strings.LastIndexByte(target, '@'); at >= 0 {
		user, target = target[:at], target[at+1:]
	}
	if h, p, err := net.SplitHostPort(target); err == nil {
		if n, err := strconv.Atoi(p); err == nil {
			return user, h, n
		}
	}
	return user, strings.Trim(target, "[]"), 0
}

// absolute joins a relative host path to dir.
func absolute(dir, home, p string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return filepath.Join(home, rest)
	}
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(dir, p)
}

// joinWorld joins a directory of the world to its home.
func joinWorld(home, dir string) string {
	if path.IsAbs(dir) {
		return path.Clean(dir)
	}
	return path.Join("/", home, dir)
}
