// Sends signals and messages to threads through the published client, against a running server.
//   node drive_signals.mjs <client-oldest|client-newest> <address> <key> <agent ID>
import assert from "node:assert/strict";

const [module, baseUrl, key, agentId] = process.argv.slice(2);
const { MastraClient } = await import(module);
const newest = module === "client-newest";
const client = new MastraClient({ baseUrl, headers: { Authorization: `Bearer ${key}` }, retries: 0 });
await client.createStoredAgent({
  id: agentId,
  name: agentId,
  instructions: "Answer.",
  model: { provider: "demo", name: "echo", delay: 0.02 },
  memory: "last-messages",
});
const target = { resourceId: `ann-${agentId}`, threadId: `t-${agentId}` };
await client.createMemoryThread({ agentId, ...target });
const agent = client.getAgent(agentId);
// The oldest client has no methods for these routes.
const post = (path) => (body) => agent.request(`/agents/${agentId}/${path}`, { method: "POST", body });
const sendMessage = newest ? (body) => agent.sendMessage(body) : post("send-message");
const queueMessage = newest ? (body) => agent.queueMessage(body) : post("queue-message");
const sendSignal = newest ? (body) => agent.sendSignal(body) : post("signals");
const abort = newest ? (body) => agent.abortThread(body) : post("threads/abort");

// --- Everything that happens in the thread arrives in one stream

const chunks = [];
let subscription;
if (newest) {
  subscription = await agent.subscribeToThread(target);
  subscription.processDataStream({ onChunk: (chunk) => void chunks.push(chunk), reconnect: false });
}

const first = await sendMessage({ ...target, message: "word ".repeat(60).trim() });
assert.equal(first.accepted, true);
const joined = await sendMessage({ ...target, message: { contents: "And this?", attributes: { from: "slack" } } });
assert.equal(joined.runId, first.runId);
const signal = { id: `s-${agentId}`, type: "notification", contents: "Late", attributes: { source: "airline" } };
const sent = await sendSignal({ ...target, signal });
assert.deepEqual([sent.signal.id, sent.signal.contents], [signal.id, "Late"]);
assert.deepEqual(await sendSignal({ ...target, signal }), sent);
const queued = await queueMessage({ ...target, message: "Next" });
assert.notEqual(queued.runId, first.runId);

const ended = async (runId) => {
  for (let tries = 0; tries < 600; tries += 1) {
    const response = await fetch(`${baseUrl}/api/runs/${runId}`, { headers: { Authorization: `Bearer ${key}` } });
    if (response.ok) {
      const run = await response.json();
      if (run.finishedAt) return run;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`run ${runId} did not end`);
};
assert.equal((await ended(first.runId)).status, "succeeded");
assert.equal((await ended(queued.runId)).status, "succeeded");

// --- Behaviours, and stopping

const kept = await sendSignal({
  ...target,
  signal: { type: "user-message", contents: "For later" },
  ifIdle: { behavior: "persist" },
});
assert.equal(kept.runId, "");
const stopped = await sendMessage({ ...target, message: "word ".repeat(2000).trim() });
assert.deepEqual(await abort({ ...target, expectedRunId: stopped.runId }), { aborted: true });
assert.equal((await ended(stopped.runId)).status, "cancelled");

if (newest) {
  for (let tries = 0; tries < 100 && !chunks.some((chunk) => chunk.type === "abort"); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const contents = chunks.filter((chunk) => chunk.type.startsWith("data-")).map((chunk) => chunk.data.contents);
  assert.deepEqual(contents.slice(1, 5), ["And this?", "Late", "Next", "For later"]);
  assert.deepEqual(
    chunks.filter((chunk) => chunk.type === "finish").map((chunk) => chunk.runId),
    [first.runId, queued.runId],
  );
  subscription.unsubscribe();
}
const { messages } = await client.listThreadMessages(target.threadId, { agentId });
assert.ok(messages.some((message) => message.role === "signal" && message.id === signal.id));
console.log("done");
process.exit(0);
