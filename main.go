// Command afield runs file and process operations in an execution world: this
// machine, an SSH host, a sandbox, or what a plugin brings.
package main

import (
	"os"

	"github.com/afield-dev/afield/cmd"
	_ "github.com/afield-dev/afield/pkg/hugepage" // the heap, before the other initialisers touch it
)

func main() {
	os.Exit(cmd.Main(os.Args[1:], cmd.SystemStreams()))
}
