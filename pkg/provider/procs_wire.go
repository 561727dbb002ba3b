package provider

import (
	"encoding/json"
	"sort"
	"time"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

// rawPair is one environment entry; names and values may hold any byte.
type rawPair [2]Raw

// The parameters, events and results of the process methods (plugins.md 35).
type (
	envParams struct {
		Env    []rawPair `json:"env,omitempty"`
		Remove []Raw     `json:"remove,omitempty"`
	}
	whichParams struct {
		World   string `json:"world"`
		Command Raw    `json:"command"`
		envParams
	}
	whichResult struct {
		Path Raw `json:"path"`
	}
	exitFacts struct {
		ExitCode *int    `json:"exitCode"`
		Signal   *string `json:"signal"`
	}
	spawnResult struct {
		exitFacts
		Quiescent  bool     `json:"quiescent"`
		Survivors  []int    `json:"survivors"`
		EnvDropped []string `json:"envDropped"`
	}
	// ofParams are those of calls about a started program: of is the number of
	// the stream that started it.
	ofParams struct {
		Of        uint32 `json:"of"`
		TimeoutMs int64  `json:"timeoutMs,omitempty"`
		Rows      int    `json:"rows,omitempty"`
		Cols      int    `json:"cols,omitempty"`
		Signal    string `json:"signal,omitempty"`
	}
	waitResult struct {
		Exited    bool  `json:"exited"`
		Survivors []int `json:"survivors,omitempty"`
	}
	groupResult struct {
		ProcessGroupID int  `json:"processGroupId"`
		InputWaiting   bool `json:"inputWaiting,omitempty"`
	}
)

// StartParams are the parameters of exec.spawn and term.open.
type StartParams struct {
	World string `json:"world"`
	Argv  []Raw  `json:"argv"`
	Cwd   Raw    `json:"cwd"`
	envParams
	// Stdin is "ignore" or "pipe"; Stdout and Stderr are "pipe" or "discard".
	Stdin        string `json:"stdin"`
	Stdout       string `json:"stdout"`
	Stderr       string `json:"stderr"`
	GraceMs      int64  `json:"graceMs"`
	AllowEnvDrop bool   `json:"allowEnvDrop,omitempty"`
	Rows         int    `json:"rows,omitempty"`
	Cols         int    `json:"cols,omitempty"`
	// Hold asks the keeper to keep the program when the call has ended
	// (plugins.md 38 b); others have no such thing.
	Hold json.RawMessage `json:"hold,omitempty"`
}

// SpawnParams gives the wire form of a request to start a program.
func SpawnParams(world string, spec remoteexec.Spec) StartParams {
	p := StartParams{
		World: world, Argv: raws(spec.Argv), Cwd: Raw(spec.Cwd), Stdin: "ignore", Stdout: "pipe", Stderr: "pipe",
		envParams: encodeEnv(spec.Env), GraceMs: millis(spec.Grace), AllowEnvDrop: spec.AllowEnvDrop,
	}
	if spec.Stdin != remoteexec.StdinIgnore {
		p.Stdin = "pipe"
	}
	return p
}

// TerminalParams gives the wire form of a request to start one on a terminal.
func TerminalParams(world string, spec remoteexec.TerminalSpec) StartParams {
	return StartParams{
		World: world, Argv: raws(spec.Argv), Cwd: Raw(spec.Cwd), envParams: encodeEnv(spec.Env),
		GraceMs: millis(spec.Grace), Rows: spec.Rows, Cols: spec.Cols,
	}
}

// Spec gives the request to start a program. Its outputs are piped unless the
// caller discards them.
func (p StartParams) Spec() remoteexec.Spec {
	spec := remoteexec.Spec{
		Argv: texts(p.Argv), Cwd: string(p.Cwd), Env: p.decode(), Grace: grace(p.GraceMs), AllowEnvDrop: p.AllowEnvDrop,
		Stdout: outputMode(p.Stdout), Stderr: outputMode(p.Stderr),
	}
	if p.Stdin == "pipe" {
		spec.Stdin = remoteexec.StdinPipe
	}
	return spec
}

// TerminalSpec gives the request to start one on a terminal.
func (p StartParams) TerminalSpec() remoteexec.TerminalSpec {
	return remoteexec.TerminalSpec{
		Argv: texts(p.Argv), Cwd: string(p.Cwd), Env: p.decode(), Rows: p.Rows, Cols: p.Cols, Grace: grace(p.GraceMs),
	}
}

func encodeEnv(e remoteexec.Env) envParams {
	var p envParams
	for k, v := range e.Set {
		p.Env = append(p.Env, rawPair{Raw(k), Raw(v)})
	}
	sort.Slice(p.Env, func(i, j int) bool { return p.Env[i][0] < p.Env[j][0] })
	p.Remove = raws(e.Remove)
	return p
}

func (p envParams) decode() remoteexec.Env {
	e := remoteexec.Env{Remove: texts(p.Remove)}
	if len(p.Env) > 0 {
		e.Set = make(map[string]string, len(p.Env))
	}
	for _, kv := range p.Env {
		e.Set[string(kv[0])] = string(kv[1])
	}
	return e
}

func raws(s []string) []Raw {
	out := make([]Raw, len(s))
	for i, x := range s {
		out[i] = Raw(x)
	}
	return out
}

func texts(r []Raw) []string {
	out := make([]string, len(r))
	for i, x := range r {
		out[i] = string(x)
	}
	return out
}

func encodeExit(o remoteexec.Outcome) exitFacts {
	if o.Signal != "" {
		return exitFacts{Signal: &o.Signal}
	}
	return exitFacts{ExitCode: &o.ExitCode}
}

// decode gives the outcome; ok is false unless exactly one fact is there.
func (e exitFacts) decode() (o remoteexec.Outcome, ok bool) {
	switch {
	case e.Signal != nil && e.ExitCode == nil:
		return remoteexec.Outcome{Signal: *e.Signal}, *e.Signal != ""
	case e.ExitCode != nil && e.Signal == nil:
		return remoteexec.Outcome{ExitCode: *e.ExitCode}, *e.ExitCode >= 0 && *e.ExitCode <= 255
	}
	return o, false
}

func millis(d time.Duration) int64 { return d.Milliseconds() }

// grace gives the duration of a count of milliseconds; the contract's bound is
// checked by the runtime.
func grace(ms int64) time.Duration {
	if ms < 0 || ms > remoteexec.MaxDelay.Milliseconds() {
		return -1
	}
	return time.Duration(ms) * time.Millisecond
}
