//go:build linux

package cmd_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/still"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// clockPrograms read every clock and every source of random numbers that the shims cover. Each prints other values each time without them.
var clockPrograms = map[string]struct{ needs, name, text string }{
	"Node, CommonJS": {"node", "a.cjs", `
const { randomUUID, randomBytes, randomInt } = require('crypto');
console.log(new Date().toISOString(), Date.now(), Date(), performance.now(), process.hrtime(), process.hrtime.bigint());
console.log(Math.random(), randomUUID(), randomBytes(4).toString('hex'), randomInt(1000000), crypto.getRandomValues(new Uint32Array(2)), crypto.randomUUID());
setTimeout(() => console.log('first', Date.now()), 5);
const second = () => setTimeout(() => console.log('second', Date.now()), 30);
let n = 0; const i = setInterval(() => { console.log('each', Date.now()); if (++n === 3) { clearInterval(i); second(); } }, 10);
console.log(new Date() instanceof Date, new Date(5).getTime(), new (class extends Date {})(7).getTime(), Object.prototype.toString.call(new Date()), Date.UTC(2020, 1));
`},
	"Node, timers side by side": {"node", "t.cjs", `
setTimeout(() => console.log('second', Date.now()), 30); setTimeout(() => console.log('first', Date.now()), 5);
let n = 0; const i = setInterval(() => { console.log('each', Date.now()); if (++n === 4) clearInterval(i); }, 10);
const t = setTimeout(() => console.log('never'), 20); setTimeout(() => clearTimeout(t), 15);
const r = setTimeout(() => console.log('refreshed', Date.now()), 12); setTimeout(() => r.refresh(), 11);
const u = setTimeout(() => console.log('closed'), 25); setTimeout(() => u.close(), 24);
for (let k = 0; k < 20; k++) setTimeout((k) => process.stdout.write(k + ' '), 18 - (k % 7), k);
let busy = setInterval(() => { const e = process.hrtime(); for (let q = 0; q < 2e6 * Math.random(); q++); }, 3); setTimeout(() => clearInterval(busy), 50);
require('timers/promises').setTimeout(17, 'promised').then((v) => console.log(v, Date.now()));
`},
	"Node, module": {"node", "b.mjs", `
import { randomUUID } from 'node:crypto'; import { setTimeout as sleep } from 'node:timers/promises'; import { promisify } from 'node:util'; import { spawnSync } from 'node:child_process';
console.log(Date.now(), randomUUID()); await sleep(20); console.log(Date.now()); await promisify(setTimeout)(20); console.log(Date.now());
for (let i = 0; i < 2; i++) process.stdout.write(spawnSync(process.execPath, ['-e', 'console.log(Math.random(), Date.now())']).stdout);
`},
	"Python": {"python3", "c.py", `
import time, datetime, random, uuid, secrets, os, threading, queue, subprocess, sys, pickle
from datetime import datetime as D, date
print(time.time(), time.time_ns(), time.monotonic(), time.monotonic_ns(), time.perf_counter(), time.perf_counter_ns(), time.strftime("%Y-%m-%d"), time.ctime(), time.gmtime().tm_year)
print(D.now(), D.utcnow(), D.today(), date.today(), D.now(datetime.timezone.utc).isoformat(), {"a", "b", "c", "d"})
print(random.random(), random.Random().random(), random.SystemRandom().random(), uuid.uuid4(), uuid.uuid1(), secrets.token_hex(8), os.urandom(4))
time.sleep(0.02); print(time.time())
c = threading.Condition()
with c: print(c.wait_for(lambda: False, timeout=0.02))
try: queue.Queue().get(timeout=0.02)
except queue.Empty: print("empty")
print(isinstance(D.now(), D), isinstance(D.now(), date), type(D.now()) is type(D.fromtimestamp(0)), pickle.loads(pickle.dumps(D.now())), D(2020, 1, 2) - D(2020, 1, 1))
for _ in range(2): print(subprocess.run([sys.executable, "-c", "import random, time; print(random.random(), time.time())"], capture_output=True, timeout=20).stdout)
if os.fork() == 0: print("child", random.random(), time.time(), flush=True); os._exit(0)
os.wait(); print("parent", random.random())
`},
	"Python, asyncio": {"python3", "d.py", `
import asyncio, time
async def main():
    await asyncio.sleep(0.02); print(time.time())
    try: await asyncio.wait_for(asyncio.Event().wait(), 0.02)
    except asyncio.TimeoutError: print("late", time.time())
    await asyncio.gather(asyncio.sleep(0.03), asyncio.sleep(0.01)); print(time.time())
asyncio.run(main())
`},
}

// TestClock: with the same seed and start a program prints the same each time, with others something else, and in a replay what it
// printed when it was recorded, as root and as somebody else, alone and in a box.
func TestClock(t *testing.T) {
	for _, c := range callers(t) {
		for name, p := range clockPrograms {
			t.Run(c.name+" "+name, func(t *testing.T) {
				testkit.Programs(t, name, p.needs)
				dir := c.dir(t)
				file := filepath.Join(dir, p.name)
				testkit.Must(t, os.WriteFile(file, []byte(p.text), 0o644))
				run := func(args ...string) string {
					cmd := c.box(t)
					args = slices.Concat([]string{tool("runner-clock")}, args, []string{"--", p.needs, file})
					cmd.Path, cmd.Args = args[0], args
					o := call(t, cmd)
					if o.code != 0 || o.stderr != "" {
						t.Fatal(o)
					}
					return o.stdout
				}
				given := []string{"--seed", "42", "--start", "2026-01-01T00:00:00Z", "--run-id", "r"}
				first := run(append(given, "-o", dir+"/1")...)
				if second := run(append(given, "-o", dir+"/2")...); second != first || !strings.Contains(first, "17672256") && !strings.Contains(first, "2026") {
					t.Errorf("%s\nand\n%s", first, second)
				}
				same(t, dir+"/1", dir+"/2")
				if third := run("--seed", "43", "--start", "2027-01-01T00:00:00Z"); third == first {
					t.Error("another seed and start change nothing")
				}
				free := run("-o", dir+"/3") // another seed, and now
				if again := run("--replay", dir+"/3", "-o", dir+"/4"); again != free || free == first {
					t.Errorf("%s\nwas replayed as\n%s", free, again)
				}
				a, err := still.Read(dir + "/3")
				testkit.Must(t, err)
				b, err := still.Read(dir + "/4")
				testkit.Must(t, err)
				if n := still.Differ(a.Ticks, b.Ticks); n >= 0 || len(a.Ticks) == 0 || a.Clock.Seed != b.Clock.Seed || a.Clock.Unended != map[string]uint64{"Python": 1}[name] || // the child that ends by os._exit
					a.Clock.Lost != 0 {
					t.Errorf("the ticks differ from %d on", n)
				}
				boxed := c.box(t, "--base", dir, "--fallback", "copy", "--", tool("runner-clock"), "--seed", "42", "--start", "2026-01-01T00:00:00Z", "--", p.needs, p.name)
				other := c.box(t, "--base", dir, "--fallback", "copy", "--", tool("runner-clock"), "--seed", "42", "--start", "2026-01-01T00:00:00Z", "--", p.needs, p.name)
				x, y := call(t, boxed), call(t, other)
				if x.code != 0 || x.stdout != y.stdout || x.stderr != "" {
					t.Errorf("in a box: %v\nand %v", x, y)
				}
			})
		}
	}
}

// TestClockStatus: exit codes as env(1) has them, and what cannot be is told before anything runs.
func TestClockStatus(t *testing.T) {
	c := callers(t)[0]
	dir := c.dir(t)
	testkit.Must(t, os.WriteFile(dir+"/other", []byte("x"), 0o644))
	for _, x := range []struct {
		want int
		args []string
	}{
		{0, []string{"--probe"}}, {0, []string{"--", "true"}}, {7, []string{"--", "sh", "-c", "exit 7"}}, {128 + 9, []string{"--", "sh", "-c", "kill -9 $$"}}, {127, []string{"--", "/none"}}, {126, []string{"--", "/etc"}},
		{125, []string{"--"}}, {125, []string{"--seed", "a b", "--", "true"}}, {125, []string{"--start", "now", "--", "true"}}, {125, []string{"--only", "ruby", "--", "true"}}, {125, []string{"--crypto", "x", "--", "true"}},
		{125, []string{"--replay", dir + "/none", "--", "true"}}, {125, []string{"--replay", dir + "/other", "--", "true"}}, {125, []string{"--replay", dir + "/other", "--seed", "1", "--", "true"}},
		{125, []string{"-o", dir + "/other", "--", "true"}}, {125, []string{"--", tool("runner-box"), "--", "true"}},
		{0, []string{"--seed", "7", "--", "sh", "-c", `test $AGENT_SEED = 7 && test $GOMAXPROCS = 1 && test $UV_THREADPOOL_SIZE = 1 && test $PYTHONHASHSEED = 0 && test $AGENT_EXECUTION_MODE = record && test -n "$AGENT_START_TIME" && echo "$JAVA_TOOL_OPTIONS" | grep -q ActiveProcessorCount=1`}},
	} {
		if o := call(t, command(t, "runner-clock", x.args...)); o.code != x.want || x.want == 125 && o.stderr == "" {
			t.Errorf("%q: %v, expected %d", x.args, o, x.want)
		}
	}
	// What the program writes into the file of ticks is not believed.
	o := call(t, command(t, "runner-clock", "-o", dir+"/bad", "--", "sh", "-c", `echo nothing >>$AGENT_CLOCK_FILE; echo '{"process":"node:0123456789abcdef.0","seq":0,"op":"read","at_ns":[1]}' >>$AGENT_CLOCK_FILE; printf '{"pro' >>$AGENT_CLOCK_FILE`))
	r, err := still.Read(dir + "/bad")
	testkit.Must(t, err)
	if o.code != 0 || r.Clock.Bad != 2 || len(r.Ticks) != 1 || !strings.Contains(o.stderr, "2 lines") {
		t.Errorf("%v %+v", o, r)
	}
	b, err := os.ReadFile(dir + "/bad")
	testkit.Must(t, err)
	if !strings.HasSuffix(string(b), `"status":"partial"}`+"\n") || r.Ticks[0].Op != schemas.TickRead {
		t.Errorf("%s", b)
	}
}
