package identity_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/identity"
)

// A node writes its identity. Another node reads it, and a value that only an older program could
// have written, and one that is not an identity.
func ExampleProtobuf() {
	var codec identity.Protobuf
	value, err := codec.Encode(identity.Identity{
		NodeID: "n1", Address: "10.0.0.1:7000", Instance: "first life", TTL: 10 * time.Second,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	leader, err := codec.Decode(value)
	fmt.Println(leader.NodeID, "at", leader.Address, err)

	older, err := codec.Decode([]byte{0x0a, 2, 'n', '0', 0x10, 60})
	fmt.Printf("%s, %v, address %q, %v\n", older.NodeID, older.TTL, older.Address, err)

	_, err = codec.Decode([]byte("http://10.0.0.9"))
	fmt.Println("foreign:", errors.Is(err, eldest.ErrForeignValue))
	// Output:
	// n1 at 10.0.0.1:7000 <nil>
	// n0, 1m0s, address "", <nil>
	// foreign: true
}
