package ssh

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// answer is what `ssh -G` said, and of which configuration.
type answer struct {
	Digest string     `json:"digest"`
	Config userConfig `json:"config"`
}

const answerKind = "config"

// askOpenSSH gives what `ssh -G` says, which evaluates the whole of the
// configuration. An answer is remembered as long as the files of the configuration
// hold the same, if it depends on nothing else.
func askOpenSSH(ctx context.Context, r request) (userConfig, error) {
	digest, stable := r.digest()
	key := strings.Join(r.arguments(), "\x00") + "\x00" + r.home
	var kept answer
	if stable && r.state.load(answerKind, key, &kept) && kept.Digest == digest && kept.Config.first("hostname") != "" {
		return kept.Config, nil
	}
	c, err := runOpenSSH(ctx, r)
	if err == nil && stable {
		r.state.save(answerKind, key, answer{digest, c})
	}
	return c, err
}

// arguments are those of `ssh -G`.
func (r request) arguments() []string {
	args := []string{"-G"}
	if r.configFile != "" {
		args = append(args, "-F", r.configFile)
	}
	if r.user != "" {
		args = append(args, "-l", r.user)
	}
	if r.port != 0 {
		args = append(args, "-p", strconv.Itoa(r.port))
	}
	return append(args, "--", r.host)
}

func runOpenSSH(ctx context.Context, r request) (userConfig, error) {
	cmd := exec.CommandContext(ctx, r.program, r.arguments()...)
	cmd.Env, cmd.Dir = r.environ, r.dir
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		if ctx.Err() != nil {
			return nil, fault.Aborted(ctx, fault.FSAborted, "connect to "+r.host, "")
		}
		return nil, fault.Wrap(err, fault.ProfileInvalid, "connect", r.host, "the SSH configuration for %s cannot be read: %s",
			r.host, firstLine(stderr.String(), err)).WithHint("run: ssh -G %s", r.host)
	}
	c := userConfig{}
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		c[key] = append(c[key], value)
	}
	return c, nil
}

func firstLine(text string, err error) string {
	if line, _, _ := strings.Cut(strings.TrimSpace(text), "\n"); line != "" {
		return strings.TrimSpace(line)
	}
	return err.Error()
}

// digest sums what an answer depends on: the program, who asks, and the text of
// all configuration files. It is not stable where the configuration itself runs
// programs or looks at the network or the environment.
func (r request) digest() (sum string, stable bool) {
	me, err := user.LookupId(strconv.Itoa(os.Getuid())) // OpenSSH does not look at HOME
	if err != nil {
		return "", false
	}
	d := digester{Hash: sha256.New(), home: me.HomeDir, stable: true}
	if fi, err := os.Stat(r.program); err == nil {
		fmt.Fprintln(d, r.program, fi.Size(), fi.ModTime().UnixNano(), me.Uid)
	}
	own := filepath.Join(me.HomeDir, ".ssh")
	if r.configFile != "" {
		d.file(r.configFile, own, 0)
	} else {
		d.file(filepath.Join(own, "config"), own, 0)
		d.file("/etc/ssh/ssh_config", "/etc/ssh", 0)
	}
	return hex.EncodeToString(d.Sum(nil)), d.stable
}

// digester walks over configuration files as OpenSSH does.
type digester struct {
	hash.Hash
	home   string
	stable bool
}

// maxIncludes is OpenSSH's own bound of nesting.
const maxIncludes = 16

// file adds a file and those that it includes; dir is where relative ones are.
func (d *digester) file(name, dir string, depth int) {
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || depth > maxIncludes {
		d.stable = false
		return
	}
	fmt.Fprintf(d, "%s %d %v\n", name, len(text), err == nil)
	d.Write(text)
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(strings.ReplaceAll(line, "=", " "))
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		switch strings.ToLower(words[0]) {
		case "include":
			d.include(words[1:], dir, depth)
		case "match":
			d.stable = d.stable && staticMatch(words[1:])
		case "canonicalizehostname":
			d.stable = d.stable && len(words) > 1 && strings.EqualFold(words[1], "no")
		}
		d.stable = d.stable && !strings.Contains(line, "${")
	}
}

// staticMatch reports whether the criteria depend on nothing but the arguments.
func staticMatch(words []string) bool {
	for _, w := range words {
		switch strings.ToLower(strings.TrimPrefix(w, "!")) {
		case "exec", "localnetwork", "canonical", "final", "tagged", "version", "sessiontype", "command":
			return false
		}
	}
	return true
}

// include adds the files of an Include line. What needs more than a home and
// wildcards is not followed.
func (d *digester) include(patterns []string, dir string, depth int) {
	for _, p := range patterns {
		p = strings.Trim(p, `"`)
		if rest, ok := strings.CutPrefix(p, "~/"); ok {
			p = filepath.Join(d.home, rest)
		}
		if strings.ContainsAny(p, `~%\"`) {
			d.stable = false
			return
		}
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, p)
		}
		names, err := filepath.Glob(p)
		if err != nil {
			d.stable = false
			return
		}
		fmt.Fprintln(d, p, names)
		for _, name := range names {
			d.file(name, dir, depth+1)
		}
	}
}
