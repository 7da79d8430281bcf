// Package keys imports what the package of this name must not.
package keys

import (
	_ "strings"
	_ "testing" // refused
	_ "time"    // refused
	_ "unsafe"  // refused

	_ "github.com/eldest-io/eldest"
	_ "github.com/eldest-io/eldest/lease" // refused
	_ "github.com/eldest-io/heavy"        // refused
)
