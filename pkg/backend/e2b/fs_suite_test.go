package e2b_test

import (
	"os"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend/e2b/e2btest"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/remotefs/fstest"
)

// The files of a sandbox pass the suite. What a case finds is made directly in
// the sandbox's folder.
func TestFiles(t *testing.T) {
	t.Parallel()
	s := newService(t, e2btest.Options{})
	b := s.Start(time.Hour)
	w, dir := s.inSandbox(t, b)
	driver := w.Driver()
	suite := fstest.Backend{
		Facts: driver.Facts(), Files: w.Files(), Driver: driver, World: fstest.Host{}, Dir: dir,
		Another: func() (remotefs.FS, error) {
			return remotefs.New(driver, remotefs.Options{Locks: remotefs.NewLocks(s.state, w.Identity())}), nil
		},
		StateDir: s.state, Root: os.Geteuid() == 0, Rounds: 3,
	}
	if os.Geteuid() == 0 {
		suite.World = fstest.MountingHost{}
	}
	fstest.Run(t, suite)
}
