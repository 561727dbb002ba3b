package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/afield-dev/afield/pkg/fault"
)

// seen are the digests of all sources and versions that this user has ever
// installed: what comes again under the same name must be the same.
type seen map[string]string

func (h *Host) seenPath() string { return filepath.Join(h.Places.State, "seen.json") }

// checkSeen holds digests against those that were seen before, and records what
// is new unless record is false. With accept, what differs takes the old one's
// place.
func (h *Host) checkSeen(ctx context.Context, digests map[string]string, accept, record bool) error {
	path := h.seenPath()
	if record {
		if err := os.MkdirAll(h.Places.State, 0o700); err != nil {
			return ioFault(err, "write", path)
		}
		lock, err := hold(ctx, path+".lock", false)
		if err != nil {
			return err
		}
		defer lock.release()
	}
	known, err := readSeen(path)
	if err != nil {
		return err
	}
	changed := false
	for _, key := range sortedKeys(digests) {
		switch old, ok := known[key]; {
		case ok && old == digests[key]:
			continue
		case ok && !accept:
			return fault.New(fault.PluginIntegrity, "add", key, "%s was %s when it was first seen and is %s now", quotePath(key), old, digests[key]).
				WithHint("find out why it changed; --accept-changed records the new one")
		}
		known[key], changed = digests[key], true
	}
	if !changed || !record {
		return nil
	}
	content, err := json.MarshalIndent(known, "", " ")
	if err != nil {
		return err
	}
	return replaceFile(path, append(content, '\n'), 0o600, nil)
}

func readSeen(path string) (seen, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return seen{}, nil
	}
	if err != nil {
		return nil, ioFault(err, "read", path)
	}
	known := seen{}
	if err := json.Unmarshal(content, &known); err != nil {
		return nil, fault.Wrap(err, fault.PluginIO, "read", path, "%s cannot be understood: %s", path, err).
			WithHint("restore it; without it, changed plugins are not noticed")
	}
	return known, nil
}
