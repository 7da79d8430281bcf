// Package lease imports nothing that the package of this name must not.
package lease

import (
	_ "go/ast"
	_ "time"
)
