package fault

// Code names a class of failure. The list is closed and only grows; scripts
// route on it.
type Code string

// Codes of the file contract (remotefs.md 11), of search (18), of processes
// (remoteexec.md 1), of profiles and plugins (plugins.md 29), of backends
// (design.md 2), and of the command line itself.
const (
	FSNotFound         Code = "FS_NOT_FOUND"
	FSNotDirectory     Code = "FS_NOT_DIRECTORY"
	FSNotRegularFile   Code = "FS_NOT_REGULAR_FILE"
	FSNotText          Code = "FS_NOT_TEXT"
	FSTooLarge         Code = "FS_TOO_LARGE"
	FSPermissionDenied Code = "FS_PERMISSION_DENIED"
	FSSandboxDenied    Code = "FS_SANDBOX_DENIED"
	FSStaleVersion     Code = "FS_STALE_VERSION"
	FSNotObserved      Code = "FS_NOT_OBSERVED"
	FSEditNotFound     Code = "FS_EDIT_NOT_FOUND"
	FSAmbiguousEdit    Code = "FS_AMBIGUOUS_EDIT"
	FSAborted          Code = "FS_ABORTED"
	FSIOError          Code = "FS_IO_ERROR"

	SearchInvalidPattern    Code = "SEARCH_INVALID_PATTERN"
	SearchFailed            Code = "SEARCH_FAILED"
	SearchAborted           Code = "SEARCH_ABORTED"
	SearchRawOutputOverflow Code = "SEARCH_RAW_OUTPUT_OVERFLOW"

	ExecInvalidSpec          Code = "EXEC_INVALID_SPEC"
	ExecCancelled            Code = "EXEC_CANCELLED"
	ExecDisposing            Code = "EXEC_DISPOSING"
	ExecProgramNotFound      Code = "EXEC_PROGRAM_NOT_FOUND"
	ExecProgramNotExecutable Code = "EXEC_PROGRAM_NOT_EXECUTABLE"
	ExecProgramFormat        Code = "EXEC_PROGRAM_FORMAT"
	ExecArgumentsTooLong     Code = "EXEC_ARGUMENTS_TOO_LONG"
	ExecCwdMissing           Code = "EXEC_CWD_MISSING"
	ExecCwdNotDirectory      Code = "EXEC_CWD_NOT_DIRECTORY"
	ExecCwdDenied            Code = "EXEC_CWD_DENIED"
	ExecSpawnFailed          Code = "EXEC_SPAWN_FAILED"
	ExecTransportLost        Code = "EXEC_TRANSPORT_LOST"
	ExecTransportCorrupt     Code = "EXEC_TRANSPORT_CORRUPT"
	ExecOutputOverflow       Code = "EXEC_OUTPUT_OVERFLOW"
	ExecCleanupFailed        Code = "EXEC_CLEANUP_FAILED"
	ExecNoForeground         Code = "EXEC_NO_FOREGROUND"
	ExecSignalNotDelivered   Code = "EXEC_SIGNAL_NOT_DELIVERED"
	ExecSessionExited        Code = "EXEC_SESSION_EXITED"
	ExecSessionClosing       Code = "EXEC_SESSION_CLOSING"
	ExecSendActive           Code = "EXEC_SEND_ACTIVE"
	ExecUnknownSession       Code = "EXEC_UNKNOWN_SESSION"
	ExecForeignSession       Code = "EXEC_FOREIGN_SESSION"
	ExecNameTaken            Code = "EXEC_NAME_TAKEN"

	ProfileNotFound      Code = "PROFILE_NOT_FOUND"
	ProfileInvalid       Code = "PROFILE_INVALID"
	ProfileConflict      Code = "PROFILE_CONFLICT"
	ProfileNoProvider    Code = "PROFILE_NO_PROVIDER"
	ProfileUntrusted     Code = "PROFILE_UNTRUSTED"
	ProfileSecretMissing Code = "PROFILE_SECRET_MISSING"
	ProfileSecretLiteral Code = "PROFILE_SECRET_LITERAL"
	ProfilePathNotFound  Code = "PROFILE_PATH_NOT_FOUND"
	ProfileExists        Code = "PROFILE_EXISTS"

	PluginManifestInvalid     Code = "PLUGIN_MANIFEST_INVALID"
	PluginSourceInvalid       Code = "PLUGIN_SOURCE_INVALID"
	PluginNotFound            Code = "PLUGIN_NOT_FOUND"
	PluginConflict            Code = "PLUGIN_CONFLICT"
	PluginIntegrity           Code = "PLUGIN_INTEGRITY"
	PluginTampered            Code = "PLUGIN_TAMPERED"
	PluginBusy                Code = "PLUGIN_BUSY"
	PluginConfirm             Code = "PLUGIN_CONFIRM"
	PluginArchiveInvalid      Code = "PLUGIN_ARCHIVE_INVALID"
	PluginTooLarge            Code = "PLUGIN_TOO_LARGE"
	PluginDenied              Code = "PLUGIN_DENIED"
	PluginIO                  Code = "PLUGIN_IO"
	PluginFetchFailed         Code = "PLUGIN_FETCH_FAILED"
	PluginStartFailed         Code = "PLUGIN_START_FAILED"
	PluginCrashed             Code = "PLUGIN_CRASHED"
	PluginProtocol            Code = "PLUGIN_PROTOCOL"
	PluginPlatformUnsupported Code = "PLUGIN_PLATFORM_UNSUPPORTED"
	PluginVersionUnsupported  Code = "PLUGIN_VERSION_UNSUPPORTED"

	BackendUnreachable Code = "BACKEND_UNREACHABLE"
	BackendAuthFailed  Code = "BACKEND_AUTH_FAILED"
	BackendHostKey     Code = "BACKEND_HOST_KEY"
	BackendRateLimited Code = "BACKEND_RATE_LIMITED"
	BackendQuota       Code = "BACKEND_QUOTA"
	BackendConflict    Code = "BACKEND_CONFLICT"
	BackendProtocol    Code = "BACKEND_PROTOCOL"
	BackendWorldGone   Code = "BACKEND_WORLD_GONE"
	BackendUnsupported Code = "BACKEND_UNSUPPORTED"
	BackendInternal    Code = "BACKEND_INTERNAL"

	Usage Code = "USAGE"
)

// Codes gives the closed list.
func Codes() []Code {
	return []Code{
		FSNotFound, FSNotDirectory, FSNotRegularFile, FSNotText, FSTooLarge, FSPermissionDenied,
		FSSandboxDenied, FSStaleVersion, FSNotObserved, FSEditNotFound, FSAmbiguousEdit, FSAborted, FSIOError,
		SearchInvalidPattern, SearchFailed, SearchAborted, SearchRawOutputOverflow,
		ExecInvalidSpec, ExecCancelled, ExecDisposing, ExecProgramNotFound, ExecProgramNotExecutable,
		ExecProgramFormat, ExecArgumentsTooLong, ExecCwdMissing, ExecCwdNotDirectory, ExecCwdDenied,
		ExecSpawnFailed, ExecTransportLost, ExecTransportCorrupt, ExecOutputOverflow, ExecCleanupFailed,
		ExecNoForeground, ExecSignalNotDelivered, ExecSessionExited, ExecSessionClosing, ExecSendActive,
		ExecUnknownSession, ExecForeignSession, ExecNameTaken,
		ProfileNotFound, ProfileInvalid, ProfileConflict, ProfileNoProvider, ProfileUntrusted,
		ProfileSecretMissing, ProfileSecretLiteral, ProfilePathNotFound, ProfileExists,
		PluginManifestInvalid, PluginSourceInvalid, PluginNotFound, PluginConflict, PluginIntegrity,
		PluginTampered, PluginBusy, PluginConfirm, PluginArchiveInvalid, PluginTooLarge, PluginDenied,
		PluginIO, PluginFetchFailed, PluginStartFailed, PluginCrashed, PluginProtocol,
		PluginPlatformUnsupported, PluginVersionUnsupported,
		BackendUnreachable, BackendAuthFailed, BackendHostKey, BackendRateLimited, BackendQuota,
		BackendConflict, BackendProtocol, BackendWorldGone, BackendUnsupported, BackendInternal,
		Usage,
	}
}
