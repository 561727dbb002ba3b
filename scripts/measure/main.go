// Command measure runs a peer and afield in turn on the same work and prints
// the ratio of their times pair by pair, with the peak memory of afield's side.
//
//	measure [-n RUNS] [-sh] LABEL WANT PEER AFIELD
//
// PEER and AFIELD are command lines, split at blanks, or run by sh with -sh.
// WANT is shown beside the ratio and decides nothing: these figures are for
// people, machines are noisy.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	runs := flag.Int("n", 9, "pairs of runs")
	shell := flag.Bool("sh", false, "run the command lines by sh")
	throughput := flag.Bool("speed", false, "print the ratio of speeds (peer time / afield time) instead of times")
	flag.Parse()
	if flag.NArg() != 4 {
		flag.Usage()
		os.Exit(2)
	}
	if err := compare(flag.Args(), *runs, *shell, *throughput); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// run is one finished process: its wall time and the peak memory of the largest
// process in it.
type run struct {
	wall time.Duration
	peak int64 // KiB
}

func compare(args []string, runs int, shell, speed bool) error {
	label, want, peer, ours := args[0], args[1], args[2], args[3]
	var ratios, peers, afields []float64
	var peak int64
	for i := -1; i < runs; i++ { // the first pair warms up
		p, err := once(peer, shell)
		if err != nil {
			return err
		}
		a, err := once(ours, shell)
		if err != nil {
			return err
		}
		if i < 0 {
			continue
		}
		ratio := a.wall.Seconds() / p.wall.Seconds()
		if speed {
			ratio = 1 / ratio
		}
		ratios = append(ratios, ratio)
		peers = append(peers, p.wall.Seconds()*1e3)
		afields = append(afields, a.wall.Seconds()*1e3)
		peak = max(peak, a.peak)
	}
	kind := "time"
	if speed {
		kind = "speed"
	}
	fmt.Printf("%-34s %s ratio %.2f (want %s)   peer %.1f ms, afield %.1f ms, peak %.1f MiB\n",
		label, kind, median(ratios), want, median(peers), median(afields), float64(peak)/1024)
	return nil
}

func once(line string, shell bool) (run, error) {
	words := strings.Fields(line)
	if shell {
		words = []string{"sh", "-c", line}
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stderr = os.Stderr
	start := time.Now()
	err := cmd.Run()
	wall := time.Since(start)
	if err != nil {
		return run{}, fmt.Errorf("%s: %w", line, err)
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return run{wall, usage.Maxrss}, nil
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
