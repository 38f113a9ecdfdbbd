// Loaded by runner-clock into every process of Node (NODE_OPTIONS=--require). It gives the program a clock that starts where
// AGENT_START_TIME says and moves only by what the program itself does, and random numbers that follow from AGENT_SEED.
'use strict';
if (process.env.AGENT_DETERMINISTIC === '1' && !globalThis[Symbol.for('runner.clock')]) {
  globalThis[Symbol.for('runner.clock')] = true;
  const fs = require('node:fs');
  const crypto = require('node:crypto');
  const timers = require('node:timers');
  const promises = require('node:timers/promises');
  const util = require('node:util');
  const { performance } = require('node:perf_hooks');
  const module_ = require('node:module');
  const worker = require('node:worker_threads');
  const real = { Date, setTimeout, setInterval, setImmediate, clearTimeout, hash: crypto.createHash };
  const file = process.env.AGENT_CLOCK_FILE || '';

  // The process is named after what it was started with, and counted among those of the same name.
  const args = [process.argv.slice(1), process.execArgv, worker.threadId];
  const what = 'node:' + real.hash('sha256').update(JSON.stringify(args)).digest('hex').slice(0, 16);
  let name = what;
  if (file) {
    for (let n = 0; ; n++) {
      try {
        fs.mkdirSync(file + '.d/' + what + '.' + n);
        name = what + '.' + n;
        break;
      } catch (e) {
        if (e.code !== 'EEXIST') break;
      }
    }
  }

  // Ticks: what the clock was told to do, and what was read from it.
  const bound = 100000;
  let seq = 0;
  let reads = [];
  const write = (tick) => {
    if (!file) return;
    const n = seq++; // also of those that are too many: the number of the end tells how many there were
    if (n >= bound && tick.op !== 'end') return;
    try {
      fs.appendFileSync(file, JSON.stringify(Object.assign({ process: name, seq: n }, tick)) + '\n');
    } catch { /* the file is not there any more: nobody wants ticks */ }
  };
  const flush = () => {
    if (reads.length) write({ op: 'read', at_ns: reads.splice(0) });
  };
  process.on('exit', () => {
    flush();
    write({ op: 'end', at_ns: [now] });
  });

  const recorded = [];
  if (process.env.AGENT_CLOCK_RECORD) {
    try {
      for (const line of fs.readFileSync(process.env.AGENT_CLOCK_RECORD, 'utf8').split('\n')) {
        if (!line) continue;
        const t = JSON.parse(line);
        if (t.process === name && t.op === 'read') recorded.push(...t.at_ns);
      }
    } catch { /* without a record the clock goes as it went there, but for what came between */ }
  }

  // The clock. It is in ns since the start, as a number: exact for 104 days.
  const start = real.Date.parse(process.env.AGENT_START_TIME || '') || 0;
  const step = 10000;
  let now = 0;
  let next = 0;
  const read = () => {
    now += step;
    if (next < recorded.length) now = recorded[next];
    next++;
    reads.push(now);
    if (reads.length === 256) flush();
    return now;
  };
  const wait = (op, ns) => {
    flush();
    write({ op, for_ns: ns, at_ns: [now] });
  };
  const reach = (due) => { if (due > now) now = due; };

  const wall = () => start + Math.floor(read() / 1e6);
  globalThis.Date = new Proxy(real.Date, {
    apply: () => new real.Date(wall()).toString(),
    get: (t, k) => (k === 'now' ? wall : Reflect.get(t, k)),
    construct: (t, a, n) => Reflect.construct(t, a.length === 0 ? [wall()] : a, n === globalThis.Date ? t : n),
  });
  real.Date.prototype.constructor = globalThis.Date;

  performance.now = () => read() / 1e6;
  const hrtime = (before) => {
    const t = read();
    let s = Math.floor(t / 1e9);
    let ns = t % 1e9;
    if (before) {
      s -= before[0];
      ns -= before[1];
      if (ns < 0) { s--; ns += 1e9; }
    }
    return [s, ns];
  };
  hrtime.bigint = () => BigInt(read());
  process.hrtime = hrtime;

  // Timers wait as long as they did. When one fires, the clock is where it was set to, and those that are due before it by this
  // clock have fired: which of two is late on a busy machine makes no difference.
  let set = 0;
  const queue = []; // of timers, the next one first
  const before = (a, b) => a.due < b.due || (a.due === b.due && a.n < b.n);
  const enter = (t, due) => {
    t.due = due;
    t.n = set++;
    t.queued = true;
    let i = queue.length;
    while (i > 0 && before(t, queue[i - 1])) i--;
    queue.splice(i, 0, t);
  };
  const leave = (t) => {
    const was = t.queued;
    if (was) queue.splice(queue[0] === t ? 0 : queue.indexOf(t), 1);
    t.queued = false;
    return was;
  };
  const fire = (t) => { // of a timer whose time has come
    if (!t.queued) return; // cleared
    const first = queue[0];
    if (first !== t) {
      first.early++; // when its time comes, it has fired
      real.setImmediate(() => fire(t)); // after what follows from the other
    }
    run(first);
  };
  const run = (t) => {
    leave(t);
    reach(t.due);
    if (t.each) enter(t, t.due + t.each);
    t.call();
  };
  const came = (t) => {
    if (t.early > 0) {
      t.early--;
      return;
    }
    fire(t);
  };
  const of = new WeakMap(); // of what Node gives for a timer
  const clear = (h) => { // Node takes the number of a timer too
    const t = h !== null && typeof h === 'object' ? of.get(h) : queue.find((q) => String(q.handle[Symbol.toPrimitive]()) === String(h));
    if (t) leave(t);
    return real.clearTimeout(h);
  };
  globalThis.clearTimeout = timers.clearTimeout = clear;
  globalThis.clearInterval = timers.clearInterval = (h) => clear(h);
  // kept is a timer of this clock for one of Node's, which start makes.
  const kept = (f, d, each, a, start) => {
    const t = { each, early: 0, call: () => f.apply(t.handle, a) };
    enter(t, now + ms(d) * 1e6);
    t.handle = start(() => came(t));
    of.set(t.handle, t);
    const { refresh, close } = t.handle;
    t.handle.close = () => {
      leave(t);
      return close.call(t.handle);
    };
    t.handle.refresh = () => {
      if (leave(t)) enter(t, now + ms(d) * 1e6);
      return refresh.call(t.handle);
    };
    return t.handle;
  };
  const ms = (d) => (d >= 1 && d <= 0x7fffffff ? Math.trunc(d) : 1);
  const once = (f, d, ...a) => {
    if (typeof f !== 'function') return real.setTimeout(f, d, ...a);
    wait('timer', ms(d) * 1e6);
    return kept(f, d, 0, a, (g) => real.setTimeout(g, d));
  };
  const again = (f, d, ...a) => {
    if (typeof f !== 'function') return real.setInterval(f, d, ...a);
    wait('interval', ms(d) * 1e6);
    return kept(f, d, ms(d) * 1e6, a, (g) => real.setInterval(g, d));
  };
  const slow = promises.setTimeout;
  promises.setTimeout = (d, v, o) => {
    if (!o || (!o.signal && o.ref !== false)) {
      wait('timer', ms(d) * 1e6);
      return new Promise((done) => kept(() => done(v), d, 0, [], (g) => real.setTimeout(g, d)));
    }
    const due = now + ms(d) * 1e6;
    wait('timer', ms(d) * 1e6);
    return slow(d, v, o).then((x) => { reach(due); return x; });
  };
  if (promises.scheduler) promises.scheduler.wait = (d, o) => promises.setTimeout(d, undefined, o);
  Object.defineProperty(once, util.promisify.custom, { value: promises.setTimeout });
  globalThis.setTimeout = timers.setTimeout = once;
  globalThis.setInterval = timers.setInterval = again;

  // Random numbers: SHA-256 of the seed, the process and a counter.
  let counter = 0;
  let pool = Buffer.alloc(0);
  const bytes = (n) => {
    const parts = [];
    while (n > 0) {
      if (pool.length === 0) pool = real.hash('sha256').update(`${process.env.AGENT_SEED}\n${name}\n${counter++}`).digest();
      const part = pool.subarray(0, n);
      pool = pool.subarray(part.length);
      parts.push(part);
      n -= part.length;
    }
    return Buffer.concat(parts);
  };
  Math.random = () => { const b = bytes(7); return ((b.readUIntBE(0, 6) * 32) + (b[6] >> 3)) / 2 ** 53; };
  const put = (object, name, value) => {
    try { Object.defineProperty(object, name, { value, configurable: true, writable: true }); } catch { /* it stays as it is */ }
  };
  if (process.env.AGENT_CRYPTO_RANDOM !== 'real') {
    const view = (a) => Buffer.from(a.buffer || a, a.byteOffset || 0, a.byteLength);
    const uuid = () => {
      const b = bytes(16);
      b[6] = (b[6] & 0x0f) | 0x40;
      b[8] = (b[8] & 0x3f) | 0x80;
      const h = b.toString('hex');
      return `${h.slice(0, 8)}-${h.slice(8, 12)}-${h.slice(12, 16)}-${h.slice(16, 20)}-${h.slice(20)}`;
    };
    const values = (a) => { bytes(a.byteLength).copy(view(a)); return a; };
    const later = (f, ...a) => process.nextTick(() => f(null, ...a));
    const randomBytes = (n, f) => (f ? later(f, bytes(n)) : bytes(n));
    const randomFillSync = (a, at = 0, n = a.byteLength - at) => { bytes(n).copy(view(a), at); return a; };
    const randomFill = (a, ...r) => { const f = r.pop(); randomFillSync(a, ...r); later(f, a); };
    const randomInt = (low, high, f) => {
      if (high === undefined || typeof high === 'function') [low, high, f] = [0, low, high];
      const x = low + Math.floor(Math.random() * (high - low));
      return f ? later(f, x) : x;
    };
    for (const [k, v] of Object.entries({ randomUUID: uuid, getRandomValues: values, randomBytes, randomFillSync, randomFill, randomInt })) put(crypto, k, v);
    for (const object of [globalThis.crypto, crypto.webcrypto]) {
      if (!object) continue;
      put(object, 'randomUUID', uuid);
      put(object, 'getRandomValues', values);
    }
  }
  module_.syncBuiltinESMExports();
}
