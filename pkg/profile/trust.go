package profile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
)

// Trust is a project file that the user trusts, with the content it had.
type Trust struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// Records of trust are files of their own in the state directory, named by the
// digest of the real path, so that no two commands write one file.
func (p Places) trustFile(real string) string {
	return filepath.Join(p.State, "trust", digestOf([]byte(real))+".json")
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Trusts reports whether the user trusts this content at this path.
func (p Places) Trusts(path string, content []byte) bool {
	real := physical(path)
	t, err := readTrust(p.trustFile(real))
	return p.State != "" && err == nil && t.Path == real && t.SHA256 == digestOf(content)
}

func readTrust(record string) (Trust, error) {
	var t Trust
	content, _, err := readBounded(record, 64<<10, false)
	if err == nil {
		err = json.Unmarshal(content, &t)
	}
	return t, err
}

// Trust records that the user trusts the project file as it is now.
func (p Places) Trust(path string) (Trust, error) {
	if p.State == "" {
		return Trust{}, noState("trust", path)
	}
	content, _, err := readBounded(path, maxDocumentBytes, false)
	if err != nil {
		return Trust{}, unreadable(err, "trust", path)
	}
	t := Trust{Path: physical(path), SHA256: digestOf(content)}
	record, err := json.Marshal(t)
	if err == nil {
		err = writePrivate(p.trustFile(t.Path), append(record, '\n'))
	}
	if err != nil {
		return t, fault.Wrap(err, fault.FSIOError, "trust", path, "cannot record trust in %s: %s", p.Shorten(p.State), reasonOf(err))
	}
	return t, nil
}

func noState(op, path string) error {
	return fault.New(fault.FSIOError, op, path, "there is no state directory to keep trust in").WithHint("set AFIELD_STATE_DIR")
}

func unreadable(err error, op, path string) error {
	code := fault.ProfileInvalid
	if errors.Is(err, fs.ErrNotExist) {
		code = fault.ProfileNotFound
	}
	return fault.Wrap(err, code, op, path, "cannot read %s: %s", path, reasonOf(err))
}

// Untrust forgets a project file; false: it was not trusted.
func (p Places) Untrust(path string) (bool, error) {
	if p.State == "" {
		return false, nil
	}
	err := os.Remove(p.trustFile(physical(path)))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fault.Wrap(err, fault.FSIOError, "untrust", path, "cannot forget %s: %s", path, reasonOf(err))
	}
	return true, nil
}

// Trusted lists what the user trusts, in byte order of the paths.
func (p Places) Trusted() []Trust {
	records, _ := filepath.Glob(filepath.Join(escapeGlob(p.State), "trust", "*.json"))
	list := []Trust{}
	for _, record := range records {
		if t, err := readTrust(record); err == nil && p.State != "" {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b Trust) int { return strings.Compare(a.Path, b.Path) })
	return list
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// writePrivate publishes content at path in one step, readable for the owner
// only.
func writePrivate(path string, content []byte) error {
	return publish(path, content, 0o600, 0o700)
}
