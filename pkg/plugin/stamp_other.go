//go:build !linux

package plugin

// stampOf knows nothing here, so that trees are hashed at each start.
func stampOf(string) ([5]int64, bool) { return [5]int64{}, false }
