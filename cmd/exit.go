package cmd

import (
	"errors"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
)

// Exit statuses (design.md 2). Nothing outside this file chooses one.
const (
	exitOK          = 0
	exitDefect      = 1
	exitUsage       = 2
	exitAbsent      = 3
	exitGuard       = 4
	exitKind        = 5
	exitEdit        = 6
	exitDenied      = 7
	exitIO          = 8
	exitUnreachable = 9
	exitUnsupported = 10
	exitDeadline    = 124
	exitFailed      = 125 // exec, term and job wait only
	exitNotExec     = 126
	exitNotFound    = 127
	exitHungUp      = 129
	exitInterrupted = 130
	exitPipe        = 141
	exitTerminated  = 143
)

// statusError makes a command end with a status that is its answer and not a
// failure: an absent file of fs stat, a child's own status. Nothing is printed
// for it.
type statusError struct{ status int }

func (e statusError) Error() string { return "exit status" }

// childStatus marks a command that passes the status of a program on and so
// has the second table.
const childStatus = "child-status"

func passesChildStatus(c *cobra.Command) bool { return c != nil && c.Annotations[childStatus] != "" }

// exitStatus gives the status of an error.
func exitStatus(err error) int {
	if closedOutput(err) {
		return exitPipe
	}
	if status, ok := statusOfCause(err); ok {
		return status
	}
	return statusOf(fault.CodeOf(err))
}

// closedOutput reports whether err says that the reader of our stdout is gone.
func closedOutput(err error) bool {
	return errors.Is(err, syscall.EPIPE) && fault.CodeOf(err) == ""
}

// statusOfCause gives the status of a cancelled operation: by why it was
// cancelled.
func statusOfCause(err error) (int, bool) {
	switch fault.CodeOf(err) {
	case fault.FSAborted, fault.ExecCancelled, fault.SearchAborted:
	default:
		return 0, false
	}
	switch {
	case errors.Is(err, fault.ErrDeadline):
		return exitDeadline, true
	case errors.Is(err, fault.ErrTerminated):
		return exitTerminated, true
	case errors.Is(err, fault.ErrHungUp):
		return exitHungUp, true
	default:
		return exitInterrupted, true
	}
}

// statusOf is the table of design.md 2.
func statusOf(code fault.Code) int {
	switch code {
	case fault.Usage, fault.SearchInvalidPattern, fault.ExecInvalidSpec, fault.ExecArgumentsTooLong,
		fault.ProfileNotFound, fault.ProfileInvalid, fault.ProfileConflict, fault.ProfileNoProvider,
		fault.ProfileUntrusted, fault.ProfileSecretMissing, fault.ProfileSecretLiteral,
		fault.PluginManifestInvalid, fault.PluginSourceInvalid:
		return exitUsage
	case fault.FSNotFound, fault.ExecProgramNotFound, fault.ExecCwdMissing, fault.ExecNoForeground,
		fault.ExecSessionExited, fault.ExecSessionClosing, fault.ExecUnknownSession,
		fault.PluginNotFound, fault.ProfilePathNotFound:
		return exitAbsent
	case fault.FSStaleVersion, fault.FSNotObserved, fault.ExecSendActive, fault.ExecNameTaken,
		fault.PluginConflict, fault.PluginIntegrity, fault.PluginTampered, fault.PluginBusy,
		fault.PluginConfirm, fault.ProfileExists:
		return exitGuard
	case fault.FSNotDirectory, fault.FSNotRegularFile, fault.FSNotText, fault.FSTooLarge,
		fault.SearchRawOutputOverflow, fault.ExecProgramNotExecutable, fault.ExecProgramFormat,
		fault.ExecCwdNotDirectory, fault.PluginArchiveInvalid, fault.PluginTooLarge:
		return exitKind
	case fault.FSEditNotFound, fault.FSAmbiguousEdit:
		return exitEdit
	case fault.FSPermissionDenied, fault.FSSandboxDenied, fault.ExecCwdDenied,
		fault.ExecForeignSession, fault.PluginDenied:
		return exitDenied
	case fault.FSIOError, fault.SearchFailed, fault.ExecSpawnFailed, fault.ExecOutputOverflow,
		fault.ExecCleanupFailed, fault.ExecSignalNotDelivered, fault.PluginIO, fault.BackendInternal:
		return exitIO
	case fault.ExecDisposing, fault.ExecTransportLost, fault.ExecTransportCorrupt,
		fault.PluginFetchFailed, fault.PluginStartFailed, fault.PluginCrashed, fault.PluginProtocol,
		fault.BackendUnreachable, fault.BackendAuthFailed, fault.BackendHostKey,
		fault.BackendRateLimited, fault.BackendQuota, fault.BackendConflict, fault.BackendProtocol,
		fault.BackendWorldGone:
		return exitUnreachable
	case fault.BackendUnsupported, fault.PluginPlatformUnsupported, fault.PluginVersionUnsupported:
		return exitUnsupported
	default:
		return exitDefect
	}
}

// execStatus gives the status of an error of exec, term and job wait, whose
// table leaves room for the child's own (design.md 2).
func execStatus(err error) int {
	if closedOutput(err) {
		return exitPipe
	}
	if status, ok := statusOfCause(err); ok {
		return status
	}
	switch fault.CodeOf(err) {
	case fault.ExecProgramNotFound:
		return exitNotFound
	case fault.ExecProgramNotExecutable, fault.ExecProgramFormat, fault.ExecArgumentsTooLong:
		return exitNotExec
	default:
		return exitFailed
	}
}
