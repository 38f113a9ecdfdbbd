// Reports what an @openai/agents program says about itself, as NDJSON, to the runner
// that measures it. Only public parts of the SDK are used: the tool() options, the
// runner's hooks and the promise of a run.
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { digestOf } from './digest.js';
import { openLog } from './log.js';

const SCHEMA = 'assay.runner.sdk_event.v0';
const SOURCE = 'openai-agents';

/**
 * sdkEvents returns what reports this process's events. Outside a measured run it
 * does nothing.
 * @param {{sdk?: string, env?: object}} [options] sdk: where the SDK was loaded from,
 *   import.meta.resolve('@openai/agents') of the program; needed only when this
 *   package is not in the same node_modules as the SDK.
 */
export function sdkEvents({ sdk, env = process.env } = {}) {
  const path = env.ASSAY_RUNNER_SDK_EVENT_LOG;
  const run_id = env.ASSAY_RUNNER_RUN_ID;
  const schema = env.ASSAY_RUNNER_SDK_EVENT_SCHEMA ?? SCHEMA;
  if (!path || !run_id) return inactive;
  if (schema !== SCHEMA) {
    process.stderr.write(`runner-openai-agents: this version writes ${SCHEMA}, the runner expects ${schema}: no SDK events\n`);
    return inactive;
  }
  return active(openLog(path, { schema, run_id }), installed(sdk));
}

const inactive = {
  tool: (options) => options,
  mcpTools: (server, options) => mcpTools(server, options),
  watch: (runner) => runner,
  run: (runner, ...args) => runner.run(...args),
};

function active(write, sdk) {
  const calls = new Map(); // id: what is known of a call that has started
  const quiet = new Set(); // names of tools that need no message

  const event = (event_type, tool_call_id, tool, more) =>
    write({ event_type, source: SOURCE, ...sdk, ...(tool_call_id !== undefined && { tool_call_id, tool, ...more }) });

  function started(_context, _agent, tool, details) {
    const id = details?.toolCall?.callId;
    if (typeof id !== 'string') return;
    calls.set(id, { returned: false });
    const arguments_digest = digestOf(details.toolCall.arguments);
    event('tool_call_started', id, tool.name, arguments_digest && { arguments_digest });
    if (!quiet.has(tool.name)) {
      quiet.add(tool.name);
      process.stderr.write(`runner-openai-agents: the end of ${JSON.stringify(tool.name)} is not reported: its options did not pass events.tool()\n`);
    }
  }

  // The SDK turns what a tool threw into a result and calls this hook in that case too,
  // so the hook does not prove that the tool has done its work.
  function ended(_context, _agent, tool, _result, details) {
    const id = details?.toolCall?.callId;
    if (calls.get(id)?.returned) event('tool_call_completed', id, tool.name);
    calls.delete(id);
  }

  function finished(result) {
    if (!(result?.interruptions?.length > 0)) event('run_finished'); // otherwise it waits for an approval
    return result;
  }

  const reported = {
    /** mcpTools: see below; the ends of these tools are reported. */
    async mcpTools(server, options) {
      return (await mcpTools(server, options)).map(reported.tool);
    },

    /** tool takes and returns the options of the SDK's tool(). */
    tool(options) {
      const name = options.name ?? options.execute.name;
      quiet.add(name.replace(/[^a-zA-Z0-9]/g, '_')); // as the SDK writes it
      const wrapped = {
        ...options,
        name,
        async execute(input, context, details) {
          const call = calls.get(details?.toolCall?.callId); // this call, even if its id is used again
          const result = await options.execute(input, context, details);
          if (call) call.returned = true;
          return result;
        },
      };
      for (const on of ['errorFunction', 'timeoutErrorFunction']) {
        if (typeof options[on] !== 'function') continue;
        wrapped[on] = (context, error, details) => {
          const call = calls.get(details?.toolCall?.callId);
          if (call) call.returned = false; // the SDK did not accept what it returned
          return options[on](context, error, details);
        };
      }
      return wrapped;
    },

    /** watch adds the hooks to a Runner and returns it. Call it once for each runner. */
    watch(runner) {
      runner.on('agent_tool_start', started);
      runner.on('agent_tool_end', ended);
      return runner;
    },

    /** run is runner.run(agent, input, options), and reports how it ended. */
    async run(runner, ...args) {
      let result;
      try {
        result = await runner.run(...args);
      } catch (error) {
        event('run_failed');
        throw error;
      }
      if (typeof result?.completed?.then !== 'function') return finished(result);
      result.completed.then(
        () => (result.cancelled ? event('run_failed') : finished(result)),
        () => event('run_failed'),
      );
      return result;
    },
  };
  return reported;
}

/**
 * mcpTools returns the options of a function tool for each tool of one of the SDK's MCP servers (MCPServerStdio and
 * the like), connected before. The SDK's own tools for them cannot send the id of the model's call; these do,
 * so that a policy proxy between SDK and server knows which call it decides.
 * @param {{listTools: Function, callToolResult: Function}} server
 * @param {{prefix?: string}} [options] prefix: of the names that the model gets
 */
async function mcpTools(server, { prefix = '' } = {}) {
  if (typeof server?.callToolResult !== 'function') {
    throw new TypeError('runner-openai-agents: this MCP server has no callToolResult(); @openai/agents has it from 0.13 on');
  }
  return (await server.listTools()).map(({ name, description, inputSchema }) => ({
    name: prefix + name,
    description: description ?? '',
    parameters: { type: 'object', properties: {}, required: [], additionalProperties: true, ...inputSchema },
    strict: false,
    errorFunction: (_context, error) => error.message, // the SDK's own says only that there was an error
    async execute(input, _context, details) {
      const id = details?.toolCall?.callId;
      const result = await server.callToolResult(name, input ?? {}, typeof id === 'string' ? { tool_call_id: id } : undefined);
      const text = said(result);
      if (result.isError) throw new Error(text); // a denial too: the call is not completed
      return text;
    },
  }));
}

// said is what the model reads of a result: its text, or its content if it is not only text.
function said({ content = [] }) {
  return content.every((part) => part.type === 'text') ? content.map((part) => part.text).join('\n') : JSON.stringify(content);
}

// installed reads name and version from the package.json above the SDK's entry.
function installed(sdk) {
  try {
    let at = new URL('.', sdk ?? import.meta.resolve('@openai/agents'));
    for (;;) {
      const file = fileURLToPath(new URL('package.json', at));
      if (fs.existsSync(file)) {
        const { name, version } = JSON.parse(fs.readFileSync(file, 'utf8'));
        if (name && version) return { sdk_name: name, sdk_version: version };
      }
      const up = new URL('..', at);
      if (up.href === at.href) return {};
      at = up;
    }
  } catch {
    return {}; // unknown: the event leaves it out
  }
}
