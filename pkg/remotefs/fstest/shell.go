package fstest

import (
	"bytes"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
)

// Shell is a world in which `sh` can be run with exact arguments and input.
// Nothing of a path is ever part of a script. It expects GNU or busybox tools.
type Shell struct {
	// Exec runs a program of the world to its end and gives its output. A status
	// other than 0 is an error, which should hold the program's complaint.
	Exec func(stdin []byte, argv ...string) (stdout []byte, err error)
}

// sh runs a script with arguments.
func (s Shell) sh(stdin []byte, script string, args ...string) ([]byte, error) {
	out, err := s.Exec(stdin, append([]string{"sh", "-c", script, "sh"}, args...)...)
	if err != nil {
		return out, fmt.Errorf("%s with %q: %w", script, args, err)
	}
	return out, nil
}

func (s Shell) do(script string, args ...string) error {
	_, err := s.sh(nil, script, args...)
	return err
}

// Mkdir makes a directory and its missing parents.
func (s Shell) Mkdir(p string) error { return s.do(`mkdir -p -- "$1"`, p) }

// Write stores content through the open file.
func (s Shell) Write(p string, content []byte) error {
	_, err := s.sh(content, `mkdir -p -- "$1" && cat > "$2"`, path.Dir(p), p)
	return err
}

// Read gives the content.
func (s Shell) Read(p string) ([]byte, error) { return s.sh(nil, `cat -- "$1"`, p) }

// Append adds content.
func (s Shell) Append(p string, content []byte) error {
	_, err := s.sh(content, `cat >> "$1"`, p)
	return err
}

// Truncate cuts a file.
func (s Shell) Truncate(p string, size int64) error {
	return s.do(`truncate -s "$2" -- "$1"`, p, strconv.FormatInt(size, 10))
}

// Symlink makes a link.
func (s Shell) Symlink(to, p string) error { return s.do(`ln -s -- "$1" "$2"`, to, p) }

// Link makes a second name.
func (s Shell) Link(old, p string) error { return s.do(`ln -- "$1" "$2"`, old, p) }

// Fifo makes a FIFO.
func (s Shell) Fifo(p string) error { return s.do(`mkfifo -- "$1"`, p) }

// Socket makes a socket where the world has Python or Perl.
func (s Shell) Socket(p string) error {
	return s.do(`cd -- "$1" || exit 1
if command -v python3 >/dev/null; then
  python3 -c 'import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$2"
elif command -v perl >/dev/null; then
  perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0); bind(S,sockaddr_un($ARGV[0])) or die' "$2"
else
  exit 1
fi`, path.Dir(p), path.Base(p))
}

// Chmod sets all twelve bits.
func (s Shell) Chmod(p string, mode int) error {
	return s.do(`chmod -- "$2" "$1"`, p, fmt.Sprintf("%05o", mode))
}

// Mtime gives the time of the content.
func (s Shell) Mtime(p string) (time.Time, error) {
	out, err := s.sh(nil, `TZ=UTC0 stat -c %y -- "$1"`, p)
	if err != nil {
		return time.Time{}, err
	}
	return time.Parse("2006-01-02 15:04:05.999999999 -0700", strings.TrimSpace(string(out)))
}

// SetMtime sets it.
func (s Shell) SetMtime(p string, t time.Time) error {
	return s.do(`touch -d "@$2" -- "$1"`, p, fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()))
}

// Rename renames.
func (s Shell) Rename(from, to string) error { return s.do(`mv -f -- "$1" "$2"`, from, to) }

// Remove removes everything.
func (s Shell) Remove(p string) error {
	return s.do(`[ -d "$1" ] && [ ! -L "$1" ] && chmod -R u+rwx -- "$1" 2>/dev/null; rm -rf -- "$1"`, p)
}

// Lstat looks at an entry.
func (s Shell) Lstat(p string) (*Entry, error) {
	out, err := s.sh(nil, `[ -e "$1" ] || [ -L "$1" ] || exit 0; stat -c '%f %s %i' -- "$1"`, p)
	if err != nil || len(out) == 0 {
		return nil, err
	}
	var mode uint32
	e := &Entry{}
	if _, err := fmt.Sscanf(string(out), "%x %d %d", &mode, &e.Size, &e.Inode); err != nil {
		return nil, err
	}
	e.Kind, e.Mode = kindOf(mode), int(mode&0o7777)
	return e, nil
}

// Tree lists what is below dir.
func (s Shell) Tree(dir string) ([]string, error) {
	out, err := s.sh(nil, `cd -- "$1" && find . -mindepth 1 -print0 2>/dev/null; exit 0`, dir)
	if err != nil {
		return nil, err
	}
	var all []string
	for name := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		if len(name) > 0 {
			all = append(all, strings.TrimPrefix(string(name), "./"))
		}
	}
	return all, nil
}

// Fill makes n files.
func (s Shell) Fill(dir string, n int) error {
	return s.do(`cd -- "$1" && i=0 && while [ $i -lt "$2" ]; do : > $i; i=$((i+1)); done`, dir, strconv.Itoa(n))
}

// Umask is that of the shell.
func (s Shell) Umask() (int, error) {
	out, err := s.sh(nil, `umask`)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(out)), 8, 32)
	return int(n), err
}
