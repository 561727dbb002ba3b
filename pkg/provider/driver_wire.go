package provider

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// The parameters and results of the driver level (plugins.md 36).
type (
	driverRef struct {
		World     string `json:"world"`
		Path      Raw    `json:"path"`
		Canonical bool   `json:"canonical,omitempty"` // the path is a key already
	}
	driverStat struct {
		driverRef
		Follow bool `json:"follow"`
	}
	driverOpen struct {
		driverRef
		MaxBytes *int64 `json:"maxBytes,omitempty"`
	}
	driverKey struct {
		Key Raw `json:"key"`
	}
	driverFound struct {
		Key   Raw       `json:"key"`
		Info  *wireInfo `json:"info"`
		Count int       `json:"count,omitempty"` // of a listing
	}
	driverEntry struct {
		Name  Raw        `json:"name"`
		Key   Raw        `json:"key"`
		Info  *wireInfo  `json:"info"`
		Error *wireError `json:"error,omitempty"`
	}
	// driverStage: Dir is that of the target, Replaces the target where its mode
	// and owner are to be carried over.
	driverStage struct {
		World    string    `json:"world"`
		Dir      Raw       `json:"dir"`
		Mode     *int      `json:"mode,omitempty"`
		Bytes    *int64    `json:"bytes"`
		Nonce    string    `json:"nonce"`
		Key      Raw       `json:"key"`
		Replaces *wireInfo `json:"replaces,omitempty"`
	}
	driverStaged struct {
		Staged string `json:"staged"`
	}
	driverPublish struct {
		World   string `json:"world"`
		Staged  string `json:"staged"`
		Path    Raw    `json:"path"`
		Replace bool   `json:"replace"`
		Version string `json:"version,omitempty"` // guard
	}
	driverVersion struct {
		Version string `json:"version"`
	}
	driverGroup struct {
		World  string `json:"world"`
		Group  int    `json:"group"`
		Signal string `json:"signal,omitempty"`
	}
	driverMembers struct {
		Members []int `json:"members"`
	}
)

// encodeDriverError gives the wire form of a driver's error. A system error goes
// by its name, so that the core on the other side words it.
func encodeDriverError(err error) wireError {
	var e *fault.Error
	var errno syscall.Errno
	w := wireError{Code: string(fault.FSIOError), Retry: "no"}
	if errors.As(err, &e) {
		w = encodeError(err)
	} else if !errors.As(err, &errno) {
		w.Message = clip(err.Error())
	}
	if errors.As(err, &errno) {
		w.Errno = unix.ErrnoName(errno)
	} else if errors.Is(err, fs.ErrNotExist) {
		w.Errno = "ENOENT"
	}
	switch {
	case e != nil:
	case errors.Is(err, fs.ErrNotExist) || errno == syscall.ENOTDIR:
		w.Code = string(fault.FSNotFound)
	case errors.Is(err, fs.ErrPermission):
		w.Code = string(fault.FSPermissionDenied)
	}
	if e != nil && e.Code == fault.FSNotObserved {
		w.Code = "EXISTS"
	}
	return w
}

// driverError gives the error that a driver on our side would have given.
func driverError(err error) error {
	var e *fault.Error
	if !errors.As(err, &e) || e.Message != "" {
		return err
	}
	var errno syscall.Errno
	if !errors.As(e.Err, &errno) {
		return e
	}
	switch e.Code {
	case fault.FSIOError, fault.FSNotFound, fault.FSPermissionDenied:
		return errno
	}
	return e
}

// errnoNamed gives the system error of a name, 0 = there is none here.
func errnoNamed(name string) syscall.Errno {
	if !strings.HasPrefix(name, "E") {
		return 0
	}
	for n := syscall.Errno(1); n < 200; n++ {
		if unix.ErrnoName(n) == name {
			return n
		}
	}
	return 0
}

func (r driverRef) decode() remotefs.Ref {
	return remotefs.Ref{Path: string(r.Path), Canonical: r.Canonical}
}
