package job

// For tests of both ways to find children.
var (
	AskAll   = askAll
	Children = children
)
