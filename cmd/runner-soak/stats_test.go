package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestGoldenNumbers: the published table of c passes in n runs, to its four digits.
func TestGoldenNumbers(t *testing.T) {
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 0.00005 {
			t.Errorf("%s is %g, expected %g", what, got, want)
		}
	}
	for _, c := range []struct {
		c, n      int
		wilson    [2]float64
		unbiased  []float64 // k = 2, 4, 8
		posterior [4]float64
		sentence  string
	}{
		{10, 10, [2]float64{0.7225, 1}, []float64{1, 1, 1}, [4]float64{0.9167, 0.8462, 0.7333, 0.5789}, "10 of 10 passes support at least 72 % per run"},
		{7, 10, [2]float64{0.3968, 0.8922}, []float64{0.4667, 0.1667, 0}, [4]float64{0.6667, 0.4615, 0.2418, 0.0851}, "7 of 10 passes support at least 39 % per run"},
		{3, 3, [2]float64{0.4385, 1}, []float64{1}, [4]float64{0.8, 0.6667, 0.5, 0.3333}, "3 of 3 passes support at least 43 % per run"},
		{19, 20, [2]float64{0.7639, 0.9911}, []float64{0.9, 0.8, 0.6}, [4]float64{0.9091, 0.83, 0.7, 0.5172}, "19 of 20 passes support at least 76 % per run"},
	} {
		name := fmt.Sprintf("%d of %d", c.c, c.n)
		ends := wilson(c.c, c.n)
		near(name+" from", ends[0], c.wilson[0])
		near(name+" to", ends[1], c.wilson[1])
		for i, want := range c.unbiased {
			near(name+" unbiased", unbiased(c.c, c.n, ks[i+1]), want)
		}
		for i, want := range c.posterior {
			near(name+" posterior", posterior(c.c, c.n, ks[i]), want)
		}
		if s := supports(c.c, c.n); !strings.HasPrefix(s, c.sentence) {
			t.Errorf("%s: %s", name, s)
		}
	}
	if s := supports(0, 3); !strings.HasPrefix(s, "0 of 3 passes support at most 57 % per run") { // [0, 0.5615]
		t.Error(s)
	}
	if s := supports(0, 0); !strings.Contains(s, "nothing") {
		t.Error(s)
	}
}

// witness computes the same in another language: binomials and Beta functions by factorials, the
// interval with decimals.
const witness = `
from fractions import Fraction as F
from math import comb, factorial as f
from decimal import Decimal as D, getcontext
getcontext().prec = 80
z = D("1.959963984540054")
beta = lambda a, b: F(f(a - 1) * f(b - 1), f(a + b - 1))
for n in list(range(1, 26)) + [100, 1000]:
    for c in range(n + 1) if n < 100 else [0, 1, n // 3, n - 1, n]:
        p = D(c) / n
        mid, root, below = p + z * z / (2 * n), z * (p * (1 - p) / n + z * z / (4 * n * n)).sqrt(), 1 + z * z / n
        out = [float((mid - root) / below) if c else 0.0, float((mid + root) / below) if c < n else 1.0]
        for k in (1, 2, 4, 8):
            out.append(float(F(comb(c, k), comb(n, k))) if k <= n else -1.0)
            out.append(float(beta(1 + c + k, 1 + n - c) / beta(1 + c, 1 + n - c)))
        print(c, n, *(x.hex() for x in out))
`

// TestWitness: every number is the nearest double, as another program computes it.
func TestWitness(t *testing.T) {
	testkit.Programs(t, "the statistics, computed by another program", "python3")
	out, err := exec.Command("python3", "-c", witness).Output()
	testkit.Must(t, err)
	lines := 0
	for scan := bufio.NewScanner(bytes.NewReader(out)); scan.Scan(); lines++ {
		words := strings.Fields(scan.Text())
		var c, n int
		_, err := fmt.Sscan(words[0]+" "+words[1], &c, &n)
		testkit.Must(t, err)
		ends := wilson(c, n)
		have := []float64{ends[0], ends[1]}
		for _, k := range ks {
			u := -1.0
			if k <= n {
				u = unbiased(c, n, k)
			}
			have = append(have, u, posterior(c, n, k))
		}
		for i, w := range words[2:] {
			var want float64
			_, err := fmt.Sscanf(w, "%g", &want)
			testkit.Must(t, err)
			if have[i] != want {
				t.Errorf("%d of %d: number %d is %x, the witness has %s", c, n, i, have[i], w)
			}
		}
	}
	if lines != 360 {
		t.Errorf("the witness gave %d lines", lines)
	}
}

// TestSeeds: each run has its own seed, which fits into the integers that JSON readers keep.
func TestSeeds(t *testing.T) {
	known := map[uint64]bool{}
	for seed := range uint64(20) {
		for i := range 200 {
			s := seedOf(seed, i)
			if s > maxSeed || known[s] {
				t.Fatalf("seed %d, run %d: %d", seed, i, s)
			}
			known[s] = true
		}
	}
	// printf runner-soak:7:1 | sha256sum, the first 16 digits, divided by 2048
	if got := seedOf(7, 1); got != 0x8fd4ea49fbaf4da6>>11 {
		t.Errorf("%#x", got)
	}
}
