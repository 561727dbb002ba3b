package ssh

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/kevinburke/ssh_config"

	"github.com/afield-dev/afield/pkg/fault"
)

// request is what the profile and the caller's environment say.
type request struct {
	host       string
	port       int
	user       string
	configFile string
	home       string // of the user who runs afield
	dir        string // where afield was started
	agent      string // SSH_AUTH_SOCK, or "" with agent: off
	program    string // OpenSSH's client; "" = none
	environ    []string
	state      state // remembers answers
}

// resolve gives the settings of a host: what `ssh -G` says where OpenSSH is
// installed, else what its configuration files say.
func resolve(ctx context.Context, r request) (Settings, error) {
	s := Settings{Alias: r.host, User: r.user, Agent: r.agent}
	if strings.HasPrefix(r.host, "-") || strings.ContainsAny(r.host, "\x00\n") || r.host == "" {
		return s, fault.New(fault.Usage, "connect", r.host, "%q is no name of a host", r.host)
	}
	var c userConfig
	var err error
	if r.program != "" {
		c, err = askOpenSSH(ctx, r)
		s.Source = "ssh -G"
	} else {
		c, s.Source, err = readConfig(r)
	}
	if err != nil {
		return s, err
	}
	if err := s.apply(c, r.home); err != nil {
		return s, err
	}
	if r.user != "" {
		s.User = r.user
	}
	if s.User == "" {
		if u, err := user.Current(); err == nil {
			s.User = u.Username
		}
	}
	if r.port != 0 {
		s.Port = r.port
	}
	return s, nil
}

// readKeywords are the keywords that the fallback looks up, with OpenSSH's
// defaults.
func readKeywords() map[string]string {
	return map[string]string{
		"HostName": "", "User": "", "Port": "", "IdentitiesOnly": "", "IdentityAgent": "", "ProxyJump": "",
		"ProxyCommand": "", "UserKnownHostsFile": "~/.ssh/known_hosts ~/.ssh/known_hosts2",
		"GlobalKnownHostsFile":  "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2",
		"StrictHostKeyChecking": "", "HostKeyAlias": "", "ServerAliveInterval": "", "ConnectTimeout": "",
		"Ciphers": "", "MACs": "", "KexAlgorithms": "", "HostKeyAlgorithms": "",
	}
}

// readConfig reads the configuration files themselves. It has no Match exec.
func readConfig(r request) (userConfig, string, error) {
	files := []string{filepath.Join(r.home, ".ssh/config"), "/etc/ssh/ssh_config"}
	if r.configFile != "" {
		files = []string{r.configFile}
	}
	c, source := userConfig{}, "no configuration"
	for _, file := range files {
		cfg, err := decodeConfig(file)
		if errors.Is(err, fs.ErrNotExist) && r.configFile == "" {
			continue
		}
		if err != nil {
			return nil, "", fault.Wrap(err, fault.ProfileInvalid, "connect", r.host, "the SSH configuration %s cannot be read: %v", file, err)
		}
		source = file
		if err := c.take(cfg, r.host); err != nil {
			return nil, "", fault.Wrap(err, fault.ProfileInvalid, "connect", r.host, "the SSH configuration %s: %v", file, err)
		}
	}
	for key, value := range readKeywords() {
		if k := strings.ToLower(key); value != "" && len(c[k]) == 0 {
			c[k] = []string{value}
		}
	}
	if len(c["identityfile"]) == 0 {
		for _, name := range []string{"id_rsa", "id_ecdsa", "id_ed25519"} {
			c["identityfile"] = append(c["identityfile"], "~/.ssh/"+name)
		}
	}
	return c, source, nil
}

func decodeConfig(file string) (*ssh_config.Config, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ssh_config.Decode(f)
}

// take adds what cfg says of host; the first value of a keyword stands.
func (c userConfig) take(cfg *ssh_config.Config, host string) error {
	for key := range readKeywords() {
		k := strings.ToLower(key)
		value, err := cfg.Get(host, key)
		if err != nil {
			return err
		}
		if value != "" && len(c[k]) == 0 {
			c[k] = []string{value}
		}
	}
	for _, key := range []string{"IdentityFile", "CertificateFile"} {
		values, err := cfg.GetAll(host, key)
		if err != nil {
			return err
		}
		k := strings.ToLower(key)
		c[k] = append(c[k], values...)
	}
	return nil
}
