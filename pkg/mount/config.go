package mount

import (
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/mount/ledger"
)

// None stands for a limit that is not set.
const None = -1

// Config are the settings of the profile block "mount:" (mount.md 2).
type Config struct {
	Enabled             bool
	Capacity            int           // drafts kept beyond those of mounted files
	TTL                 time.Duration // how long an unchanged stat is believed
	MaxPinnedFiles      int           // mounted files whose drafts are kept
	MinSavedTokens      int
	MaxFingerprintBytes int64
	MaxManagedBytes     int64
	ExcludeGlobs        []string
	StatsFile           string // "" = none
	FreshnessEnabled    bool
	FreshnessThreshold  float64
	SafeRatio           float64
	SafeTokens          int64 // None = by SafeRatio
	PinAfter            int
	ContextWindow       int64
	ResendBudget        int64  // None = no limit
	Session             string // "" = none
	ValveReads          int
}

// DefaultConfig are the settings of an empty block.
func DefaultConfig() Config {
	return Config{
		Enabled: true, Capacity: 32, TTL: 5 * time.Minute, MaxPinnedFiles: 256, MinSavedTokens: 16,
		MaxFingerprintBytes: 1_000_000, MaxManagedBytes: 16 << 20, FreshnessEnabled: true,
		FreshnessThreshold: 0.6, SafeRatio: 0.95, SafeTokens: None, PinAfter: 1,
		ContextWindow: 128_000, ResendBudget: None, ValveReads: 2,
	}
}

// Check reports the first value outside its bounds.
func (c Config) Check() error {
	for _, b := range []struct {
		key        string
		value, min int64
	}{
		{"capacity", int64(c.Capacity), 1}, {"ttlMs", c.TTL.Milliseconds(), 1000},
		{"maxPinnedFiles", int64(c.MaxPinnedFiles), 1}, {"minSavedTokens", int64(c.MinSavedTokens), 0},
		{"maxFingerprintBytes", c.MaxFingerprintBytes, 1}, {"maxManagedBytes", c.MaxManagedBytes, 1},
		{"safeTokens", c.SafeTokens, None}, {"pinAfter", int64(c.PinAfter), 0},
		{"contextWindow", c.ContextWindow, 1}, {"resendBudget", c.ResendBudget, None},
		{"valveReads", int64(c.ValveReads), 0},
	} {
		if b.value < b.min {
			return invalid("mount.%s must be at least %d, not %d", b.key, max(b.min, 0), b.value)
		}
	}
	for key, ratio := range map[string]float64{"freshnessThreshold": c.FreshnessThreshold, "safeRatio": c.SafeRatio} {
		if !(ratio >= 0 && ratio <= 1) {
			return invalid("mount.%s must be between 0 and 1, not %g", key, ratio)
		}
	}
	if c.Session != "" {
		return ledger.CheckID(c.Session)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fault.New(fault.ProfileInvalid, "mount", "", format, args...)
}
