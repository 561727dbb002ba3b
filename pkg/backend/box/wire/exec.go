package wire

import (
	"context"
	"net/http"
)

// ExecResult is the answer of a buffered command. Text that is not UTF-8 does
// not survive the way: scripts print base64.
type ExecResult struct {
	ExitCode int    `json:"exit_code"`
	Stdout   string `json:"output"`
	Stderr   string `json:"error"`
}

// Exec runs a short command and gives its output. argv is stored by the service
// and must hold no secret and no content of files. folder is absolute; "" = the
// workspace. Ending ctx does not end the command.
func (c *Client) Exec(ctx context.Context, id string, argv []string, folder string) (ExecResult, error) {
	path, err := boxPath(id, "/exec")
	if err != nil {
		return ExecResult{}, err
	}
	k, err := jsonCall(http.MethodPost, path, execBody{Command: argv, Folder: folder})
	if err != nil {
		return ExecResult{}, &Error{Text: err.Error(), Err: err}
	}
	k.limit = execLimit
	reply := struct {
		ExecResult
		Code *int `json:"exit_code"`
	}{}
	if err := c.do(ctx, k, &reply); err != nil {
		return ExecResult{}, err
	}
	if reply.Code == nil {
		return ExecResult{}, &Error{Status: http.StatusOK, Sent: true, Corrupt: true,
			Text: "the service answered a command without its exit code"}
	}
	reply.ExitCode = *reply.Code
	return reply.ExecResult, nil
}

type execBody struct {
	Command []string `json:"command"`
	Folder  string   `json:"folder,omitempty"`
}
