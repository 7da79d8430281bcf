package main

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// connFlags are the flags with which a command reaches etcd: etcdctl's, by
// etcdctl's names, so that a shell that is set up for it is set up for us.
type connFlags struct {
	// endpoints are host:port, with a scheme or without; at least one.
	endpoints []string
	// cacert, cert and key are PEM files; "" where there is none. cert and key are
	// both there or neither is.
	cacert, cert, key string
	skipVerify        bool
	// user is a name without a password once it is resolved; "" is nobody.
	user, password string
	// dialTimeout bounds one attempt to connect and log in, commandTimeout a
	// command that asks once, and the clean-up of one that was told to end.
	// Invariant: both > 0.
	dialTimeout, commandTimeout time.Duration
	// namespace is "" or ends in '/'. Keys are read, shown and taken without it.
	namespace string

	// explicit says that the endpoints are those of the flag and never of the
	// environment, where a command must not reach a cluster by accident.
	explicit bool
	// resolved guards against a second reading: a list that is set twice grows.
	resolved bool
	// trouble is the newest failure of a connection, as a string.
	trouble atomic.Value
}

// connFlagNames are the flags that the environment can set.
var connFlagNames = []string{
	"endpoints", "cacert", "cert", "key", "insecure-skip-tls-verify",
	"user", "password", "dial-timeout", "command-timeout", "namespace",
}

// envPrefixes are asked in this order. etcdctl's come second, so that a shell can
// point us elsewhere than etcdctl.
var envPrefixes = []string{"ELDEST_", "ETCDCTL_"}

// connHelp ends the help text of every command that has the flags.
const connHelp = `
A connection flag that is not given is read from the environment: --endpoints from
ELDEST_ENDPOINTS or else ETCDCTL_ENDPOINTS, --dial-timeout from
ELDEST_DIAL_TIMEOUT or else ETCDCTL_DIAL_TIMEOUT, and so on.`

// addConnFlags gives a command the flags. The values mean something after resolve.
// The environment is not read here: --help would show secrets as defaults.
func addConnFlags(cmd *cobra.Command) *connFlags {
	f := &connFlags{}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.endpoints, "endpoints", []string{"127.0.0.1:2379"}, "etcd's client addresses, comma separated")
	fl.StringVar(&f.cacert, "cacert", "", "verify etcd's certificate with this CA bundle")
	fl.StringVar(&f.cert, "cert", "", "identify with this TLS certificate")
	fl.StringVar(&f.key, "key", "", "the key of --cert")
	fl.BoolVar(&f.skipVerify, "insecure-skip-tls-verify", false, "do not verify etcd's certificate; for tests only")
	fl.StringVar(&f.user, "user", "", "etcd user as name[:password]; the password may be in --password, and is asked for on a terminal")
	fl.StringVar(&f.password, "password", "", "the password of --user; then --user is the name and nothing else")
	fl.DurationVar(&f.dialTimeout, "dial-timeout", 2*time.Second, "limit of one attempt to connect and log in")
	fl.DurationVar(&f.commandTimeout, "command-timeout", 5*time.Second, "limit of a short request, and of leaving at the end")
	fl.StringVar(&f.namespace, "namespace", "", "directory of the election, ending in '/'; election names have none")
	return f
}

// resolve takes what was not given as a flag from the environment and refuses
// what cannot work. It sends nothing; every error is one of usage. Once is enough.
func (f *connFlags) resolve(cmd *cobra.Command) error {
	if f.resolved {
		return nil
	}
	f.resolved = true
	if err := fromEnvironment(cmd.Flags()); err != nil {
		return err
	}
	for i, ep := range f.endpoints {
		f.endpoints[i] = strings.TrimSpace(ep)
		if err := checkEndpoint(f.endpoints[i]); err != nil {
			// One bad address among good ones would show only in a failover.
			return usageErrorf("--endpoints: %w", err)
		}
	}
	// In the words of the flags, wherever the values came from.
	switch {
	case len(f.endpoints) == 0:
		return usageErrorf("--endpoints: there is none")
	case f.dialTimeout <= 0 || f.commandTimeout <= 0:
		return usageErrorf("--dial-timeout and --command-timeout must be positive")
	case (f.cert == "") != (f.key == ""):
		return usageErrorf("--cert and --key go together")
	case f.namespace != "" && !strings.HasSuffix(f.namespace, "/"):
		// Nothing is lost: a prefix without '/' is part of the election's name.
		return usageErrorf("--namespace %q: a directory ends in '/': %q", f.namespace, f.namespace+"/")
	}
	return f.logIn(cmd)
}

// logIn settles who the user is, as etcdctl does: --password makes all of --user
// the name; otherwise the password may follow the name after a colon; on a terminal
// it is asked for.
func (f *connFlags) logIn(cmd *cobra.Command) error {
	name, password, inline := strings.Cut(f.user, ":")
	switch {
	case f.user == "" && cmd.Flags().Changed("password"):
		return usageErrorf("--password without --user")
	case f.user == "":
		// A password in the environment may be meant for another command.
		f.password = ""
		return nil
	case inline && !cmd.Flags().Changed("password"):
		f.user, f.password = name, password
	}
	if f.user != "" && f.password == "" && onTerminal(cmd.InOrStdin()) {
		var err error
		if f.password, err = askPassword(cmd, f.user); err != nil {
			return err
		}
	}
	if f.user == "" || f.password == "" {
		return usageErrorf("--user %q has no password: use --user name:password, --password or ELDEST_PASSWORD", f.user)
	}
	return nil
}

// fromEnvironment sets the flags that were not given. An empty variable is as
// good as none.
func fromEnvironment(fl *pflag.FlagSet) error {
	for _, name := range connFlagNames {
		flag := fl.Lookup(name)
		if flag.Changed {
			continue
		}
		for _, prefix := range envPrefixes {
			variable := variableOf(prefix, name)
			value := os.Getenv(variable)
			if value == "" {
				continue
			}
			// Not through FlagSet.Set, which would mark the flag as given. No
			// secret is shown: strings cannot fail.
			if err := flag.Value.Set(value); err != nil {
				return usageErrorf("environment variable %s=%q: %w", variable, value, err)
			}
			break
		}
	}
	return nil
}

// checkEndpoint refuses addresses that no client could ever reach: whoever waits
// for etcd would wait for ever.
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
