//go:build !race

package mount

// traces is how many random histories are tried.
const traces = 1000
