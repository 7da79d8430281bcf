package keys

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/eldest-io/eldest"
)

// MaxName is the longest name of an election, in bytes. etcd has no limit of its
// own below the request size; a name is repeated in every key and every
// comparison, so a kilobyte is generous.
const MaxName = 1024

const separator = "/"

// Check returns nil when name may name an election, else an error that wraps
// eldest.ErrInvalid and says what is wrong with it.
func Check(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the election has no name", eldest.ErrInvalid)
	case len(name) > MaxName:
		return fmt.Errorf("%w: the election's name has %d bytes, at most %d are allowed",
			eldest.ErrInvalid, len(name), MaxName)
	case strings.Contains(name, separator):
		return fmt.Errorf("%w: the election's name %q contains '/', so its keys would nest with those of another election; "+
			"use a name without it and put the directory into a namespace", eldest.ErrInvalid, name)
	}
	return nil
}

// Prefix returns what every candidate key of the election starts with. name must
// have passed Check.
func Prefix(name string) string { return name + separator }

// Candidate returns the key of the candidate that holds lease in the election.
// name must have passed Check, lease must be positive.
func Candidate(name string, lease int64) string {
	return Prefix(name) + strconv.FormatInt(lease, 16)
}

// mailboxes is what the key of every mailbox starts with. No election's range holds
// such a key: its name would have to be empty or have a slash in it.
const mailboxes = "/eldest/ask/"

// newest is what the key of every pointer starts with; see mailboxes.
const newest = "/eldest/newest/"

// Mailbox returns the key of the mailbox of the candidate that holds lease in the
// election: where it can be asked for something. It lies outside the election's range,
// so nobody takes it for a candidate. name must have passed Check, lease must be positive.
func Mailbox(name string, lease int64) string {
	return mailboxes + Candidate(name, lease)
}

// Newest returns the key of an election's pointer, which names the candidate that registered
// last. It lies outside the election's range. name must have passed Check.
func Newest(name string) string { return newest + name }

// beats is what the key of every session's heartbeats starts with; see mailboxes.
const beats = "/eldest/beat/"

// Beat returns the key of the heartbeats of the session that holds lease, which must be positive. It
// lies outside every election's range.
func Beat(lease int64) string { return beats + strconv.FormatInt(lease, 16) }

// Beats returns the half-open range [begin, end) that holds the heartbeats of all sessions.
func Beats() (begin, end string) { return beats, End(beats) }

// MailboxRange returns the half-open range [begin, end) that holds the mailboxes of the
// election's candidates and of no other's.
func MailboxRange(name string) (begin, end string) {
	begin = mailboxes + Prefix(name)
	return begin, End(begin)
}

// ParseMailbox returns the lease of the candidate whose mailbox in the election the key
// is. For any other key it returns an error that wraps eldest.ErrForeignKey.
func ParseMailbox(name, key string) (lease int64, err error) {
	inner, ok := strings.CutPrefix(key, mailboxes)
	if !ok {
		return 0, fmt.Errorf("%w: %q: no mailbox", eldest.ErrForeignKey, key)
	}
	return Parse(name, inner)
}

// Range returns the half-open range [begin, end) that holds the keys of the
// election and of no other.
func Range(name string) (begin, end string) {
	begin = Prefix(name)
	return begin, End(begin)
}

// End returns the smallest key that is greater than every key with the given
// prefix: the prefix, without trailing 0xFF bytes, its last byte plus one. Where
// nothing is left (the prefix is empty or all 0xFF) there is no such key, and
// End returns "\x00", which etcd reads as "to the end of all keys".
func End(prefix string) string {
	// By hand: the strings package trims runes, and these are bytes.
	for last := len(prefix) - 1; last >= 0; last-- {
		if prefix[last] < 0xFF {
			return prefix[:last] + string([]byte{prefix[last] + 1})
		}
	}
	return "\x00"
}

var errShape = errors.New("want <election>/<lease id in lower-case hex>")

// Parse returns the lease that a candidate key of the election names. For any
// other key, one that Candidate would not have made, it returns an error that
// wraps eldest.ErrForeignKey.
func Parse(name, key string) (lease int64, err error) {
	id, ok := strings.CutPrefix(key, Prefix(name))
	if !ok {
		return 0, fmt.Errorf("%w: %q: %w", eldest.ErrForeignKey, key, errShape)
	}
	lease, err = strconv.ParseInt(id, 16, 64)
	// Parsing is more liberal than printing (upper case, padding, a sign): only
	// what prints back to the same key is a candidate's.
	if err != nil || lease <= 0 || Candidate(name, lease) != key {
		return 0, fmt.Errorf("%w: %q: %w", eldest.ErrForeignKey, key, errShape)
	}
	return lease, nil
}
