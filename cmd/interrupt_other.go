//go:build !linux

package cmd

import (
	"context"
	"io"
	"os"
)

// directOutput gives patient: there is no write that takes what fits at once.
func directOutput(_ context.Context, _ *os.File, patient io.Writer) io.Writer { return patient }
