package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
)

// Template gives a profile for a provider to begin with: required keys open,
// all others as comments with what they mean.
func Template(p backend.Provider) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# What the keys mean: afield profile show; what is wrong: afield profile validate.\nversion: 1\ndescription: \"\"\nbackend: %s\n", p.Name)
	config, commented := "config:\n", true
	for _, f := range p.Config {
		line := "  " + scalarText(f.Key, false) + ": " + templateValue(f)
		if f.Required {
			commented = false
		} else {
			line = "  #" + line[1:]
		}
		config += line + "  # " + comment(f.Doc) + "\n"
	}
	if len(p.Config) > 0 && commented {
		config = "# " + config
	}
	if len(p.Config) > 0 {
		b.WriteString(config)
	}
	return []byte(b.String())
}

// templateValue gives what a template shows as the value of a key.
func templateValue(f backend.Field) string {
	switch {
	case f.Secret && f.Default == nil:
		return "${NAME}"
	case f.Default != nil:
		return flowText(newValue(f.Default, Origin{}))
	case len(f.Enum) > 0:
		return scalarText(f.Enum[0], false)
	}
	switch f.Kind {
	case backend.KindInt, backend.KindNumber:
		return formatNumber(max(f.Min, 1))
	case backend.KindBool:
		return "false"
	case backend.KindList:
		return "[]"
	case backend.KindMap:
		return "{}"
	default:
		return `""`
	}
}

// Init writes the user's file of a new profile. A file that is there stays:
// PROFILE_EXISTS.
func (p Places) Init(name string, content []byte) (string, error) {
	if !ValidName(name) {
		return "", fault.New(fault.ProfileInvalid, "init", "", "the name of the profile is not accepted").WithHint("%s", nameRule)
	}
	if p.Config == "" {
		return "", noConfig("init")
	}
	path := p.UserFile(name)
	err := publishNew(path, content)
	switch {
	case errors.Is(err, fs.ErrExist):
		return "", fault.Wrap(err, fault.ProfileExists, "init", path, "the profile %s is there already: %s", name, p.Shorten(path))
	case err != nil:
		return "", fault.Wrap(err, fault.FSIOError, "init", path, "cannot write %s: %s", p.Shorten(path), reasonOf(err))
	}
	return path, nil
}

func noConfig(op string) error {
	return fault.New(fault.FSIOError, op, "", "there is no configuration directory").WithHint("set AFIELD_CONFIG_DIR")
}

// ReadFile gives the content of the highest file that makes a profile: the
// user's, else the system's.
func (p Places) ReadFile(name string) ([]byte, error) {
	if !ValidName(name) {
		return nil, fault.New(fault.ProfileInvalid, "init", "", "the name of the profile is not accepted").WithHint("%s", nameRule)
	}
	for _, dir := range []string{p.Config, p.System} {
		if dir == "" {
			continue
		}
		content, _, err := readBounded(file(dir, name), maxDocumentBytes, false)
		if !errors.Is(err, fs.ErrNotExist) {
			if err != nil {
				return nil, unreadable(err, "init", file(dir, name))
			}
			return content, nil
		}
	}
	return nil, fault.New(fault.ProfileNotFound, "init", "", "the profile %s has no file", name).
		WithHint("profiles are %s", strings.Join(p.Names(), ", "))
}

// publishNew writes content beside path and links it there, which never
// replaces what has the name.
func publishNew(path string, content []byte) error {
	temp, err := stage(path, content, 0o644, 0o755)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	return os.Link(temp, path)
}

// stage writes content into a new file beside path and flushes it.
func stage(path string, content []byte, mode, dirMode fs.FileMode) (string, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, ".afield-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// publish writes content beside path and renames it there in one step.
func publish(path string, content []byte, mode, dirMode fs.FileMode) error {
	temp, err := stage(path, content, mode, dirMode)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		os.Remove(temp)
		return err
	}
	return nil
}
