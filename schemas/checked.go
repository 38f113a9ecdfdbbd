package schemas

import "iter"

// Total adds counts; false if the sum has no room in 64 bits. What a stage or an archive
// counts is never added in another way: a sum that wraps can say anything.
func Total(counts ...uint64) (sum uint64, ok bool) {
	for _, n := range counts {
		if sum += n; sum < n {
			return 0, false
		}
	}
	return sum, true
}

// TotalOf is Total of a sequence.
func TotalOf(counts iter.Seq[uint64]) (sum uint64, ok bool) {
	ok = true
	counts(func(n uint64) bool {
		sum, ok = Total(sum, n)
		return ok
	})
	return sum, ok
}
