package all

import "github.com/afield-dev/afield/pkg/backend/external"

// Program is the program of a plugin's provider: the way by which pkg/plugin
// starts one.
type Program = external.Program
