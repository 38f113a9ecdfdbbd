// What can be tested without the SDK: the log, the environment and the hooks.
// testdata/fixtures/openai-agents tests the same against two versions of the SDK.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { pathToFileURL } from 'node:url';
import { digestOf } from './digest.js';
import { sdkEvents } from './index.js';

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sdk-events-'));
test.after(() => fs.rmSync(dir, { recursive: true }));
fs.mkdirSync(path.join(dir, 'sdk/dist'), { recursive: true });
fs.writeFileSync(path.join(dir, 'sdk/package.json'), '{"name":"@openai/agents","version":"9.8.7"}');
const sdk = pathToFileURL(path.join(dir, 'sdk/dist/index.mjs')).href;

let count = 0;
const fresh = () => path.join(dir, `log${count++}`);
const envOf = (log) => ({ ASSAY_RUNNER_SDK_EVENT_LOG: log, ASSAY_RUNNER_RUN_ID: 'run_1', ASSAY_RUNNER_SDK_EVENT_SCHEMA: 'assay.runner.sdk_event.v0' });
const lines = (log) => fs.readFileSync(log, 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line));
const types = (log) => lines(log).map((e) => [e.event_type, e.tool_call_id]);
const call = (id) => ({ toolCall: { type: 'function_call', callId: id } });

// A tool call as the SDK makes it: an error becomes a result.
async function callTool(runner, options, id) {
  runner.emit('agent_tool_start', {}, {}, { name: options.name }, call(id));
  const result = await options.execute({}, {}, call(id)).catch((error) => `An error occurred: ${error.message}`);
  runner.emit('agent_tool_end', {}, {}, { name: options.name }, result, call(id));
  return result;
}

test('one call and one run, in a file', async () => {
  const log = fresh();
  const events = sdkEvents({ sdk, env: envOf(log) });
  const runner = events.watch(new EventEmitter());
  const options = events.tool({ name: 'read_file', execute: async () => 'text' });
  runner.run = async () => ({ finalOutput: await callTool(runner, options, 'tc_1') });
  assert.equal((await events.run(runner)).finalOutput, 'text');
  const head = { schema: 'assay.runner.sdk_event.v0', run_id: 'run_1' };
  const who = { source: 'openai-agents', sdk_name: '@openai/agents', sdk_version: '9.8.7' };
  assert.deepEqual(lines(log), [
    { ...head, seq: 0, event_type: 'tool_call_started', ...who, tool_call_id: 'tc_1', tool: 'read_file', arguments_digest: digestOf() },
    { ...head, seq: 1, event_type: 'tool_call_completed', ...who, tool_call_id: 'tc_1', tool: 'read_file' },
    { ...head, seq: 2, event_type: 'run_finished', ...who },
  ]);
});

test('neither a tool that throws nor a tool with other options is completed', async () => {
  const log = fresh();
  const events = sdkEvents({ sdk, env: envOf(log) });
  const runner = events.watch(new EventEmitter());
  let good = false;
  const options = events.tool({ name: 'a', execute: async () => { if (!good) throw new Error('no'); } });
  await callTool(runner, options, 'tc_1');
  good = true;
  await callTool(runner, options, 'tc_1');
  await callTool(runner, { name: 'unknown', execute: async () => 'x' }, 'tc_2');
  assert.deepEqual(types(log), [
    ['tool_call_started', 'tc_1'], ['tool_call_started', 'tc_1'], ['tool_call_completed', 'tc_1'], ['tool_call_started', 'tc_2'],
  ]);
});

test('a call that returns after its end was reported completes nothing', async () => {
  const log = fresh();
  const events = sdkEvents({ sdk, env: envOf(log) });
  const runner = events.watch(new EventEmitter());
  const options = events.tool({ name: 'slow', execute: () => new Promise((done) => setTimeout(done, 20)) });
  runner.emit('agent_tool_start', {}, {}, options, call('tc_1'));
  const late = options.execute({}, {}, call('tc_1'));
  runner.emit('agent_tool_end', {}, {}, options, 'timed out', call('tc_1'));
  runner.emit('agent_tool_start', {}, {}, options, call('tc_1'));
  await late;
  runner.emit('agent_tool_end', {}, {}, options, 'threw at once', call('tc_1'));
  assert.deepEqual(types(log).map(([type]) => type), ['tool_call_started', 'tool_call_started']);
});

test('parallel calls keep their ids', async () => {
  const log = fresh();
  const events = sdkEvents({ sdk, env: envOf(log) });
  const runner = events.watch(new EventEmitter());
  const options = events.tool({ name: 'p', execute: () => new Promise((done) => setTimeout(done, Math.random() * 20)) });
  await Promise.all(Array.from({ length: 20 }, (_, i) => callTool(runner, options, `tc_${i}`)));
  assert.deepEqual(lines(log).map((e) => e.seq), Array.from({ length: 40 }, (_, i) => i));
  assert.equal(new Set(types(log).map(String)).size, 40);
});

test('a run that fails, one that waits for an approval, streamed ones', async () => {
  const log = fresh();
  const events = sdkEvents({ sdk, env: envOf(log) });
  const run = (f) => events.run({ run: f });
  await assert.rejects(run(async () => { throw new Error('max turns'); }), /max turns/);
  await run(async () => ({ interruptions: [{}] }));
  await run(async () => ({ completed: Promise.resolve() }));
  await run(async () => ({ completed: Promise.reject(new Error('cut')) }));
  await new Promise(setImmediate);
  assert.deepEqual(types(log).map(([type]) => type), ['run_failed', 'run_finished', 'run_failed']);
});

test('nothing is done outside a measured run', async () => {
  const events = sdkEvents({ env: {} });
  const options = { name: 'a', execute: async () => 1 };
  assert.equal(events.tool(options), options);
  const runner = events.watch(new EventEmitter());
  assert.equal(runner.listenerCount('agent_tool_start'), 0);
  assert.equal(await events.run({ run: async (x) => x }, 7), 7);
});

test('a FIFO without a reader does not block the agent', { timeout: 5000 }, () => {
  const log = fresh();
  execFileSync('mkfifo', [log]);
  const runner = sdkEvents({ sdk, env: envOf(log) }).watch(new EventEmitter());
  runner.emit('agent_tool_start', {}, {}, { name: 'a' }, call('tc_1'));
});

// Another process writes 3,000 events through a FIFO whose reader is slow.
const many = `
  import { sdkEvents } from ${JSON.stringify(new URL('index.js', import.meta.url).href)};
  import { EventEmitter } from 'node:events';
  const runner = sdkEvents({ sdk: ${JSON.stringify(sdk)} }).watch(new EventEmitter());
  for (let i = 0; i < 3000; i++) runner.emit('agent_tool_start', {}, {}, { name: 'a' }, { toolCall: { callId: 'tc_' + i } });`;

test('a slow reader gets every line, and only whole lines of a killed writer', { timeout: 20000 }, async (t) => {
  for (const kill of [false, true]) {
    const log = fresh();
    execFileSync('mkfifo', [log]);
    const reader = spawn('sh', ['-c', 'exec 3<"$0" && echo open >&2 && read -r go; cat <&3', log]);
    const writer = spawn(process.execPath, ['--input-type=module', '-e', many], { env: { ...process.env, ...envOf(log) } });
    t.after(() => [reader, writer].forEach((p) => p.kill('SIGKILL')));
    const ends = Promise.all([once(reader, 'close'), once(writer, 'close')]);
    let text = '';
    reader.stdout.on('data', (b) => { text += b; });
    await once(reader.stderr, 'data'); // the writer has opened the FIFO
    await new Promise((resolve) => { setTimeout(resolve, 300); }); // and the pipe is full
    if (kill) writer.kill('SIGKILL');
    reader.stdin.end('go\n');
    await ends;
    const whole = text.split('\n');
    const rest = whole.pop();
    whole.forEach((line, i) => assert.equal(JSON.parse(line).seq, i));
    if (!kill) assert.deepEqual([whole.length, rest], [3000, '']);
    else assert.ok(whole.length < 3000 && !rest.includes('\n'), `${whole.length} lines`);
  }
});

test('the package has the licence of the repository, and carries it', () => {
  const { files, license } = JSON.parse(fs.readFileSync(new URL('package.json', import.meta.url)));
  assert.ok(license === 'Apache-2.0' && files.includes('LICENSE'));
  assert.equal(fs.readFileSync(new URL('LICENSE', import.meta.url), 'utf8'), fs.readFileSync(new URL('../../LICENSE', import.meta.url), 'utf8'));
});

test('arguments have the digest of RFC 8785', () => {
  const of = (text) => `sha256:${createHash('sha256').update(text).digest('hex')}`;
  for (const [text, canonical] of [
    ['', '{}'], ['{}', '{}'], [undefined, '{}'],
    ['{ "b": [1.0, 1e2, -0, 1E-7, 123456789012345680000], "a": {"\\u20ac": "\\u20ac\\u0007\\n/"} }', '{"a":{"\u20ac":"\u20ac\\u0007\\n/"},"b":[1,100,0,1e-7,123456789012345680000]}'],
    ['{"\u{1f600}":1,"\ufb33":2,"1":3,"10":4,"2":5}', '{"1":3,"10":4,"2":5,"\u{1f600}":1,"\ufb33":2}'], // in the order of UTF-16 units
  ]) assert.equal(digestOf(text), of(canonical), text);
  for (const text of ['[]', 'null', '1', '{', '{"a":"\\ud800"}']) assert.equal(digestOf(text), undefined, text);
});
