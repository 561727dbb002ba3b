//go:build !linux

package remotefs

import (
	"errors"
	"os"
)

func tryRange(*os.File, int64) (bool, error) { return false, errors.ErrUnsupported }

func waitRange(*os.File, int64) error { return errors.ErrUnsupported }
