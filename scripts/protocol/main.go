// Command protocol measures what the provider protocol costs beyond the backend
// behind it: calls, streams each way, and calls in flight on one connection.
//
//	protocol AFIELD DIR          measure with AFIELD serve --stdio, in DIR
//	protocol -serve DIR          serve the files of DIR on loopback, printing the address
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/all"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: protocol AFIELD DIR, or protocol -serve DIR")
		os.Exit(2)
	}
	run := measure
	if os.Args[1] == "-serve" {
		run = func(_, dir string) error { return serve(dir) }
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "protocol:", err)
		os.Exit(1)
	}
}

func serve(dir string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", l.Addr())
	return http.Serve(l, http.FileServer(http.Dir(dir)))
}

func measure(afield, dir string) error {
	direct, err := open("local", map[string]any{}, dir)
	if err != nil {
		return err
	}
	defer direct.Close(context.Background())
	over, err := open("external", map[string]any{
		"argv": []any{afield, "serve", "--stdio"}, "env": []any{"AFIELD_STATE_DIR"}, "startTimeoutMs": int64(10000),
	}, dir)
	if err != nil {
		return err
	}
	defer over.Close(context.Background())
	if err := calls(direct, over, dir); err != nil {
		return err
	}
	for _, w := range []struct {
		name  string
		world backend.World
	}{{"direct", direct}, {"over the protocol", over}} {
		if err := streams(w.name, w.world, dir); err != nil {
			return err
		}
	}
	return flight(over, dir)
}

func open(name string, config map[string]any, dir string) (backend.World, error) {
	p, _ := all.Providers().Provider(name)
	return p.Open(context.Background(), backend.OpenRequest{
		Config: config, Cwd: dir, Environ: os.Environ(), HostDir: dir, StateDir: filepath.Join(dir, "state"), NewFileMode: -1,
		Log: slog.New(slog.DiscardHandler),
	})
}

// calls prints the median of a call without content, both ways in turn.
func calls(direct, over backend.World, dir string) error {
	var a, b []time.Duration
	for range 2000 {
		for _, x := range []struct {
			w   backend.World
			out *[]time.Duration
		}{{direct, &a}, {over, &b}} {
			start := time.Now()
			if _, err := x.w.Files().Resolve(context.Background(), dir, "/"); err != nil {
				return err
			}
			*x.out = append(*x.out, time.Since(start))
		}
	}
	fmt.Printf("empty call: direct %.3f ms, over the protocol %.3f ms, %.3f ms more (want at most 0.15)\n", ms(a), ms(b), ms(b)-ms(a))
	return nil
}

func ms(d []time.Duration) float64 {
	slices.Sort(d)
	return d[len(d)/2].Seconds() * 1e3
}

const streamed = 1 << 30

// streams prints the speed of a program's output and input.
func streams(name string, w backend.World, dir string) error {
	start := time.Now()
	n, err := read(w, dir)
	if err != nil || n != streamed {
		return fmt.Errorf("read %d bytes: %w", n, errors.Join(err, io.ErrUnexpectedEOF))
	}
	out := time.Since(start)
	start = time.Now()
	if err := write(w, dir); err != nil {
		return err
	}
	in := time.Since(start)
	fmt.Printf("1 GiB %s: from the program %.0f MiB/s, to the program %.0f MiB/s (want at least 400)\n", name, 1024/out.Seconds(), 1024/in.Seconds())
	return nil
}

func spec(dir, script string) remoteexec.Spec {
	return remoteexec.Spec{
		Argv: []string{"sh", "-c", script}, Cwd: dir, Grace: time.Second,
		Stdout: remoteexec.Output{Mode: remoteexec.OutputPipe}, Stderr: remoteexec.Output{MaxBytes: 1 << 16},
	}
}

func read(w backend.World, dir string) (int64, error) {
	h, err := w.Processes().Spawn(context.Background(), spec(dir, fmt.Sprintf("head -c %d /dev/zero", streamed)))
	if err != nil {
		return 0, err
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{h.Pipe(remoteexec.Stdout)}, make([]byte, 256<<10))
	if err != nil {
		return n, err
	}
	_, err = h.Wait(context.Background())
	return n, err
}

func write(w backend.World, dir string) error {
	s := spec(dir, "cat >/dev/null")
	s.Stdin = remoteexec.StdinPipe
	h, err := w.Processes().Spawn(context.Background(), s)
	if err != nil {
		return err
	}
	in, piece := h.Stdin(), make([]byte, 256<<10)
	for range streamed / len(piece) {
		if _, err := in.Write(piece); err != nil {
			return err
		}
	}
	in.Close()
	io.Copy(io.Discard, h.Pipe(remoteexec.Stdout))
	_, err = h.Wait(context.Background())
	return err
}

// flight holds 100 programs open on one connection and makes calls beside them.
func flight(w backend.World, dir string) error {
	var running []remoteexec.Handle
	for range 100 {
		s := spec(dir, "cat")
		s.Stdin = remoteexec.StdinPipe
		h, err := w.Processes().Spawn(context.Background(), s)
		if err != nil {
			return err
		}
		running = append(running, h)
	}
	start := time.Now()
	errs := make([]error, 100)
	var wg sync.WaitGroup
	for i, h := range running {
		wg.Go(func() {
			io.WriteString(h.Stdin(), "x")
			h.Stdin().Close()
			got, err := io.ReadAll(h.Pipe(remoteexec.Stdout))
			if err == nil && string(got) != "x" {
				err = fmt.Errorf("program %d says %q", i, got)
			}
			if _, _, stat := w.Files().Stat(context.Background(), remotefs.AtPath(dir, "/")); err == nil {
				err = stat
			}
			errs[i] = err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Printf("100 calls in flight on one connection: all answered in %.0f ms\n", time.Since(start).Seconds()*1e3)
	return nil
}
