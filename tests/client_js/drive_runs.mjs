// Asks agents through the published client, against a running server whose agents answer with the built-in model.
//   node drive_runs.mjs <client-oldest|client-newest> <address> <key>
import assert from "node:assert/strict";

const [module, baseUrl, key] = process.argv.slice(2);
const { MastraClient } = await import(module);
const newest = module === "client-newest";

const bodies = [];
const seen = (address, init) => {
  if (init?.method === "POST") bodies.push({ address, body: JSON.parse(init.body ?? "{}") });
  return fetch(address, init);
};
const client = new MastraClient({ baseUrl, headers: { Authorization: `Bearer ${key}` }, retries: 0, fetch: seen });
const create = (id, more) =>
  client.createStoredAgent({
    id,
    name: id,
    instructions: "Answer.",
    model: { provider: "demo", name: "echo", delay: 0 },
    ...more,
  });
await create("plain", { tools: ["word-count"] });
await create("remembering", { memory: "last-messages" });

const read = async (response) => {
  const chunks = [];
  await response.processDataStream({ onChunk: async (chunk) => void chunks.push(chunk) });
  return chunks;
};
const text = (chunks) =>
  chunks.filter((chunk) => chunk.type === "text-delta").map((chunk) => chunk.payload.text).join("");

// --- Agents

const agents = await client.listAgents();
assert.equal(agents.plain.name, "plain");
assert.equal(agents.plain.tools["word-count"].id, "word-count");
assert.equal(JSON.parse(agents.plain.tools["word-count"].inputSchema).json.type, "object");
assert.equal(agents.proofreader.source, "code");
const agent = client.getAgent("plain");
assert.deepEqual(await agent.details(), agents.plain);
assert.equal((await agent.details({ tenant: "a b" })).provider, "demo");
if (newest) {
  const versions = await agent.listVersions();
  const byVersion = client.getAgent("plain", { versionId: versions.versions[0].id });
  assert.equal((await byVersion.details()).resolvedVersionId, versions.versions[0].id);
  const { providers } = await client.listAgentsModelProviders();
  assert.equal(providers.find((provider) => provider.id === "demo").connected, true);
}

// --- generate

const answer = await agent.generate("Hello, 世界 👋");
assert.match(answer.text, /Hello, 世界 👋/);
assert.equal(answer.finishReason, "stop");
assert.ok(answer.usage.totalTokens > 0);
assert.deepEqual(answer.warnings, []);
assert.equal(answer.response.messages[0].role, "assistant");

const conversation = await agent.generate([
  { role: "user", content: "One" },
  { role: "assistant", content: "Two" },
  { role: "user", content: [{ type: "text", text: "Three" }] },
]);
assert.match(conversation.text, /Three/);
const counted = await agent.generate([{ role: "user", content: "Use word-count on this" }], {
  maxSteps: 5,
  modelSettings: { temperature: 0.2, maxOutputTokens: 100 },
  toolChoice: "auto",
});
assert.deepEqual(counted.warnings, []);
assert.deepEqual(
  counted.steps.map((step) => step.finishReason),
  ["tool-calls", "stop"],
);

// --- stream

const streamed = await agent.stream("Hello, 世界 👋");
const chunks = await read(streamed);
assert.match(text(chunks), /Hello, 世界 👋/);
assert.deepEqual([chunks[0].type, chunks[1].type, chunks.at(-1).type], ["start", "step-start", "finish"]);
assert.ok(chunks.every((chunk) => chunk.runId === chunks[0].runId && chunk.from === "AGENT"));
assert.ok(chunks.at(-1).payload.usage.totalTokens > 0);
assert.equal(chunks.at(-1).payload.stepResult.reason, "stop");

const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const objects = (await read(await agent.stream("Lisbon", { structuredOutput: { schema } }))).filter((chunk) => chunk.object);
assert.deepEqual(objects.map((chunk) => [chunk.type, chunk.object]), [["object-result", { city: "Lisbon" }]]);
const called = await read(await agent.stream("Use word-count on this"));
const kinds = called.map((chunk) => chunk.type);
assert.ok(kinds.indexOf("tool-call") > 0 && kinds.indexOf("tool-call") < kinds.indexOf("tool-result"));
assert.equal(kinds.filter((kind) => kind === "step-finish").length, 2);

// --- Tools of the caller

const asked = [];
const clientTools = {
  "current-place": {
    id: "current-place",
    description: "Where the caller is.",
    inputSchema: { type: "object", properties: {} },
    execute: async (input) => (asked.push(input), { place: "Lisbon" }),
  },
};
const question = [{ role: "user", content: "Use current-place" }];

const placed = await agent.generate(question, { clientTools });
assert.equal(placed.finishReason, "stop");
assert.match(placed.text, /Lisbon/);
assert.equal(asked.length, 1);

const placedStream = await read(await agent.stream(question, { clientTools }));
assert.match(text(placedStream), /Lisbon/);
assert.equal(asked.length, 2);
assert.equal(bodies.at(-1).body.messages.at(-1).role, newest ? "tool" : "assistant");

// --- Threads

const remembering = client.getAgent("remembering");
const memory = { thread: "t1", resource: "ann" };
await remembering.generate("My name is Ann.", { memory });
await read(await remembering.stream("And now?", { memory: { thread: { id: "t1" }, resource: "ann" } }));
if (newest) {
  const inThread = await remembering.generate(question, { clientTools, memory });
  assert.match(inThread.text, /Lisbon/);
  assert.match(text(await read(await remembering.stream(question, { clientTools, memory }))), /Lisbon/);
}

// --- Read again

if (newest) {
  const { runId } = chunks[0];
  assert.deepEqual(await read(await agent.observe({ runId })), chunks);
  assert.deepEqual(await read(await agent.observe({ runId, offset: 3 })), chunks.slice(3));
  assert.deepEqual(await read(await agent.recover({ runId })), chunks);
  const idle = await read(await agent.streamUntilIdle("Hello again"));
  assert.match(text(idle), /Hello again/);
  const since = new Date(0);
  assert.deepEqual((await agent.listSuspendedRuns({ threadId: "t1", resourceId: "ann", fromDate: since })).runs, []);
}

// --- Errors

const refused = async (promise, status, part) =>
  assert.rejects(promise, (error) => {
    assert.ok(error.message.startsWith(`HTTP error! status: ${status} - {`), error.message);
    assert.ok(error.message.includes(part), error.message);
    return true;
  });
await refused(client.getAgent("nobody").generate("Hello"), 404, "Stored agent with id nobody not found");
await refused(agent.generate([{ role: "system", content: "Be rude." }, ...question]), 400, "messages[0].role");
await refused(agent.generate("Hello", { instructions: "Be rude." }), 400, "instructions");
await create("broken", { model: { provider: "nobody", name: "nothing" } });
await refused(client.getAgent("broken").generate("Hello"), 424, "run_failed");
const broken = await read(await client.getAgent("broken").stream("Hello"));
assert.deepEqual(broken.map((chunk) => chunk.type), ["error"]);
assert.match(broken[0].payload.error.message, /nobody/);

console.log("done");
