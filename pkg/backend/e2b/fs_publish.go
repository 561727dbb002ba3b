package e2b

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// publishTimeout bounds the publishing step, which nothing else cancels.
const publishTimeout = 2 * time.Minute

// uploadMode is the mode that the file service gives to a new file.
const uploadMode = 0o644

// Ways to publish.
const (
	byLink    = "link"    // never replaces
	byRename  = "rename"  // replaces
	byWriting = "through" // writes through the file that is there
)

// Statuses of the script, beside 0.
const (
	publishStale     = 21 // the target is not what the guard says
	publishGone      = 22 // the guard's file is no longer there
	publishExists    = 23 // a regular file has the name
	publishIrregular = 24 // something else has the name
	publishParent    = 25 // the parent cannot be made or used
)

// publishScript publishes $1 as $2 in the way $3, with the mode $4 ("-" = as it
// is), if size and time of $2 are still $5 ("" = whatever they are). On another
// file system it copies to a private folder beside the target first. It prints
// mode, time, owner and group of what was published; a copy cannot carry the
// mark, which the last word says.
const publishScript = `
umask 022
s=$1 t=$2 how=$3 mode=$4 want=$5 copied=
p=${t%/*}; p=${p:-/}
odd() { [ -h "$t" ] || { [ -e "$t" ] && [ ! -f "$t" ]; }; }
[ -d "$p" ] || mkdir -p -- "$p" || exit 25
if [ "$how" != through ]; then
  [ "$mode" = - ] || chmod -- "$mode" "$s" || exit 1
  if [ "$(stat -c %d -- "$s")" != "$(stat -L -c %d -- "$p")" ]; then
    copied=$p/.afield-${s##*/}.tmp
    mkdir -m 700 -- "$copied" || exit 25
    cp -p -- "$s" "$copied/content" || { rm -rf -- "$copied"; exit 1; }
    rm -f -- "$s"
    s=$copied/content
  fi
fi
quit() { [ -z "$copied" ] || rm -rf -- "$copied"; exit "$1"; }
if [ -n "$want" ]; then
  [ -e "$t" ] || [ -h "$t" ] || quit 22
  odd && quit 24
  [ "$(stat -c '%s %y' -- "$t")" = "$want" ] || quit 21
fi
case $how in
link)
  facts=$(stat -c '%a|%y|%U|%u|%G|%g' -- "$s") || quit 1
  ln -T -- "$s" "$t" || { odd && quit 24; [ -e "$t" ] && quit 23; quit 1; }
  rm -f -- "$s" ;;
rename)
  facts=$(stat -c '%a|%y|%U|%u|%G|%g' -- "$s") || quit 1
  [ -d "$t" ] && [ ! -h "$t" ] && quit 24
  mv -fT -- "$s" "$t" || quit 1 ;;
through)
  cat -- "$s" > "$t" || quit 1
  [ "$mode" = - ] || chmod -- "$mode" "$t" || quit 1
  rm -f -- "$s"
  facts=$(stat -c '%a|%y|%U|%u|%G|%g' -- "$t") || quit 1 ;;
esac
[ -z "$copied" ] || rm -rf -- "$copied"
printf 'done|%s|%s|' "$facts" "${copied:+copied}"
`

// publish makes staged content visible under its key and gives its version. It
// takes no context: nothing may cancel it.
func (d *Driver) publish(l looked, st *staged, w remotefs.WriteSpec) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), publishTimeout)
	defer cancel()
	mode := modeOf(l.entry, w)
	how := byRename
	switch {
	case w.InPlace && l.entry != nil:
		how = byWriting
		mode = w.Mode
	case w.Intent == remotefs.IntentCreate:
		how = byLink
	case w.Intent == remotefs.IntentNone && mode == uploadMode:
		e, err := d.move(ctx, l.key, st)
		if err == nil {
			return version(l.key, e), nil
		}
		if !isInternal(err) {
			return d.uncertain(l, st, err)
		}
		// Another file system, or something in the way: the script tells.
	}
	args := []string{st.path, l.key, how, modeText(mode), ""}
	if w.Intent == remotefs.IntentReplace {
		args[4] = guardText(l.entry)
	}
	r, err := d.session.shell(ctx, publishScript, args...)
	if err != nil {
		return d.uncertain(l, st, err)
	}
	if !r.end.Exited || r.end.ExitCode != 0 {
		return "", refusedPublish(r, w)
	}
	return d.published(ctx, l, st, how, r)
}

// move renames by the file service: one request, and its answer is the version.
func (d *Driver) move(ctx context.Context, key string, st *staged) (*wire.EntryInfo, error) {
	var res wire.EntryResponse
	err := d.session.use(ctx, func(c *wire.Client) error {
		return c.Call(ctx, wire.MethodMove, wire.MoveRequest{Source: st.path, Destination: key}, &res)
	})
	return &res.Entry, err
}

// modeOf gives the mode of what is published.
func modeOf(prior *wire.EntryInfo, w remotefs.WriteSpec) int {
	switch {
	case w.Mode >= 0:
		return w.Mode
	case prior != nil:
		return int(prior.Mode & 0o777)
	case w.NewMode >= 0:
		return w.NewMode
	}
	return uploadMode
}

func modeText(mode int) string {
	if mode < 0 || mode == uploadMode {
		return "-"
	}
	return strconv.FormatInt(int64(mode), 8)
}

// guardText is size and time as the script prints them.
func guardText(e *wire.EntryInfo) string {
	return fmt.Sprintf("%d %s", e.Size, e.ModTime().UTC().Format(statTime))
}

// statTime is how stat prints a time in the zone of scripts.
const statTime = "2006-01-02 15:04:05.000000000 -0700"

// refusedPublish gives the error of a script that published nothing.
func refusedPublish(r result, w remotefs.WriteSpec) error {
	if !r.end.Exited {
		return fmt.Errorf("the publishing step was ended: %s", r.end.Status)
	}
	switch r.end.ExitCode {
	case publishStale:
		return &fault.Error{Code: fault.FSStaleVersion}
	case publishGone:
		return &fault.Error{Code: fault.FSStaleVersion, Err: fs.ErrNotExist}
	case publishExists:
		return &fault.Error{Code: fault.FSNotObserved}
	case publishIrregular:
		return &fault.Error{Code: fault.FSNotRegularFile}
	}
	if r.denied() {
		return &fault.Error{Code: fault.FSPermissionDenied, Err: errors.New(r.said())}
	}
	return errors.New(r.said())
}

// published gives the version of what the script has published, without a
// further look where the facts suffice.
func (d *Driver) published(ctx context.Context, l looked, st *staged, how string, r result) (string, error) {
	f := strings.Split(string(r.stdout), "|")
	if len(f) != 9 || f[0] != "done" {
		return "", fmt.Errorf("the publishing step gave an unknown answer")
	}
	e := &wire.EntryInfo{Type: wire.TypeFile, Size: wire.Int64(st.size), Owner: nameOr(f[3], f[4]), Group: nameOr(f[5], f[6])}
	mode, err := strconv.ParseUint(f[1], 8, 32)
	t, timeErr := time.Parse(statTime, f[2])
	if err != nil || timeErr != nil || f[7] != "" {
		now, err := d.entry(ctx, l.key)
		if err != nil || now == nil {
			return "", world(err, fault.FSIOError, "the file was published, but its version is not known").WithRetry(fault.RetryUnknown)
		}
		return version(l.key, now), nil
	}
	e.Mode = uint32(mode & 0o777)
	e.Permissions = specialText(mode)
	e.ModifiedTime = t.UTC().Format(time.RFC3339Nano)
	switch {
	case how == byWriting:
		e.Metadata = l.entry.Metadata
	case st.kept:
		e.Metadata = map[string]string{versionKey: st.mark}
	}
	return version(l.key, e), nil
}

// specialText puts set-uid, set-gid and sticky where the daemon writes them.
func specialText(mode uint64) string {
	text := ""
	for i, c := range "ugt" {
		if mode&(0o4000>>i) != 0 {
			text += string(c)
		}
	}
	return text + "---------"
}

// nameOr gives the name of an account, or its number where it has none.
func nameOr(name, id string) string {
	if name == "UNKNOWN" || name == "" {
		return id
	}
	return name
}

// answered reports whether err is an answer that refuses the call, so that
// nothing was done.
func answered(err error) bool {
	var e *wire.Error
	return errors.As(err, &e) && e.Status >= 400 && e.Status <= 500
}

// uncertain settles a publishing step whose answer did not arrive (S-13). What
// is staged is removed first: a step that has not happened then never will. A
// target that carries our mark was published.
func (d *Driver) uncertain(l looked, st *staged, cause error) (string, error) {
	err := d.session.diagnose(cause)
	if answered(cause) {
		return "", fileError(err)
	}
	if fault.Is(err, fault.BackendWorldGone) {
		e := refused(err)
		if e == nil {
			e = gone(cause)
		}
		return "", e.WithRetry(fault.RetryUnknown)
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	if d.remove(ctx, st.path) == nil && st.kept {
		now, err := d.entry(ctx, l.key)
		switch {
		case err != nil:
		case now != nil && now.Metadata[versionKey] == st.mark:
			return version(l.key, now), nil
		default:
			return "", fmt.Errorf("the connection broke before the file was published: %w", cause)
		}
	}
	return "", fault.Wrap(cause, fault.FSIOError, "write", "",
		"the connection broke while the file was published; whether it was is unknown").WithRetry(fault.RetryUnknown)
}
