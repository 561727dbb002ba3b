package e2b

import (
	"context"
	"strconv"
	"time"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

// leaseLauncher becomes the program and leaves a guard beside it, which is the
// script in $0. The guard has a session of its own, so that it is no member of
// the tree, and no parent that could meet it by waiting.
const leaseLauncher = `(setsid /bin/sh -c "$0" sh "$$" "$1" "$2" "$3" "$4" </dev/null >/dev/null 2>&1 &)
shift 4
exec "$@"
`

// leaseGuard ends the tree of $1 when the file $2 has not changed for $3
// hundredths of a second: TERM, $4 hundredths of grace, KILL. It looks every $5
// seconds, and ends with the tree.
const leaseGuard = treeLibrary + `
cd /
file=$2
trap 'rm -f -- "$file"' EXIT
now
seen=$u last=
until empty; do
  beat=$(cat -- "$file" 2>/dev/null)
  now
  [ "$beat" = "$last" ] || last=$beat seen=$u
  if [ $((u-seen)) -ge "$3" ]; then
    for s in TERM CONT; do send "$s"; done
    until_gone "$4"
    until_gone 100 KILL
    exit 0
  fi
  sleep "$5" 2>/dev/null || sleep 1
done
`

// Beats within a lease, and looks of the guard.
const (
	beatsPerLease = 3
	looksPerLease = 4
	longestLook   = 5 * time.Second
)

// lease keeps a program alive for as long as we are there: a small file in the
// sandbox is written again and again, and the guard beside the program looks at
// it. It costs no request at the start and one each third of its length.
type lease struct {
	runner *Runner
	file   string
	length time.Duration
	cancel context.CancelFunc
	ended  chan struct{}
}

// leased gives the words that start a program with a guard, and its lease; the
// words as they are and nil where none is asked for. The sandbox is prepared.
func (r *Runner) leased(spec remoteexec.StartSpec, words []string) ([]string, *lease) {
	if spec.Lease == 0 {
		return words, nil
	}
	l := &lease{runner: r, file: r.session.root() + "/run/" + token(), length: spec.Lease, ended: make(chan struct{})}
	look := strconv.FormatFloat(min(l.length/looksPerLease, longestLook).Seconds(), 'f', 3, 64)
	return append([]string{"/bin/sh", "-c", leaseLauncher, leaseGuard, l.file, centi(l.length), centi(spec.Grace), look}, words...), l
}

// begin lets the file change from now on.
func (l *lease) begin() {
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(context.Background())
	go l.beat(ctx)
}

func (l *lease) beat(ctx context.Context) {
	defer close(l.ended)
	tick := time.NewTicker(l.length / beatsPerLease)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			if n > 0 {
				l.runner.dropFile(l.file)
			}
			return
		case <-tick.C:
		}
		if err := l.runner.session.put(ctx, l.file, strconv.AppendInt(nil, int64(n), 10)); err != nil && ctx.Err() == nil {
			l.runner.session.log.Warn("the lease of a program was not renewed", "reason", innermost(err))
		}
	}
}

// end lets the file be, and removes it. It may be called without a lease.
func (l *lease) end() {
	if l == nil {
		return
	}
	l.cancel()
	<-l.ended
}
