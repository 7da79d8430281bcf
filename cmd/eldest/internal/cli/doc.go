// Package cli is what all commands of eldest have in common: the root and its groups, exit
// codes, errors of usage, progress, questions, and text from outside that is safe to show.
package cli
