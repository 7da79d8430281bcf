package redispeer

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Writes is the number of changes of the servers' data. Redis counts commands, and changes since the last
// snapshot only; so the changes are derived: extensions, entries and deletions are commands, which the
// scripts call only if the lock is the caller's, and a key was created if it exists, has expired or was
// deleted.
func (s *servers) Writes(ctx context.Context) (int64, error) {
	var sum int64
	for _, c := range s.clients {
		n, err := writes(ctx, c)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

func writes(ctx context.Context, c *redis.Client) (int64, error) {
	info, err := c.InfoMap(ctx, "commandstats", "stats", "keyspace").Result()
	if err != nil {
		return 0, err
	}
	// number returns a number of a section's line: all of it, or the field of that name. Lines of what
	// has not happened yet are missing.
	number := func(section, line, field string) int64 {
		text := info[section][line]
		if field != "" {
			_, text, _ = strings.Cut(","+text, ","+field+"=")
			text, _, _ = strings.Cut(text, ",")
		}
		n, parseErr := strconv.ParseInt(text, 10, 64)
		if parseErr != nil && text != "" {
			err = fmt.Errorf("line %s of Redis' INFO: %w", line, parseErr)
		}
		return n
	}
	commands := func(name string) int64 { return number("Commandstats", "cmdstat_"+name, "calls") }
	created := number("Keyspace", "db0", "keys") + number("Stats", "expired_keys", "") + commands("del")
	return commands("pexpire") + commands("rpush") + commands("del") + created, err
}
