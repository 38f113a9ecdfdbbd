// Package schemas is the contract of the runner: the types of every line and
// document, their JSON form and their validation. The specification is in the same
// folder: README.md is its index, with the words that it uses. Every word that two
// places must agree on is a row of a table here: Counters, Facts, Notes, Reasons,
// EventTypes, Operations, Ambiguities, Filters, Environment, Shims, Streams, Layers.
// The specification's tables are written from these.
//
// The sub-packages: stream frames lines, bundle frames archives, archive opens and
// checks an archive for every tool, verdict is what runner-verify says about one.
// For tests: testkit, archivetest (archives) and layertest (a layer that no run has).
package schemas
