// Command eldest elects leaders on etcd from a terminal: it is a candidate in elections, watches and
// repairs them, and runs a development etcd cluster.
//
// The module is nested so that the embedded etcd server and the command-line library stay out of the
// build lists of modules that import Eldest. The commands for operators use only the public packages of
// Eldest, so a program can do everything that they do; only the keeper of "eldest run" is started by
// internal/subprocess.
//
// # Not guaranteed
//
// The tables and the texts of errors are for people and may change between releases. Programs use
// --json: fields are added to it, but never removed or renamed.
//
// # JSON
//
// With --json a command writes one JSON value to stdout, or one a line if it runs until a signal. "eldest
// run" writes its lines to stderr, because stdout is its program's. In bench and chaos --json may name a
// file instead.
//
// A failure is one object, the last line of stderr:
//
//	error      why the command failed
//	exit_code  the exit code
//	advice     what the user can do; left out where there is no advice
//
// Lines before it are notices. "eldest run" writes the object as its event "failed", with more fields.
// There is no object where the exit code repeats what was written or is that of another program: a
// verdict (demo, service, chaos), an interrupted measurement, run --exit-code, trace -- CMD.
//
// # Exit codes
//
//	0    success, or a normal end after SIGINT or SIGTERM
//	1    failed
//	2    bad usage: unknown command or flag, bad arguments; nothing was sent
//	3    leadership or the session was lost (campaign, run)
//	4    no candidate leads (leader, evict, transfer), or the candidate is not in the queue (evict, transfer)
//	5    no violation was found, but a part of the run proves nothing (chaos)
//	6    refused; the leader still leads (transfer)
//	130  interrupted: there is no verdict (demo, service), or not everything was measured or tried (bench, chaos)
//
// docs/run.md has the exit codes of "eldest run", with --exit-code and without.
//
// # Adding a command
//
// A command is a function newXxxCmd() *cobra.Command in a file of its own. It is mounted in root.go,
// in one of the groups of --help; package lab mounts the commands of the laboratory. Its Args are
// cli.Arguments, which names what is missing. It writes to
// cmd.OutOrStdout() and cmd.ErrOrStderr(), and ends when cmd.Context() ends (at the first SIGINT or
// SIGTERM; a second one kills the process). It takes --json from cli.WantsJSON(cmd), and returns
// cli.Exit(code, err) for a documented exit code other than 0 and 1. An error from RunE exits 1; an
// error before RunE (flags, arguments) or one made with cli.Usagef exits 2. cli.Advise adds advice.
package main
