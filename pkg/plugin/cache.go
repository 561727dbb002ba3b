package plugin

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// cachePath is where the cache has an archive, by its sha512 digest.
func (h *Host) cachePath(digest string) (string, error) {
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(digest, "sha512-"))
	if err != nil || !isIntegrity(digest) || h.Places.Cache == "" {
		return "", errors.New("not in the cache")
	}
	return filepath.Join(h.Places.Cache, "archives", hex.EncodeToString(sum)+".tgz"), nil
}

// cached opens an archive of the cache. Its bytes are hashed like any others.
func (h *Host) cached(digest string) (*os.File, error) {
	path, err := h.cachePath(digest)
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// cachedFrom gives the address from which an archive of the cache came.
func (h *Host) cachedFrom(digest string) string {
	path, err := h.cachePath(digest)
	if err != nil {
		return ""
	}
	from, _ := os.ReadFile(path + ".from")
	return string(from)
}

// keep puts an archive that was fetched and checked into the cache. A cache
// that cannot be written is none.
func (h *Host) keep(staged *os.File, digest, from string) {
	path, err := h.cachePath(digest)
	if err != nil || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	replaceFile(path+".from", []byte(from), 0o600, nil)
	if err := os.Link(staged.Name(), path); err == nil || errors.Is(err, os.ErrExist) {
		return
	}
	copied, err := os.CreateTemp(filepath.Dir(path), ".afield-*")
	if err != nil {
		return
	}
	defer os.Remove(copied.Name())
	_, err = io.Copy(copied, io.NewSectionReader(staged, 0, 1<<62))
	if errors.Join(err, copied.Close()) == nil {
		os.Rename(copied.Name(), path)
	}
}
