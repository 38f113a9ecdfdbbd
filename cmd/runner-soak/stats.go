package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
)

// ks are the numbers of runs in a row that a report has.
var ks = [...]int{1, 2, 4, 8}

// z is the quantile of the normal distribution for a two-sided interval of 95 %.
const z = "1.959963984540054"

// precision of the one square root, in bits: the result is rounded once more, to 53.
const precision = 256

// wilson is the Wilson interval of c passes in n runs, n > 0:
// (2c + z² ± z·sqrt(z² + 4c(n-c)/n)) / (2(n + z²)).
func wilson(c, n int) [2]float64 {
	number := func(v *big.Rat) *big.Float { return new(big.Float).SetPrec(precision).SetRat(v) }
	zr, ok := new(big.Rat).SetString(z)
	if !ok {
		panic("z is no number")
	}
	z2 := new(big.Rat).Mul(zr, zr)
	under := new(big.Rat).Add(z2, big.NewRat(4*int64(c)*int64(n-c), int64(n)))
	root := new(big.Float).SetPrec(precision).Sqrt(number(under))
	root.Mul(root, number(zr))
	middle := number(new(big.Rat).Add(big.NewRat(2*int64(c), 1), z2))
	below := number(new(big.Rat).Add(big.NewRat(2*int64(n), 1), new(big.Rat).Mul(big.NewRat(2, 1), z2)))
	end := func(sum *big.Float) float64 {
		f, _ := sum.Quo(sum, below).Float64()
		return f
	}
	ends := [2]float64{end(new(big.Float).SetPrec(precision).Sub(middle, root)), end(new(big.Float).SetPrec(precision).Add(middle, root))}
	if c == 0 { // exactly, where the root is rounded
		ends[0] = 0
	}
	if c == n {
		ends[1] = 1
	}
	return ends
}

// unbiased is C(c,k)/C(n,k), the share of the sets of k runs that pass whole; k <= n.
func unbiased(c, n, k int) float64 {
	p := big.NewRat(1, 1)
	for i := range k {
		p.Mul(p, big.NewRat(int64(max(c-i, 0)), int64(n-i)))
	}
	f, _ := p.Float64()
	return f
}

// posterior is B(1+c+k, 1+n-c)/B(1+c, 1+n-c), the expectation of p^k after c passes in n runs,
// where every p was equally likely before.
func posterior(c, n, k int) float64 {
	p := big.NewRat(1, 1)
	for i := range k {
		p.Mul(p, big.NewRat(int64(1+c+i), int64(2+n+i)))
	}
	f, _ := p.Float64()
	return f
}

// maxSeed: JSON readers keep integers exactly up to here.
const maxSeed = 1<<53 - 1

// seedOf is the seed of a run: the first 53 bits of a digest, so that those of different runs have
// nothing to do with each other.
func seedOf(seed uint64, index int) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "runner-soak:%d:%d", seed, index))
	return binary.BigEndian.Uint64(sum[:8]) >> 11
}

// supports is the sentence that says what the passes are worth.
func supports(c, n int) string {
	if n == 0 {
		return "No run could be judged: this supports nothing."
	}
	ends := wilson(c, n)
	if c == 0 {
		return fmt.Sprintf("0 of %d passes support at most %d %% per run (95 %% interval after Wilson).", n, int(math.Ceil(100*ends[1])))
	}
	return fmt.Sprintf("%d of %d passes support at least %d %% per run (95 %% interval after Wilson).", c, n, int(100*ends[0]))
}
