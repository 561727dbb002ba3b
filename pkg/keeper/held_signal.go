package keeper

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// signalJob sends a signal to the process group of a job. Worlds have no such
// operation, so the world's own kill does it; its status is the proof.
func (h *held) signalJob(ctx context.Context, name string) (any, error) {
	word, ok := strings.CutPrefix(name, "SIG")
	if !ok || word == "" || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-") != "" {
		return nil, fault.New(fault.ExecInvalidSpec, "signal", h.id, "%q is no name of a signal such as SIGTERM", name)
	}
	pid := h.job.PID()
	if h.ended() || pid <= 1 {
		return nil, fault.New(fault.ExecNoForeground, "signal", h.id, "the program of %s has ended", h.id)
	}
	kill, err := h.lease.world.Processes().Spawn(ctx, remoteexec.Spec{
		Argv: []string{"sh", "-c", `kill -s "$1" -- "-$2"`, "sh", word, strconv.Itoa(pid)}, Cwd: "/",
		Stdout: remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 1024},
		Stderr: remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 1024}, Grace: time.Second,
	})
	if err != nil {
		return nil, err
	}
	report, err := kill.Wait(ctx)
	if err != nil {
		return nil, err
	}
	if report.Outcome != (remoteexec.Outcome{}) {
		said, _ := kill.Collected(remoteexec.Stderr).ReadText(0)
		return nil, fault.New(fault.ExecSignalNotDelivered, "signal", h.id, "%s was not delivered to %s: %s", name, h.id, strings.TrimSpace(said.Text))
	}
	return groupResult{ProcessGroupID: pid}, nil
}
