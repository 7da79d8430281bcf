package pointer_test

import (
	"fmt"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/examples/customise/internal/stage"
	"github.com/eldest-io/eldest/examples/customise/pointer"
)

// Three candidates, the one in the middle of etcd's own kind. Each of ours learns from the
// pointer whom to watch; etcd decides who wins.
func Example() {
	ctx, client, stop := stage.Start()
	defer stop()

	leaders := make(chan *election.Leadership)
	stand := func(name string, cfg election.Config) (leave func()) {
		cfg.Election, cfg.Value = "jobs", []byte(name)
		candidate, leave := stage.Enter(ctx, client, cfg)
		stage.Must(candidate.Register(ctx))
		go func() {
			leadership, err := candidate.Await(ctx)
			if err == nil {
				leaders <- leadership
			}
		}()
		return leave
	}
	defer stand("anna", election.Config{Queue: pointer.Queue{}})()
	defer stand("bert", election.Config{})() // does not move the pointer
	defer stand("carl", election.Config{Queue: pointer.Queue{}})()

	for range 3 {
		leadership := <-leaders
		fmt.Printf("%s leads\n", stage.Must(client.Get(ctx, leadership.Key())).Kvs[0].Value)
		if err := leadership.Resign(ctx); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// anna leads
	// bert leads
	// carl leads
}
