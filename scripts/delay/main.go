// Command delay passes TCP connections on and holds every byte back for a time
// in each direction, as a distant host would.
//
//	delay LISTEN TARGET DELAY
package main

import (
	"fmt"
	"net"
	"os"
	"time"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: delay LISTEN TARGET DELAY")
		os.Exit(2)
	}
	if err := serve(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "delay:", err)
		os.Exit(1)
	}
}

func serve(listen, target, delay string) error {
	wait, err := time.ParseDuration(delay)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	for {
		near, err := l.Accept()
		if err != nil {
			return err
		}
		far, err := net.Dial("tcp", target)
		if err != nil {
			near.Close()
			continue
		}
		go pass(far, near, wait)
		go pass(near, far, wait)
	}
}

// piece is what was read, and when it is due.
type piece struct {
	data []byte
	due  time.Time
}

// pass copies from one to the other, each piece late by wait. What is on its way
// is bounded by the number of pieces.
func pass(to, from net.Conn, wait time.Duration) {
	way := make(chan piece, 4096)
	go func() {
		defer to.Close()
		for p := range way {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.data); err != nil {
				from.Close()
			}
		}
	}()
	defer close(way)
	for {
		buf := make([]byte, 64<<10)
		n, err := from.Read(buf)
		if n > 0 {
			way <- piece{buf[:n], time.Now().Add(wait)}
		}
		if err != nil {
			return
		}
	}
}
