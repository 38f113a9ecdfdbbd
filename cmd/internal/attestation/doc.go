// Package attestation writes and checks signed statements about the archive of a run: in-toto
// Statement v1 (https://in-toto.io/Statement/v1) in a DSSE envelope (protocol 1.0.2).
//
// A statement is a function of the archive: New makes it from what was read of one. So a
// statement is checked by making it again and comparing, and nothing that it says is believed
// for its own sake. A signature says who said it, never that it is true.
package attestation
