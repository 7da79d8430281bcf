// Command eldest elects leaders on etcd from a terminal: it stands in elections,
// watches them, repairs them, and brings a development cluster of its own.
//
// The module is nested so that the embedded etcd server and the command-line
// library stay out of the build lists of those who import Eldest. It uses the
// public rooms only: what the command can do, a program can do.
//
// # Not guaranteed
//
// The tables are for people and may change between releases. Programs read
// --json, to which fields are added but never removed or renamed.
//
// # Exit codes
//
//	0    done; also: ended by SIGINT or SIGTERM as it should
//	1    failed
//	2    bad usage: unknown command or flag, bad arguments; nothing was sent
//	3    leadership or the session was lost (campaign, run)
//	4    nobody leads (leader, resign, transfer), or the candidate is not in the queue (resign, transfer)
//	5    nothing was violated, but a part of the run proves nothing (chaos)
//	6    refused, and the leader leads on (transfer)
//	130  interrupted: nothing could be judged (demo, service), or not all was measured or tried (bench, chaos)
//
// What "eldest run", with --exit-code and without, makes of its program's end is in its
// --help.
//
// # Adding a command
//
// A command is a function newXxxCmd() *cobra.Command in a file of its own, mounted in
// root.go in one of the groups of --help; those of the laboratory are mounted by package
// lab. It writes to cmd.OutOrStdout() and cmd.ErrOrStderr(), ends when cmd.Context() does
// (the first SIGINT or SIGTERM; the second one kills), takes --json from
// cli.WantsJSON(cmd), and returns cli.Exit(code, err) where a code other than 0 and 1 is
// promised. An error from RunE exits 1; an error before RunE (flags, arguments) or one made
// with cli.Usagef exits 2.
package main
