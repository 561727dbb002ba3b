// Command boxd runs the stand-in of package boxtest for programs that are not
// Go tests: the scripts with the official SDK, the end-to-end scripts, the
// benchmarks. It prints its address on one line and ends when its input does.
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/afield-dev/afield/pkg/backend/box/boxtest"
)

func main() {
	boxtest.Main()
	polls, _ := strconv.Atoi(os.Getenv("BOXD_POLLS"))
	s, err := boxtest.New(boxtest.Options{Key: os.Getenv("UPSTASH_BOX_API_KEY"), Polls: polls})
	if err != nil {
		fmt.Fprintln(os.Stderr, "boxd:", err)
		os.Exit(1)
	}
	fmt.Println(s.URL())
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.Close()
}
