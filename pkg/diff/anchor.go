package diff

import "sort"

// pair is a line of each side.
type pair struct{ a, b int }

// unique gives the lines that occur exactly once in a and once in b, in the
// order of a.
func unique(a, b []int32) []pair {
	type seen struct{ inA, inB, at int }
	lines := make(map[int32]seen, len(a))
	for _, v := range a {
		s := lines[v]
		s.inA++
		lines[v] = s
	}
	for y, v := range b {
		if s, ok := lines[v]; ok {
			s.inB, s.at = s.inB+1, y
			lines[v] = s
		}
	}
	var pairs []pair
	for x, v := range a {
		if s := lines[v]; s.inA == 1 && s.inB == 1 {
			pairs = append(pairs, pair{x, s.at})
		}
	}
	return pairs
}

// ascending gives a longest part of pairs that ascends on the new side; pairs
// ascends on the old side.
func ascending(pairs []pair) []pair {
	tails := make([]int, 0, len(pairs)) // tails[k]: the best end of a sequence of k+1
	before := make([]int, len(pairs))   // the one before it in its sequence, or -1
	for n, p := range pairs {
		k := sort.Search(len(tails), func(k int) bool { return pairs[tails[k]].b >= p.b })
		before[n] = -1
		if k > 0 {
			before[n] = tails[k-1]
		}
		if k == len(tails) {
			tails = append(tails, n)
		} else {
			tails[k] = n
		}
	}
	out := make([]pair, len(tails))
	if len(tails) == 0 {
		return out
	}
	for k, n := len(tails)-1, tails[len(tails)-1]; k >= 0; k, n = k-1, before[n] {
		out[k] = pairs[n]
	}
	return out
}
