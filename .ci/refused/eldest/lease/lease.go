// Package lease imports nothing that the room of this name must not.
package lease

import (
	_ "go/ast"
	_ "time"
)
