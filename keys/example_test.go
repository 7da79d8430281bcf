package keys_test

import (
	"errors"
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/keys"
)

func Example() {
	key := keys.Candidate("orders", 0x694d7a1d8c3f0b05)
	begin, end := keys.Range("orders")
	fmt.Println(key)
	fmt.Println(begin, end)

	lease, err := keys.Parse("orders", key)
	fmt.Printf("%x %v\n", lease, err)

	_, err = keys.Parse("orders", "orders/notes")
	fmt.Println(errors.Is(err, eldest.ErrForeignKey))

	fmt.Println(keys.Check("prod/orders"))
	// Output:
	// orders/694d7a1d8c3f0b05
	// orders/ orders0
	// 694d7a1d8c3f0b05 <nil>
	// true
	// invalid input: the election's name "prod/orders" contains '/', so its keys would nest with those of another election; use a name without it and put the directory into a namespace
}
