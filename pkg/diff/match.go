// Package diff compares two texts line by line: Match finds which lines of the
// old one live on in the new one, Hunks shows the change with lines of context
// around it.
//
// Memory is linear in the input plus at most 125 KiB. Small changes are
// compared exactly, by a longest common subsequence; large ones by the lines
// that occur once on each side (mount.md 9).
package diff

// Run is Len lines from Old in the old text that are equal, one by one, to the
// lines from New in the new text. Lines count from 0.
type Run struct{ Old, New, Len int }

// exact is the largest product of two lengths that is compared exactly.
const exact = 1_000_000

// Match gives the lines of old that are kept in new: runs of equal lines,
// ascending on both sides, none touching the next on both sides.
//
// The common prefix and suffix are matched first. What is left between them is
// matched by a longest common subsequence if the product of the lengths is at
// most 1,000,000, and ties prefer to drop the old line. Beyond that the longest
// ascending sequence of lines that occur exactly once on each side is matched,
// and the gaps between those by the same two rules.
func Match[T comparable](old, new []T) []Run {
	var m matching
	head := prefix(old, new)
	m.add(Run{0, 0, head})
	tail := suffix(old[head:], new[head:])
	a, b := intern(old[head:len(old)-tail], new[head:len(new)-tail])
	m.match(a, b, head, head)
	m.add(Run{len(old) - tail, len(new) - tail, tail})
	return m.runs
}

// Kept counts the lines of runs.
func Kept(runs []Run) int {
	n := 0
	for _, r := range runs {
		n += r.Len
	}
	return n
}

func prefix[T comparable](a, b []T) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func suffix[T comparable](a, b []T) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// intern gives equal values equal numbers.
func intern[T comparable](a, b []T) (x, y []int32) {
	ids := make(map[T]int32, len(a))
	number := func(in []T) []int32 {
		out := make([]int32, len(in))
		for i, v := range in {
			id, ok := ids[v]
			if !ok {
				id = int32(len(ids))
				ids[v] = id
			}
			out[i] = id
		}
		return out
	}
	if len(a) == 0 || len(b) == 0 {
		return make([]int32, len(a)), make([]int32, len(b))
	}
	return number(a), number(b)
}

// matching collects runs in ascending order.
type matching struct{ runs []Run }

// add joins r to the last run where the two touch on both sides.
func (m *matching) add(r Run) {
	if r.Len == 0 {
		return
	}
	if k := len(m.runs) - 1; k >= 0 && m.runs[k].Old+m.runs[k].Len == r.Old && m.runs[k].New+m.runs[k].Len == r.New {
		m.runs[k].Len += r.Len
		return
	}
	m.runs = append(m.runs, r)
}

// match compares two middles that begin at line i of the old and line j of the
// new text.
func (m *matching) match(a, b []int32, i, j int) {
	switch {
	case len(a) == 0 || len(b) == 0:
	case len(a) <= exact/len(b):
		m.common(a, b, i, j)
	default:
		m.anchored(a, b, i, j)
	}
}

// anchored matches the lines that occur once on each side and then the gaps.
func (m *matching) anchored(a, b []int32, i, j int) {
	anchors := ascending(unique(a, b))
	if len(anchors) == 0 {
		return
	}
	x, y := 0, 0
	for _, p := range anchors {
		m.match(a[x:p.a], b[y:p.b], i+x, j+y)
		m.add(Run{i + p.a, j + p.b, 1})
		x, y = p.a+1, p.b+1
	}
	m.match(a[x:], b[y:], i+x, j+y)
}

// common matches a longest common subsequence. The lengths of the table are
// kept for two rows only; of each cell one bit stays: whether dropping the old
// line loses nothing against dropping the new one.
func (m *matching) common(a, b []int32, i, j int) {
	drop := newBits(len(a) * len(b))
	row, below := make([]int32, len(b)+1), make([]int32, len(b)+1)
	for x := len(a) - 1; x >= 0; x-- {
		row, below = below, row
		row[len(b)] = 0
		for y := len(b) - 1; y >= 0; y-- {
			switch {
			case a[x] == b[y]:
				row[y] = below[y+1] + 1
			case below[y] >= row[y+1]:
				row[y] = below[y]
				drop.set(x*len(b) + y)
			default:
				row[y] = row[y+1]
			}
		}
	}
	for x, y := 0, 0; x < len(a) && y < len(b); {
		switch {
		case a[x] == b[y]:
			m.add(Run{i + x, j + y, 1})
			x, y = x+1, y+1
		case drop.get(x*len(b) + y):
			x++
		default:
			y++
		}
	}
}

type bits []uint64

func newBits(n int) bits      { return make(bits, (n+63)/64) }
func (b bits) set(n int)      { b[n/64] |= 1 << (n % 64) }
func (b bits) get(n int) bool { return b[n/64]&(1<<(n%64)) != 0 }
