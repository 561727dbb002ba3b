package profile

// nearest gives the word that was probably meant, or "".
func nearest(word string, words []string) string {
	best, bestDistance := "", max(1, len(word)/3)+1
	for _, w := range words {
		if d := distance(word, w, bestDistance); d < bestDistance {
			best, bestDistance = w, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours between two words, up to limit.
func distance(a, b string, limit int) int {
	if abs(len(a)-len(b)) >= limit || len(a) > 64 {
		return limit
	}
	prior, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prior[j-2]+1)
			}
		}
		prior, last, row = last, row, prior
	}
	return last[len(b)]
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
