// Command boxd runs the stand-in of package boxtest for programs that are not
// Go tests: the end-to-end scripts and the benchmarks. It prints its address on
// one line and ends when its input does.
//
// boxd -modules prints a directory with the official SDK. boxd -relay BOX is the
// peer of a benchmark: it sends its input as the first frame of an exec session
// and writes the decoded output, with nothing around it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"github.com/coder/websocket"

	"github.com/afield-dev/afield/pkg/backend/box/boxtest"
)

func main() {
	boxtest.Main()
	modules := flag.Bool("modules", false, "print a directory with the packages of npm")
	box := flag.String("relay", "", "run one exec session in this box")
	flag.Parse()
	var err error
	switch {
	case *modules:
		err = printModules()
	case *box != "":
		err = relay(context.Background(), *box)
	default:
		err = serve()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "boxd:", err)
		os.Exit(1)
	}
}

func serve() error {
	polls, _ := strconv.Atoi(os.Getenv("BOXD_POLLS"))
	s, err := boxtest.New(boxtest.Options{Key: os.Getenv("UPSTASH_BOX_API_KEY"), Polls: polls})
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println(s.URL())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func printModules() error {
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	dir, err := boxtest.NodeModules(root)
	if err != nil {
		return err
	}
	fmt.Println(dir)
	return nil
}

// relay decodes every frame as JSON with its base64 and copies the output.
func relay(ctx context.Context, box string) error {
	start, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	header := http.Header{"X-Box-Api-Key": {os.Getenv("UPSTASH_BOX_API_KEY")}}
	conn, _, err := websocket.Dial(ctx, os.Getenv("UPSTASH_BOX_BASE_URL")+"/v2/box/"+box+"/exec-session",
		&websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(-1)
	if err := conn.Write(ctx, websocket.MessageText, start); err != nil {
		return err
	}
	for {
		_, text, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		var frame struct {
			Type string
			Data []byte
		}
		if err := json.Unmarshal(text, &frame); err != nil {
			return err
		}
		if frame.Type == "exit" {
			return nil
		}
		if _, err := os.Stdout.Write(frame.Data); err != nil {
			return err
		}
	}
}
