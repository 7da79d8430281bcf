// Package gate holds back what is about to be sent.
package gate
