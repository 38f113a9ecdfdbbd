// The event log: each event is one line, written immediately by one write. The path is a
// FIFO that only the runner reads, or a plain file.
import fs from 'node:fs';

const pause = new Int32Array(new SharedArrayBuffer(4));

/** openLog returns write(fields), which appends one event, and never throws. */
export function openLog(path, head) {
  let fd = null;
  let seq = 0;
  let stopped = false;

  function stop(error) {
    stopped = true; // an agent does not fail because its events are not read
    process.stderr.write(`runner-openai-agents: no more SDK events after ${seq}: ${path}: ${error.message}\n`);
  }

  function open() {
    // O_NONBLOCK: otherwise opening a FIFO without a reader would block for ever.
    const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK } = fs.constants;
    return fs.openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK, 0o600);
  }

  function writeSome(line, at) {
    try {
      return fs.writeSync(fd, line, at);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
      Atomics.wait(pause, 0, 0, 1); // full: wait for the reader; without one the next write fails with EPIPE
      return 0;
    }
  }

  return function write(fields) {
    if (stopped) return;
    try {
      fd ??= open();
      const line = Buffer.from(JSON.stringify({ schema: head.schema, run_id: head.run_id, seq, ...fields }) + '\n');
      for (let at = 0; at < line.length; ) at += writeSome(line, at);
      seq++;
    } catch (error) {
      stop(error);
    }
  };
}
