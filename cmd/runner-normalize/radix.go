package main

// span is a piece of text that belongs together: whole lines of one task.
type span struct {
	key uint32 // task, or its place once that is known
	off uint32 // bytes from the start of its run
	n   uint32 // bytes
}

// sortSpans sorts by key and keeps the order of equal keys. It uses spare, which
// must be as long, and returns whichever of the two holds the result.
func sortSpans(a, spare []span) (sorted, other []span) {
	const bits = 11
	var all, max uint32
	done := true
	for i, s := range a {
		max |= s.key
		if i > 0 && s.key < all {
			done = false
		}
		all = s.key
	}
	for shift := 0; !done && max>>shift != 0; shift += bits {
		var start [1 << bits]uint32
		for _, s := range a {
			start[s.key>>shift&(1<<bits-1)]++
		}
		sum := uint32(0)
		for i, n := range start {
			start[i] = sum
			sum += n
		}
		for _, s := range a {
			d := &start[s.key>>shift&(1<<bits-1)]
			spare[*d] = s
			*d++
		}
		a, spare = spare, a
	}
	return a, spare
}
