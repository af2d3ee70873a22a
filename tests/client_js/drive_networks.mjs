// Reads every chunk of a network through the published client, against a running server.
//   node drive_networks.mjs <client-oldest|client-newest> <address> <key> <agent id>
import assert from "node:assert/strict";

const [module, baseUrl, key, id] = process.argv.slice(2);
const { MastraClient } = await import(module);
const newest = module === "client-newest";

const problems = [];
console.error = (...parts) => problems.push(parts.join(" "));
const client = new MastraClient({ baseUrl, headers: { Authorization: `Bearer ${key}` }, retries: 0 });
const model = { provider: "demo", name: "echo", delay: 0 };
const helperId = `${id}-helper`;
const tools = ["word-count", "arrange-delivery"];
await client.createStoredAgent({ id: helperId, name: helperId, instructions: "Help.", model, tools });
await client.createStoredAgent({
  id, name: id, instructions: "Answer.", model, tools, workflows: ["triage-ticket"],
});
const agent = client.getAgent(id);
// The demo model calls all tools that a message names, so this agent has none of those of its sub-agent.
const routerId = `${id}-router`;
await client.createStoredAgent({ id: routerId, name: routerId, instructions: "Route.", model, agents: [helperId] });
const router = client.getAgent(routerId);

const read = async (response) => {
  const chunks = [];
  await response.processDataStream({ onChunk: async (chunk) => void chunks.push(chunk) });
  return chunks;
};
const kinds = (chunks) => chunks.map((chunk) => chunk.type);
const find = (chunks, type) => {
  const found = chunks.filter((chunk) => chunk.type === type);
  assert.equal(found.length, 1, `${type} in ${kinds(chunks)}`);
  return found[0].payload;
};

// Check what all networks have in common, and return the payloads of the last two chunks.
const assertFinished = (chunks, resumed = false) => {
  if (!resumed) {
    assert.equal(chunks[0].type, "routing-agent-start");
    assert.ok([id, routerId].includes(chunks[0].payload.agentId));
  }
  assert.deepEqual(kinds(chunks).slice(-3), [
    "routing-agent-end", "network-execution-event-finish", "network-execution-event-step-finish",
  ]);
  const [ended, finished, step] = chunks.slice(-3).map((chunk) => chunk.payload);
  const text = chunks.filter((chunk) => chunk.type === "routing-agent-text-delta").map((chunk) => chunk.payload.text);
  for (const payload of [ended, finished, step]) {
    assert.equal(payload.isComplete, true);
    assert.ok(payload.result && text.join("").endsWith(payload.result), JSON.stringify(payload));
  }
  assert.ok(finished.usage.totalTokens > 0);
  assert.ok(chunks.every((chunk) => chunk.from === "NETWORK"));
  return step.result;
};
const assertWaits = (chunks, type, toolName) => {
  const last = chunks.at(-1);
  assert.equal(last.type, type, kinds(chunks).join());
  assert.equal(last.payload.toolName, toolName);
  assert.ok(!kinds(chunks).includes("network-execution-event-finish"));
  return last.payload;
};

// --- Calls that do not wait

const plain = await read(await agent.network("Hello", {}));
assert.match(assertFinished(plain), /Hello/);
assert.ok(kinds(plain).includes("routing-agent-text-start"));

const own = await read(await agent.network("Use word-count on this text", {}));
assertFinished(own);
const toolStart = find(own, "tool-execution-start");
assert.equal(toolStart.args.toolName, "word-count");
assert.equal(find(own, "tool-execution-end").toolCallId, toolStart.args.toolCallId);
assert.equal(find(own, "tool-execution-end").isError, false);
// A step that calls a tool ends without being the last one.
assert.deepEqual(
  own.filter((chunk) => chunk.type === "network-execution-event-step-finish").map((c) => c.payload.isComplete),
  [false, false, true],
);

const ticket = { subject: "Login", body: "urgent" };
const flow = await read(await agent.network(`Use triage-ticket with ${JSON.stringify(ticket)}`, {}));
assertFinished(flow);
const flowStart = find(flow, "workflow-execution-start");
assert.deepEqual([flowStart.workflowId, flowStart.name], ["triage-ticket", "triage-ticket"]);
assert.equal(flowStart.args.subject, ticket.subject);
const flowEnd = find(flow, "workflow-execution-end");
assert.equal(flowEnd.workflowId, "triage-ticket");
assert.deepEqual(flowEnd.result, { queue: "login", priority: "high" });

const helped = await read(await router.network(`Use ${helperId} with {"prompt": "Hello"}`, {}));
assertFinished(helped);
const helperStart = find(helped, "agent-execution-start");
assert.deepEqual([helperStart.agentId, helperStart.args.prompt], [helperId, "Hello"]);
assert.equal(find(helped, "agent-execution-end").agentId, helperId);
assert.match(find(helped, "agent-execution-end").result, /Hello/);

// --- Calls that need approval: an own tool, one of a sub-agent, and a workflow, which counts as an own tool

const approve = async (asked, prompt, names, type, toolName) => {
  const chunks = await read(await asked.network(prompt, { requireToolApproval: names }));
  const payload = assertWaits(chunks, type, toolName);
  const { runId } = chunks[0].payload;
  const after = await read(await asked.approveNetworkToolCall({ runId }));
  assertFinished(after, true);
  return [payload, after];
};
await approve(agent, "Use word-count on this text", ["word-count"], "tool-execution-approval", "word-count");
const [inHelper, afterHelper] = await approve(
  router, `Use ${helperId} with {"prompt": "Use word-count on this"}`, ["word-count"], "agent-execution-approval",
  "word-count",
);
assert.equal(inHelper.agentId, helperId);
assert.deepEqual(kinds(afterHelper).slice(0, 2), ["agent-execution-start", "agent-execution-end"]);
const [, afterFlow] = await approve(
  agent, `Use triage-ticket with ${JSON.stringify(ticket)}`, ["triage-ticket"], "tool-execution-approval",
  "workflow-triage-ticket",
);
assert.deepEqual(kinds(afterFlow).slice(0, 2), ["workflow-execution-start", "workflow-execution-end"]);

// --- Calls that ask a question: an own tool, and one of a sub-agent

const delivery = 'arrange-delivery with {"order": "A-17"}';
const question = { question: "On which day may order A-17 be delivered?" };
const answer = async (agentId, runId) => {
  const body = JSON.stringify({ runId, resumeData: { day: "Friday" } });
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  // Neither client has a method for this.
  const response = await fetch(`${baseUrl}/api/agents/${agentId}/resume-network`, { method: "POST", body, headers });
  assert.equal(response.status, 200);
  const lines = (await response.text()).split("\n").filter((line) => line.startsWith("data: {"));
  return lines.map((line) => JSON.parse(line.slice(6)));
};
const asked = await read(await agent.network(`Use ${delivery}`, {}));
const asks = assertWaits(asked, "tool-execution-suspended", "arrange-delivery");
assert.deepEqual(asks.suspendPayload, question);
assert.deepEqual(JSON.parse(asks.resumeSchema).required, ["day"]);
const answered = await answer(id, asked[0].payload.runId);
assert.match(find(answered, "tool-execution-end").result, /Friday/);
assertFinished(answered, true);

const below = await read(await router.network(`Use ${helperId} with {"prompt": ${JSON.stringify(`Use ${delivery}`)}}`, {}));
const asksBelow = assertWaits(below, "agent-execution-suspended", "arrange-delivery");
assert.deepEqual([asksBelow.agentId, asksBelow.suspendPayload], [helperId, question]);
const answeredBelow = await answer(routerId, below[0].payload.runId);
assert.match(find(answeredBelow, "agent-execution-end").result, /Friday/);
assertFinished(answeredBelow, true);

// --- The same question in a stream

const stream = await read(await agent.stream(`Use ${delivery}`));
assert.deepEqual(kinds(stream).slice(-2), ["tool-call-suspended", "suspended"]);
const { payload: suspended, runId } = stream.at(-2);
assert.deepEqual([suspended.toolName, suspended.args, suspended.suspendPayload], [
  "arrange-delivery", { order: "A-17" }, question,
]);
if (newest) {
  const resumed = await read(await agent.resumeStream({ day: "Monday" }, { runId, toolCallId: suspended.toolCallId }));
  assert.deepEqual(kinds(resumed).slice(0, 2), ["tool-call", "tool-result"]);
  assert.match(resumed[1].payload.result, /Monday/);
  assert.equal(resumed.at(-1).type, "finish");
}

assert.deepEqual(problems, []);
console.log("done");
