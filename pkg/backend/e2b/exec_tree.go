package e2b

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// hardKillTimeout bounds the last pass of a program that must end now.
const hardKillTimeout = 3 * time.Second

// minProof is how long at least killed processes are waited for.
const minProof = time.Second

// Statuses of the scripts, beside 0.
const (
	treeSurvives = 9
	treeWaits    = 8
)

// treeLibrary finds the live members of the tree of $1: the session and the
// group of that number, and the process itself, which joins them a moment after
// its start. "all" is the members, "rest" those outside the group, "group" is
// set if the group has members. Nothing is signalled that was not found.
//
// The name of a process may hold any character, so a record counts from its end
// and its id is taken from the path. A process that is forked while the records
// are read, by one that has ended when its turn comes, is in none of them:
// nothing is left only when two looks have found nothing (C189).
const treeLibrary = `
sid=$1
after='( -?[0-9]+){30,}$'
mine="\\) [^ZXx] [0-9]+ ($sid [0-9]+|[0-9]+ $sid)$after|^$sid [(].*\\) [^ZXx] .*$after"
scan() {
  all= rest= group=
  IFS='
'
  set -f
  set -- $(set +f; grep -aHE -e "$mine" /proc/[0-9]*/stat 2>/dev/null)
  set +f
  IFS=' '
  for l do
    p=${l#/proc/}
    p=${p%%/*}
    all="$all $p"
    set -- ${l##*) }
    if [ "$3" = "$sid" ]; then group=1; else rest="$rest $p"; fi
  done
}
empty() {
  scan
  [ -z "$all" ] || return
  scan
  [ -z "$all" ]
}
send() {
  [ -z "$group" ] || kill -s "$1" -- "-$sid" 2>/dev/null
  for p in $rest; do kill -s "$1" -- "$p" 2>/dev/null; done
}
now() { read -r u v </proc/uptime; u=${u%.*}${u#*.}; }
nap=0.01
nap() {
  sleep "$nap" 2>/dev/null || sleep 1
  case $nap in 0.01) nap=0.02 ;; 0.02) nap=0.04 ;; 0.04) nap=0.08 ;; *) nap=0.16 ;; esac
}
until_gone() {
  now
  stop=$((u+$1)) nap=0.01
  while ! empty; do
    [ -z "$2" ] || send "$2"
    now
    [ "$u" -lt "$stop" ] || return
    nap
  done
  exit 0
}
`

// endScript sends the signals $3, waits $2 hundredths of a second, kills, and
// waits $4 for the proof.
const endScript = treeLibrary + `
empty && exit 0
for s in $3; do send "$s"; done
until_gone "$2"
until_gone "$4" KILL
empty && exit 0
echo $all
exit 9
`

// waitScript waits until the tree is gone, at most $2 hundredths of a second.
const waitScript = treeLibrary + `
until_gone "$2"
exit 8
`

const membersScript = treeLibrary + `
empty || echo $all
`

// signalScript sends $2 to the tree.
const signalScript = treeLibrary + `
scan
send "$2"
exit 0
`

// tree is all that belongs to one started program.
type tree struct {
	session *session
	pid     int
}

func (r *Runner) tree(pid int) tree { return tree{r.session, pid} }

// run runs a script about the tree. An id of 1 or less is refused: it would
// address more than the program (TE-11).
func (t tree) run(ctx context.Context, script string, args ...string) (result, error) {
	if t.pid <= 1 {
		return result{}, fault.New(fault.ExecTransportCorrupt, "terminate", "", "%d is no process id that may be signalled", t.pid)
	}
	r, err := t.session.shell(ctx, script, append([]string{strconv.Itoa(t.pid)}, args...)...)
	if err != nil {
		return r, execError(t.session.diagnose(err))
	}
	if !r.end.Exited {
		return r, fault.New(fault.ExecTransportLost, "terminate", "", "the control program in the sandbox was ended: %s", r.end.Status)
	}
	return r, nil
}

// centi gives hundredths of a second, rounded up.
func centi(d time.Duration) string {
	return strconv.FormatInt(int64((d+10*time.Millisecond-1)/(10*time.Millisecond)), 10)
}

// end is TERM, grace, KILL, proof.
func (t tree) end(ctx context.Context, signals string, grace time.Duration) ([]int, error) {
	r, err := t.run(ctx, endScript, centi(grace), signals, centi(max(grace, minProof)))
	switch {
	case err != nil:
		return nil, err
	case r.end.ExitCode == 0:
		return nil, nil
	case r.end.ExitCode == treeSurvives:
		return pids(r.stdout), nil
	}
	return nil, failedScript(r)
}

// waitSlice is how long one request waits; a script that nobody waits for any
// more ends by itself after it.
const waitSlice = 20 * time.Second

// wait returns when nothing of the tree is left.
func (t tree) wait(ctx context.Context) error {
	for {
		r, err := t.run(ctx, waitScript, centi(waitSlice))
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case r.end.ExitCode == 0:
			return nil
		case r.end.ExitCode != treeWaits:
			return failedScript(r)
		}
	}
}

// members lists the live members.
func (t tree) members(ctx context.Context) ([]int, error) {
	r, err := t.run(ctx, membersScript)
	if err == nil && r.end.ExitCode != 0 {
		err = failedScript(r)
	}
	return pids(r.stdout), err
}

// held reports whether the tree has live members.
func (t tree) held() bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	members, err := t.quickMembers(ctx)
	return err == nil && len(members) > 0
}

// quickMembers is members for one of many programs that have ended: few such
// looks run at a time, since each reads the entries of all processes.
func (t tree) quickMembers(ctx context.Context) ([]int, error) {
	select {
	case t.session.looks <- struct{}{}:
		defer func() { <-t.session.looks }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return t.members(ctx)
}

// signal sends a signal, named without SIG, to all members.
func (t tree) signal(ctx context.Context, sig string) error {
	r, err := t.run(ctx, signalScript, sig)
	if err == nil && r.end.ExitCode != 0 {
		err = failedScript(r)
	}
	return err
}

// kill sends KILL and looks for no proof.
func (t tree) kill(ctx context.Context) { t.signal(ctx, "KILL") }

func failedScript(r result) error {
	return fault.New(fault.ExecSpawnFailed, "terminate", "", "the control program in the sandbox failed: %s", r.said())
}

func pids(out []byte) []int {
	var all []int
	for _, w := range strings.Fields(string(out)) {
		if n, err := strconv.Atoi(w); err == nil && n > 1 {
			all = append(all, n)
		}
	}
	return all
}

// signalGroup sends a signal to a process group; the status of kill proves the
// delivery (TT-20).
func (s *session) signalGroup(ctx context.Context, group int, sig string) error {
	if group <= 1 {
		return fault.New(fault.ExecNoForeground, "signal", "", "there is no foreground process group")
	}
	r, err := s.shell(ctx, `kill -s "$1" -- "-$2"`, strings.TrimPrefix(sig, "SIG"), strconv.Itoa(group))
	if err != nil {
		return execError(s.diagnose(err))
	}
	if !r.end.Exited || r.end.ExitCode != 0 {
		return fault.Wrap(errors.New(r.said()), fault.ExecSignalNotDelivered, "signal", "", "%s was not delivered to process group %d: %s", sig, group, r.said())
	}
	return nil
}
