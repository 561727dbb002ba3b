package boxtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Packages of npm that the proofs need, with their versions.
const (
	sdkPackage = "@upstash/box@0.5.5"
	wsPackage  = "ws@8.23.0"
)

// NodeModules gives a directory with the npm packages of the proofs, installed
// below the repository's cache directory if they are not there yet. root is the
// directory of go.mod.
func NodeModules(root string) (string, error) {
	dir := filepath.Join(root, ".cache", "npm", strings.NewReplacer("@", "_", "/", "_").Replace(sdkPackage+"+"+wsPackage))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	done := filepath.Join(dir, "installed")
	if _, err := os.Stat(done); err == nil {
		return dir, nil
	}
	cmd := exec.Command("npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts", "--no-save", sdkPackage, wsPackage)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install: %w: %s", err, out)
	}
	return dir, os.WriteFile(done, nil, 0o644)
}
