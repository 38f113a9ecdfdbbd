# make help lists the targets. A recipe longer than a line is a script in scripts/.

TOOLS    := $(notdir $(wildcard cmd/runner-*))
PREFIX   ?= /usr/local
FUZZTIME ?= 30s
BENCH    ?=
KERNELS  ?=
LANE     ?=
ATTACK   ?=
TO       := bin/
LINK     :=

COMMIT    := $(shell git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null)
COMMIT_IN := github.com/runner-evidence/runner/cmd/internal/tool.commit

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.1.4

# The BPF objects are committed; only a change in bpf/probes needs this compiler.
export BPF2GO_CC     := clang-19
export BPF2GO_STRIP  := llvm-strip-19
export BPF2GO_CFLAGS := -O2 -g -mcpu=v3 -Wall -Werror

.PHONY: all build demo test test-more test-bare attack test-kernels interop check generate golden fuzz bench install deb clean help

all: build

build: ## build the tools into bin/ (no clang needed)
	CGO_ENABLED=0 go build -trimpath -tags urfave_cli_no_docs -ldflags "-X $(COMMIT_IN)=$(COMMIT) $(LINK)" -o $(TO) $(TOOLS:%=./cmd/%)

demo: build ## measure a run (root) or replay a recorded one, verify it and explain it
	@sh scripts/demo.sh

test: build ## the tests, in minutes; as root the privileged ones too, where a skip is a failure
	@sh scripts/test.sh

test-more: build ## vet, the longer tests (scripts/lib/more-tests), other kernels if they are here
	@sh scripts/test.sh --more

test-bare: ## as root: make demo, test, install and deb in a bare Debian root (debootstrap)
	@sh scripts/bare.sh

attack: ## as root, try to get false records (testdata/attacks); writes the table of results
	@sh scripts/attack.sh $(ATTACK)

test-kernels: ## boot other kernels in QEMU and check the tools there; KERNELS="6.1 6.12" chooses, LANE=-update rewrites the results
	@sh scripts/kernels.sh $(LANE) $(KERNELS)

interop: build ## cosign, an OpenTelemetry Collector and OPA (built once, in many minutes) agree with the tools
	@go run ./testdata/interop

check: ## formatting, vet, staticcheck, known vulnerabilities, module files, shell scripts
	@sh scripts/check.sh $(STATICCHECK) $(GOVULNCHECK)

generate: ## rebuild the BPF objects (clang-19, llvm-strip-19); GENERATE=--compare fails on a difference
	@sh scripts/generate.sh $(GENERATE)

golden: ## rewrite every golden file, vector and generated table; read the difference
	@sh scripts/golden.sh

fuzz: ## run every fuzz target for FUZZTIME each
	@sh scripts/fuzz.sh $(FUZZTIME)

bench: build ## print the table of costs, targets and peers (root); BENCH=short is quick, BENCH=json for testdata/bench/results
	@go run ./testdata/bench $(BENCH)

install: build ## into DESTDIR/PREFIX: the tools, manual pages, completions for bash, zsh and fish
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(TOOLS:%=bin/%) $(DESTDIR)$(PREFIX)/bin
	@sh scripts/manual.sh $(DESTDIR)$(PREFIX)/share

deb: ## build bin/runner-evidence_VERSION_ARCH.deb; GROUP=NAME lets this group run runner-capture without root
	@sh scripts/deb.sh $(GROUP)

clean: ## remove bin/ and what make demo left
	rm -rf bin demo-run.tar.gz demo-call.tar.gz

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-12s %s\n", $$1, $$2}' Makefile
