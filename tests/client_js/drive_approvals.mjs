// Approves and declines tool calls through the published client, against a running server.
//   node drive_approvals.mjs <client-oldest|client-newest> <address> <key> <agent id>
import assert from "node:assert/strict";

const [module, baseUrl, key, id] = process.argv.slice(2);
const { MastraClient } = await import(module);
const newest = module === "client-newest";

const problems = [];
console.error = (...parts) => problems.push(parts.join(" "));
const client = new MastraClient({ baseUrl, headers: { Authorization: `Bearer ${key}` }, retries: 0 });
const model = { provider: "demo", name: "echo", delay: 0 };
const helperId = `${id}-helper`;
await client.createStoredAgent({ id: helperId, name: helperId, instructions: "Help.", model, tools: ["word-count"] });
await client.createStoredAgent({
  id, name: id, instructions: "Answer.", model, tools: ["word-count"], memory: "last-messages",
});
const routerId = `${id}-router`;
await client.createStoredAgent({ id: routerId, name: routerId, instructions: "Route.", model, agents: [helperId] });
const router = client.getAgent(routerId);
const agent = client.getAgent(id);
const question = "Use word-count on this";
const ask = { requireToolApproval: true };

const read = async (response) => {
  const chunks = [];
  await response.processDataStream({ onChunk: async (chunk) => void chunks.push(chunk) });
  return chunks;
};
const kinds = (chunks) => chunks.map((chunk) => chunk.type);
const text = (chunks) =>
  chunks.filter((chunk) => chunk.type === "text-delta").map((chunk) => chunk.payload.text).join("");
const suspend = async (options = {}) => {
  const chunks = await read(await agent.stream(question, { ...ask, ...options }));
  assert.deepEqual(kinds(chunks).slice(-2), ["tool-call-approval", "suspended"]);
  assert.ok(!kinds(chunks).includes("finish"));
  const { payload, runId } = chunks.at(-2);
  assert.equal(payload.toolName, "word-count");
  assert.equal(JSON.parse(payload.resumeSchema).required[0], "approved");
  return { runId, toolCallId: payload.toolCallId };
};
const refused = async (promise, status, code) =>
  assert.rejects(promise, (error) => {
    assert.ok(error.message.includes(`${status}`) && error.message.includes(code), error.message);
    return true;
  });

// --- Streams

const first = await suspend();
const approved = await read(await agent.approveToolCall(first));
assert.deepEqual(kinds(approved).slice(0, 2), ["tool-call", "tool-result"]);
assert.equal(approved.at(-1).type, "finish");
assert.match(text(approved), /word-count says/);
assert.deepEqual(text(await read(await agent.approveToolCall(first))), text(approved));

const second = await suspend();
const declined = await read(await agent.declineToolCall({ ...second, reason: "Not today." }));
assert.equal(declined.find((chunk) => chunk.type === "tool-result").payload.result, "Not today.");
assert.equal(declined.at(-1).type, "finish");

// --- generate

const waiting = await agent.generate(question, ask);
assert.equal(waiting.finishReason, "suspended");
assert.deepEqual(Object.keys(waiting.suspendPayload), ["toolCallId", "toolName", "args"]);
const third = { runId: waiting.runId, toolCallId: waiting.suspendPayload.toolCallId };
const generated = await agent.approveToolCallGenerate(third);
assert.equal(generated.finishReason, "stop");
assert.match(generated.text, /word-count says/);
const other = await agent.generate(question, ask);
const refusal = await agent.declineToolCallGenerate({
  runId: other.runId, toolCallId: other.suspendPayload.toolCallId, reason: "No.",
});
assert.equal(refusal.finishReason, "stop");
await refused(agent.declineToolCallGenerate(third), 409, "already_decided");

// --- Structured output

const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const structured = await agent.generate("Lisbon", { structuredOutput: { schema } });
assert.deepEqual(structured.object, { city: "Lisbon" });

// --- Networks

const network = await read(await agent.network("Hello", {}));
assert.equal(network[0].type, "routing-agent-start");
assert.equal(network.at(-1).type, "network-execution-event-step-finish");
assert.match(network.at(-1).payload.result, /Hello/);
assert.ok(network.every((chunk) => chunk.from === "NETWORK"));

const own = await read(await agent.network(question, ask));
assert.equal(own.at(-1).type, "tool-execution-approval");
const afterOwn = await read(await agent.approveNetworkToolCall({ runId: own[0].runId }));
assert.deepEqual(kinds(afterOwn).slice(0, 2), ["tool-execution-start", "tool-execution-end"]);
assert.match(afterOwn.at(-1).payload.result, /word-count says/);

const call = `Use ${helperId} with {"prompt": "Use word-count on this"}`;
const inHelper = await read(await router.network(call, { requireToolApproval: ["word-count"] }));
assert.equal(inHelper.at(-1).type, "agent-execution-approval", JSON.stringify(inHelper.at(-1)));
assert.equal(inHelper.at(-1).payload.toolName, "word-count");
const afterHelper = await read(await router.declineNetworkToolCall({ runId: inHelper[0].runId, reason: "Never." }));
assert.deepEqual(kinds(afterHelper).slice(0, 2), ["agent-execution-start", "agent-execution-end"]);
assert.match(afterHelper.at(-1).payload.result, /Never/);

// --- Only in the newest client

if (newest) {
  const memory = { thread: `thread-${id}`, resource: `user-${id}` };
  const fourth = await suspend({ memory });
  const { runs, total } = await agent.listSuspendedRuns({ threadId: memory.thread, resourceId: memory.resource });
  assert.equal(total, 1);
  assert.equal(runs[0].runId, fourth.runId);
  assert.deepEqual(runs[0].toolCalls[0].toolCallId, fourth.toolCallId);
  const answer = { threadId: memory.thread, resourceId: memory.resource, toolCallId: fourth.toolCallId, approved: true };
  assert.deepEqual(await agent.sendToolApproval(answer), {
    accepted: true, runId: fourth.runId, toolCallId: fourth.toolCallId,
  });
  const observed = await read(await agent.observe({ runId: fourth.runId }));
  assert.ok(["finish", "suspended"].includes(observed.at(-1).type));

  const fifth = await suspend();
  const resumed = await read(await agent.resumeStream({ approved: true }, fifth));
  assert.match(text(resumed), /word-count says/);
  const sixth = await suspend();
  const idle = await read(await agent.resumeStreamUntilIdle({ approved: false, reason: "Later." }, sixth));
  assert.equal(idle.find((chunk) => chunk.type === "tool-result").payload.result, "Later.");
  await refused(agent.declineToolCallGenerate({ runId: sixth.runId, toolCallId: "unknown" }), 409, "not_suspended");
}

assert.deepEqual(problems, []);
console.log("done");
