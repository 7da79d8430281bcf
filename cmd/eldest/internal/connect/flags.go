package connect

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Flags are the flags with which a command reaches etcd: etcdctl's, by etcdctl's names, so that a
// shell that is set up for etcdctl is set up for eldest.
type Flags struct {
	// Endpoints are host:port, with a scheme or without; at least one.
	Endpoints []string
	// CACert, Cert and Key are PEM files; "" is none. Cert and Key are both set or both empty.
	CACert, Cert, Key string
	SkipVerify        bool
	// User is a name without a password once it is resolved; "" is no user.
	User, Password string
	// DialTimeout bounds one attempt to connect and log in, CommandTimeout a command that sends one
	// query, and the clean-up of one that was asked to end. Invariant: both > 0.
	DialTimeout, CommandTimeout time.Duration
	// FollowMembers adds etcd's members to the endpoints; see elector.Dial.
	FollowMembers bool
	// Namespace is "" or ends in '/'. Keys are read, shown and accepted without it.
	Namespace string

	// Explicit means that the endpoints are those of the flag and never of the environment, for
	// commands that must not reach a cluster by accident.
	Explicit bool
	// resolved prevents a second reading: a list that is set twice grows.
	resolved bool
	// trouble is the newest failure of a connection, as a string.
	trouble atomic.Value
}

// FlagNames are the flags that the environment can set.
var FlagNames = []string{
	"endpoints", "cacert", "cert", "key", "insecure-skip-tls-verify",
	"user", "password", "dial-timeout", "command-timeout", "namespace", "follow-members",
}

// EnvPrefixes are tried in this order. etcdctl's come second, so that a shell can point eldest to
// another cluster than etcdctl.
var EnvPrefixes = []string{"ELDEST_", "ETCDCTL_"}

// VariableOf is the environment variable of a connection flag.
func VariableOf(prefix, flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Help ends the help text of every command that has the flags.
const Help = `
The environment can set connection flags: ELDEST_ENDPOINTS or else ETCDCTL_ENDPOINTS, and so on.`

// AddFlags adds the flags to a command. Their values are valid after Resolve. The environment is not
// read here, because --help would show secrets as defaults.
func AddFlags(cmd *cobra.Command) *Flags {
	f := &Flags{}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.Endpoints, "endpoints", []string{"127.0.0.1:2379"}, "etcd's client addresses")
	fl.StringVar(&f.CACert, "cacert", "", "verify etcd's certificate with this CA bundle")
	fl.StringVar(&f.Cert, "cert", "", "identify with this TLS certificate")
	fl.StringVar(&f.Key, "key", "", "the key of --cert")
	fl.BoolVar(&f.SkipVerify, "insecure-skip-tls-verify", false, "do not verify etcd's certificate; for tests only")
	fl.StringVar(&f.User, "user", "", "etcd user: name:password; or name, with --password or a prompt")
	fl.StringVar(&f.Password, "password", "", "the password of --user, which is then only the name")
	fl.DurationVar(&f.DialTimeout, "dial-timeout", 2*time.Second, "limit of one attempt to connect and log in")
	fl.DurationVar(&f.CommandTimeout, "command-timeout", 5*time.Second, "limit of a short request, and of leaving at the end")
	fl.BoolVar(&f.FollowMembers, "follow-members", true, "also use members that --endpoints does not list")
	fl.StringVar(&f.Namespace, "namespace", "", "directory of the election, ending in '/'")
	return f
}

// Resolve takes what was not given as a flag from the environment and refuses invalid values. It
// sends nothing; every error is one of usage. A second call does nothing.
func (f *Flags) Resolve(cmd *cobra.Command) error {
	if f.resolved {
		return nil
	}
	f.resolved = true
	if err := fromEnvironment(cmd.Flags()); err != nil {
		return err
	}
	for i, ep := range f.Endpoints {
		f.Endpoints[i] = strings.TrimSpace(ep)
		if err := checkEndpoint(f.Endpoints[i]); err != nil {
			// One bad address among good ones would show only in a failover.
			return cli.Usagef("--endpoints: %w", err)
		}
	}
	// The errors name the flags, wherever the values came from.
	switch {
	case len(f.Endpoints) == 0:
		return cli.Usagef("--endpoints is empty")
	case f.DialTimeout <= 0:
		return cli.Usagef("--dial-timeout %v: want more than 0s", f.DialTimeout)
	case f.CommandTimeout <= 0:
		return cli.Usagef("--command-timeout %v: want more than 0s", f.CommandTimeout)
	case (f.Cert == "") != (f.Key == ""):
		return cli.Usagef("--cert and --key must be given together")
	case f.Namespace != "" && !strings.HasSuffix(f.Namespace, "/"):
		// A prefix without '/' can be a part of the election's name instead.
		return cli.Usagef("--namespace %q: a directory ends in '/': %q", f.Namespace, f.Namespace+"/")
	}
	return f.logIn(cmd)
}

// logIn determines the user as etcdctl does: with --password all of --user is the name; otherwise the
// password may follow the name after a colon; on a terminal the user is asked for it.
func (f *Flags) logIn(cmd *cobra.Command) error {
	name, password, inline := strings.Cut(f.User, ":")
	switch {
	case f.User == "" && cmd.Flags().Changed("password"):
		return cli.Usagef("--password without --user")
	case f.User == "":
		// A password in the environment may be meant for another command.
		f.Password = ""
		return nil
	case inline && !cmd.Flags().Changed("password"):
		f.User, f.Password = name, password
	}
	if f.User != "" && f.Password == "" && cli.OnTerminal(cmd.InOrStdin()) {
		var err error
		if f.Password, err = cli.AskPassword(cmd, f.User); err != nil {
			return err
		}
	}
	if f.User == "" || f.Password == "" {
		return cli.Usagef("--user %q has no password: use --user name:password, --password or ELDEST_PASSWORD", f.User)
	}
	return nil
}

// fromEnvironment sets the flags that were not given. An empty variable is the same as none.
func fromEnvironment(fl *pflag.FlagSet) error {
	for _, name := range FlagNames {
		flag := fl.Lookup(name)
		if flag.Changed {
			continue
		}
		for _, prefix := range EnvPrefixes {
			variable := VariableOf(prefix, name)
			value := os.Getenv(variable)
			if value == "" {
				continue
			}
			// FlagSet.Set is not used, because it would mark the flag as given. The error shows no
			// secret: strings cannot fail.
			if err := flag.Value.Set(value); err != nil {
				return cli.Usagef("environment variable %s=%q: %w", variable, value, err)
			}
			break
		}
	}
	return nil
}

// checkEndpoint refuses addresses that no client could ever reach: a command that waits for etcd
// would wait for ever.
func checkEndpoint(ep string) error {
	address := ep
	if scheme, _, ok := strings.Cut(ep, "://"); ok {
		u, err := url.Parse(ep)
		switch {
		case err != nil:
			return fmt.Errorf("%q is no URL", ep)
		case scheme == "unix" || scheme == "unixs":
			return nil
		case scheme != "http" && scheme != "https":
			return fmt.Errorf("%q: want host:port, http://host:port or https://host:port", ep)
		}
		address = u.Host
	} else if strings.HasPrefix(ep, "unix:") || strings.HasPrefix(ep, "unixs:") {
		return nil
	}
	if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
		return fmt.Errorf("%q: want host:port, http://host:port or https://host:port", ep)
	}
	return nil
}
