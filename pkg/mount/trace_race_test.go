//go:build race

package mount

// traces is how many random histories are tried: with the race detector each
// takes ten times as long.
const traces = 60
