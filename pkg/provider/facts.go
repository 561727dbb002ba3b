package provider

import (
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// Facts are the typed statements about a world that the contracts know
// (plugins.md 33). One that is left out is false.
type Facts struct {
	FollowsDangling bool     `json:"followsDangling,omitempty"`
	WeakVersions    bool     `json:"weakVersions,omitempty"`
	IgnoresModes    bool     `json:"ignoresModes,omitempty"`
	StagesApart     bool     `json:"stagesApart,omitempty"`
	LosesOwner      bool     `json:"losesOwner,omitempty"`
	TextNames       bool     `json:"textNames,omitempty"`
	StartFaults     bool     `json:"startFaults,omitempty"`
	Signals         bool     `json:"signals,omitempty"`
	Pauses          bool     `json:"pauses,omitempty"`
	Terminals       bool     `json:"terminals,omitempty"`
	InputWait       bool     `json:"inputWait,omitempty"`
	ReservedEnv     []string `json:"reservedEnv,omitempty"`
}

func (f *Facts) addFiles(x remotefs.Facts) {
	f.FollowsDangling, f.WeakVersions, f.IgnoresModes = x.FollowsDangling, x.WeakVersions, x.IgnoresModes
	f.StagesApart, f.LosesOwner, f.TextNames = x.StagesApart, x.LosesOwner, x.TextNames
}

func (f *Facts) addProcesses(x remoteexec.Facts) {
	f.StartFaults, f.Signals, f.Pauses = x.StartFaults, x.Signals, x.Pauses
	f.Terminals, f.InputWait, f.ReservedEnv = x.Terminals, x.InputWait, x.ReservedEnv
}

// files gives the facts of the file half of a world with this directory.
func (f Facts) files(name, cwd string) remotefs.Facts {
	return remotefs.Facts{
		Backend: name, Cwd: cwd, FollowsDangling: f.FollowsDangling, WeakVersions: f.WeakVersions,
		IgnoresModes: f.IgnoresModes, StagesApart: f.StagesApart, LosesOwner: f.LosesOwner, TextNames: f.TextNames,
	}
}

// processes gives the facts of the process half. Whatever the far world is,
// starts take round trips here, output waits for credit, and what was started
// ends with the connection.
func (f Facts) processes(name string) remoteexec.Facts {
	return remoteexec.Facts{
		Backend: name, Remote: true, StartFaults: f.StartFaults, Signals: f.Signals, Pauses: true,
		Terminals: f.Terminals, InputWait: f.InputWait, DiesWithOwner: true, ReservedEnv: f.ReservedEnv,
	}
}
