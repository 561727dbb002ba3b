package mount

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/mount/ledger"
)

// Stats are the cross-session totals of the statistics file (mount.md 15), all
// nil without a configured file.
type Stats struct {
	Sessions    *int64 `json:"sessions"`
	SavedTokens *int64 `json:"savedTokens"`
	SpentTokens *int64 `json:"spentTokens"`
	NetTokens   *int64 `json:"netTokens"`
}

// StatsDelta is what one event adds.
type StatsDelta struct {
	Sessions int64
	ledger.Totals
}

// statsFile is the file's content; the names are shared with other programs.
type statsFile struct {
	Sessions    int64 `json:"sessions"`
	SavedTokens int64 `json:"savedTokens"`
	SpentTokens int64 `json:"spentTokens"`
}

// ReadStats reads the statistics file; "" means that none is configured. A
// missing or broken file counts as zeros.
func ReadStats(path string) Stats {
	if path == "" {
		return Stats{}
	}
	f := readStatsFile(path)
	net := max(0, f.SavedTokens-f.SpentTokens)
	return Stats{&f.Sessions, &f.SavedTokens, &f.SpentTokens, &net}
}

// AddStats adds d under a lock of the file's own.
func AddStats(ctx context.Context, path string, d StatsDelta) error {
	unlock, err := ledger.LockFile(ctx, path+".lock", 5*time.Second)
	if err != nil {
		return err
	}
	defer unlock()
	f := readStatsFile(path)
	sum := ledger.Totals{Saved: f.SavedTokens, Overhead: f.SpentTokens}
	sum.Add(d.Totals)
	f = statsFile{f.Sessions + d.Sessions, sum.Saved, sum.Overhead}
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return ledger.Replace(path, data)
}

func readStatsFile(path string) statsFile {
	var members map[string]json.RawMessage
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &members) != nil {
		return statsFile{}
	}
	return statsFile{number(members["sessions"]), number(members["savedTokens"]), number(members["spentTokens"])}
}

// number gives the value of a JSON number, 0 for anything else.
func number(raw json.RawMessage) int64 {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != f || f < 0 {
		return 0
	}
	return int64(min(f, 1<<53-1))
}

// CheckStatsFile reports a profile error for a path that is not absolute.
func CheckStatsFile(path string) error {
	if path != "" && !filepath.IsAbs(path) {
		return fault.New(fault.ProfileInvalid, "mount", path, "mount.statsFile must be an absolute path, not %q", path)
	}
	return nil
}
