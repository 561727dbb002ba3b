package remotefs

import "context"

func (c *core) WriteText(ctx context.Context, at At, w WriteRequest) (WriteOutcome, error) {
	return WriteOutcome{}, unsupported("write", at)
}

func (c *core) EditText(ctx context.Context, at At, e EditRequest) (EditOutcome, error) {
	return EditOutcome{}, unsupported("edit", at)
}
