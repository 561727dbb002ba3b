package local_test

import (
	"os"
	"testing"

	"github.com/afield-dev/afield/pkg/backend/local"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remoteexec/exectest"
)

// The local processes pass the suite.
func TestProcesses(t *testing.T) {
	exectest.Run(t, exectest.Backend{Open: func(t exectest.T) (remoteexec.Runtime, string) {
		dir := t.(*testing.T).TempDir()
		return local.Processes(local.ProcessOptions{Environ: os.Environ(), Dir: dir}), dir
	}})
}
