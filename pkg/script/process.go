package script

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Input says what the started program reads.
type Input string

// The inputs: none, the rest of the call's own input, or a terminal.
const (
	NoInput  Input = "=n"
	Piped    Input = "=p"
	Terminal Input = "=t"
)

// Bounds of what stands on the command line, which is visible and at most
// 128 KiB, and in csh 8 KiB a word; what is longer travels on the input.
const (
	wordLimit = 6000
	lineLimit = 100_000
)

// StartSpec describes a program to start.
type StartSpec struct {
	Argv   []string
	Cwd    string // absolute
	Set    map[string]string
	Remove []string
	Input  Input
	// Grace is what the watcher waits between TERM and KILL after the connection
	// is lost.
	Grace time.Duration
}

// Start asks for a program in the place of the shell. The answer is read with
// ReadStarted; with Piped and Terminal, what the caller sends after Call.Input is
// the program's. Without a terminal the program's standard error begins after
// the line with the nonce.
//
// When Call.Input is not empty, it must be sent only after ReadStarted asked for
// it: a terminal would echo it before.
func Start(s StartSpec) Call {
	c := call("start", string(s.Input), Word(s.Cwd), "="+strconv.FormatInt(graceSeconds(s.Grace), 10))
	if words, ok := inline(s); ok {
		c.Words = append(append(c.Words, "=0"), words...)
		return c
	}
	c.Input = payload(s)
	c.Words = append(c.Words, "="+strconv.Itoa(len(c.Input)))
	return c
}

func graceSeconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

// inline gives the arguments as words, if nothing else has to travel and all of
// them fit.
func inline(s StartSpec) ([]string, bool) {
	words, total := make([]string, len(s.Argv)), 0
	for i, a := range s.Argv {
		words[i] = Word(a)
		total += len(words[i]) + 3
		if len(words[i]) > wordLimit {
			return nil, false
		}
	}
	return words, len(s.Set) == 0 && len(s.Remove) == 0 && total <= lineLimit
}

// payload is the environment and the arguments as shell text.
func payload(s StartSpec) []byte {
	var b bytes.Buffer
	var unset, set, values []string
	for _, name := range s.Remove {
		if shellName(name) {
			b.WriteString("command unset " + name + " 2>/dev/null\n")
		} else {
			unset = append(unset, name)
		}
	}
	for _, name := range sortedNames(s.Set) {
		if shellName(name) {
			values = append(values, "export "+name+"="+quote(s.Set[name])+"\n")
		} else {
			set = append(set, name)
			b.WriteString("export AFIELD_X" + strconv.Itoa(len(set)) + "=" + quote(s.Set[name]) + "\n")
		}
	}
	for _, v := range values {
		b.WriteString(v)
	}
	fmt.Fprintf(&b, "afield_u=%d; afield_x=%d; set --", len(unset), len(set))
	for _, list := range [][]string{unset, set, s.Argv} {
		for _, a := range list {
			b.WriteString(" " + quote(a))
		}
	}
	b.WriteString("\n#end")
	return b.Bytes()
}

// quote makes v one word of sh text, exactly.
func quote(v string) string { return "'" + strings.ReplaceAll(v, "'", `'\''`) + "'" }

func sortedNames(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// shellName reports whether a shell holds a variable of that name and passes any
// value of it on unchanged.
func shellName(name string) bool {
	switch name {
	case "_", "IFS", "OPTIND", "LINENO", "PPID", "UID", "EUID", "GID", "EGID", "RANDOM", "SECONDS",
		"SHELLOPTS", "BASHOPTS", "PWD", "OLDPWD", "SHLVL", "BASHPID", "HISTCMD", "PS4":
		return false
	}
	if strings.HasPrefix(name, "afield_") {
		return false
	}
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// Started is what a start says before the program runs. PID leads a session and
// a process group of its own; Begun is its start time, 0 where the world does
// not tell; Watcher belongs to us.
type Started struct {
	PID     int
	Begun   int64
	Watcher int
	// WantsInput: Call.Input is to be sent now, and ReadStarted called again.
	WantsInput bool
}

// ReadStarted reads the answer of Start. A refusal is a *Failure whose kind is
// the name of an error of the process contract: "cwd-missing", …
func ReadStarted(a *Answer, c Call) (Started, error) {
	line, err := a.Begin(c.Nonce)
	if err != nil {
		return Started{}, err
	}
	w := strings.Fields(line)
	switch {
	case len(w) == 1 && w[0] == "R":
		return Started{WantsInput: true}, nil
	case len(w) == 2 && w[0] == "E":
		return Started{}, &Failure{Kind: Kind(w[1])}
	case len(w) == 4 && w[0] == "S":
		pid, err1 := strconv.Atoi(w[1])
		begun, err2 := strconv.ParseInt(w[2], 10, 64)
		watcher, err3 := strconv.Atoi(w[3])
		if err1 == nil && err2 == nil && err3 == nil && pid > 1 {
			return Started{PID: pid, Begun: begun, Watcher: watcher}, nil
		}
	}
	return Started{}, fmt.Errorf("start report %.80q cannot be read", line)
}

// Verdict marks the line on the error output of a program without input by which
// its watcher tells, after the program's end, who of its session is left. It may
// stand anywhere in what others write there.
func Verdict(c Call) string { return c.Nonce + " Q" }

// ReadVerdict gives the ids in what follows the mark on its line.
func ReadVerdict(rest string) ([]int, error) { return processIDs(rest) }

func (s Started) words() []string {
	return []string{"=" + strconv.Itoa(s.PID), "=" + strconv.FormatInt(s.Begun, 10), "=" + strconv.Itoa(s.Watcher)}
}

// Members asks for the live members of the tree. ReadMembers reads the answer.
func Members(s Started) Call { return call("members", s.words()...) }

// ReadMembers reads the answer of Members.
func ReadMembers(a *Answer, c Call) ([]int, error) {
	f, err := a.Head(c.Nonce, 1)
	if err != nil {
		return nil, err
	}
	return processIDs(f[0])
}

// processIDs reads ids, none of which addresses more than one process (TE-11).
func processIDs(list string) ([]int, error) {
	var pids []int
	for _, w := range strings.Fields(list) {
		pid, err := strconv.Atoi(w)
		if err != nil || pid <= 1 {
			return nil, fmt.Errorf("process id %.20q in the answer", w)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// Kill asks for a signal to the whole tree, "TERM" or "KILL". ReadDelivery reads
// the answer.
func Kill(s Started, signal string) Call { return call("kill", append(s.words(), "="+signal)...) }

// End asks for the whole ladder: TERM, grace, KILL, proof. ReadMembers reads the
// answer, which is who survived.
func End(s Started, grace time.Duration) Call {
	tenths := int64(math.Ceil(float64(grace) / float64(time.Second/10)))
	return call("end", append(s.words(), "="+strconv.FormatInt(tenths, 10))...)
}

// Quiet waits until no member of the tree lives. ReadMembers reads the answer.
func Quiet(s Started) Call { return call("quiet", s.words()...) }

// Delivery says what became of a signal.
type Delivery string

// The deliveries.
const (
	Delivered Delivery = "yes"
	Refused   Delivery = "no"
	Nobody    Delivery = "gone"
)

// ReadDelivery reads the answer of Kill and SignalGroup.
func ReadDelivery(a *Answer, c Call) (Delivery, error) {
	f, err := a.Head(c.Nonce, 1)
	if err != nil {
		return "", err
	}
	return Delivery(f[0]), nil
}

// Foreground asks for the foreground group of the leader's terminal.
// ReadForeground reads the answer.
func Foreground(s Started) Call { return call("foreground", s.words()[:2]...) }

// ReadForeground gives the group, 0 if there is none, and whether a member of it
// is proven to read from the terminal.
func ReadForeground(a *Answer, c Call) (group int, reads bool, err error) {
	f, err := a.Head(c.Nonce, 2)
	if err != nil {
		return 0, false, err
	}
	group, err = strconv.Atoi(f[0])
	if group <= 1 {
		group = 0
	}
	return group, f[1] == "yes", err
}

// SignalGroup asks for a signal to one group of the leader's session.
// ReadDelivery reads the answer.
func SignalGroup(s Started, group int, signal string) Call {
	return call("signal", append(s.words()[:2], "="+strconv.Itoa(group), "="+signal)...)
}

// Lookup asks for the absolute path of a program. Path replaces the login's PATH
// when it is not nil; relative elements of it stand below base. ReadLookup reads
// the answer.
func Lookup(name string, path *string, base string) Call {
	given, p := "=n", "="
	if path != nil {
		given, p = "=y", Word(*path)
	}
	return call("lookup", Word(name), given, p, Word(base))
}

// ReadLookup reads the answer of Lookup.
func ReadLookup(a *Answer, c Call) (string, error) {
	f, err := a.Head(c.Nonce, 1)
	if err != nil {
		return "", err
	}
	return f[0], nil
}
