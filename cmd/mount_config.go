package cmd

import (
	"github.com/afield-dev/afield/pkg/mount"
	"github.com/afield-dev/afield/pkg/profile"
)

// mountConfig gives the block "mount:" of the profile.
func (a *app) mountConfig() (mount.Config, error) {
	p, err := a.loadProfile()
	if err != nil {
		return mount.Config{}, err
	}
	c := newMountConfig(p.MountBlock)
	return c, firstOf(c.Check(), mount.CheckStatsFile(c.StatsFile))
}

func newMountConfig(m profile.Mount) mount.Config {
	c := mount.Config{
		Enabled: m.Enabled, Capacity: int(m.Capacity), TTL: m.TTL, MaxPinnedFiles: int(m.MaxPinnedFiles),
		MinSavedTokens: int(m.MinSavedTokens), MaxFingerprintBytes: m.MaxFingerprintBytes,
		MaxManagedBytes: m.MaxManagedBytes, ExcludeGlobs: m.ExcludeGlobs, StatsFile: m.StatsFile,
		FreshnessEnabled: m.FreshnessEnabled, FreshnessThreshold: m.FreshnessThreshold,
		SafeRatio: m.SafeRatio, SafeTokens: mount.None, PinAfter: int(m.PinAfter),
		ContextWindow: m.ContextWindow, ResendBudget: mount.None, Session: m.Session, ValveReads: int(m.ValveReads),
	}
	if m.SafeTokens != nil {
		c.SafeTokens = *m.SafeTokens
	}
	if m.ResendBudget != nil {
		c.ResendBudget = *m.ResendBudget
	}
	return c
}
