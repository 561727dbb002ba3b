package script

// Send asks for the content of files below root, whose names follow on the input,
// each ended by a NUL. After the answer of ReadDone come an archive of tar, a line
// with the nonce, and a line with the SHA-256 of each file. Without content there
// is no archive.
func Send(root string, content bool) Call { return call("send", Word(root), choice(!content, "n")) }

// Receive asks for the publication below root of the archive that follows on the
// input; receive.sh says what is in it. ReadReceived reads the answer.
func Receive(root string) Call { return call("receive", Word(root)) }

// ReadReceived reads the answer of Receive: what could not be published, a line
// each.
func ReadReceived(a *Answer, c Call) (trouble string, err error) {
	f, err := a.Head(c.Nonce, 1)
	if err != nil {
		return "", err
	}
	return f[0], nil
}
