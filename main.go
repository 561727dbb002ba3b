// Command afield runs file and process operations in an execution world: this
// machine, an SSH host, a sandbox, or what a plugin brings.
package main

import (
	"os"

	"github.com/afield-dev/afield/cmd"
)

func main() {
	os.Exit(cmd.Main(os.Args[1:], cmd.SystemStreams()))
}
