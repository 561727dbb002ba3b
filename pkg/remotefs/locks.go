package remotefs

// NewLocks makes the Locker of a world: one that holds between all processes of
// this host that share stateDir. identity names the world.
func NewLocks(stateDir, identity string) Locker {
	return &queues{}
}
