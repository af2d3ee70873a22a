// Uses threads and messages through the published client, against a running server.
//   node drive_memory.mjs <client-oldest|client-newest> <address> <key> <agent ID>
import assert from "node:assert/strict";

const [module, baseUrl, key, agentId] = process.argv.slice(2);
const { MastraClient } = await import(module);
const newest = module === "client-newest";
const client = new MastraClient({ baseUrl, headers: { Authorization: `Bearer ${key}` }, retries: 0 });
await client.createStoredAgent({
  id: agentId,
  name: agentId,
  instructions: "Answer.",
  model: { provider: "demo", name: "echo", delay: 0 },
  memory: "last-messages",
});
const resourceId = `ann-${agentId}`;
const threadId = `t-${agentId}`;

// --- Threads

const created = await client.createMemoryThread({ agentId, resourceId, threadId, title: "Trip", metadata: { a: 1 } });
assert.deepEqual(
  [created.id, created.resourceId, created.title, created.metadata],
  [threadId, resourceId, "Trip", { a: 1 }],
);
const listed = await client.listMemoryThreads({ agentId, resourceId, page: 0, perPage: 10 });
assert.deepEqual(listed.threads.map((thread) => thread.id), [threadId]);
assert.equal(listed.hasMore, false);
const thread = client.getMemoryThread({ threadId, agentId });
assert.equal((await thread.get()).title, "Trip");
assert.equal((await thread.update({ title: "Journey", metadata: {}, resourceId })).title, "Journey");

const again = await client.createMemoryThread({ agentId, resourceId, threadId });
assert.deepEqual([again.id, again.title], [threadId, "Journey"]);
await assert.rejects(client.createMemoryThread({ agentId, resourceId: "somebody", threadId }), /409/);
await thread.update({ metadata: { trip: { year: 2026 } } });
const bySome = { agentId, resourceId, metadata: { trip: { year: 2026 } } };
const order = { orderBy: { field: "updatedAt", direction: "ASC" } };
const ordered = { ...bySome, ...(newest ? order : { orderBy: "updatedAt", sortDirection: "ASC" }) };
assert.deepEqual((await client.listMemoryThreads(ordered)).threads.map((one) => one.id), [threadId]);
assert.equal((await client.listMemoryThreads({ ...bySome, metadata: { trip: { year: 2025 } } })).total, 0);

// --- Messages

const message = (content, role) => ({ role, content, threadId, resourceId, id: `${role}-${agentId}`, type: "text" });
const { messages: saved } = await client.saveMessageToMemory({
  agentId,
  messages: [message("My colour is turquoise.", "user"), message("Noted.", "assistant")],
});
assert.equal(saved[0].content.parts[0].text, "My colour is turquoise.");
const page = await thread.listMessages({ perPage: 1, orderBy: { field: "createdAt", direction: "ASC" } });
assert.deepEqual([page.messages[0].id, page.total, page.hasMore], [`user-${agentId}`, 2, true]);
assert.equal((await client.listThreadMessages(threadId, { agentId })).messages.length, 2);
assert.equal((await client.listThreadMessages(threadId, { networkId: agentId })).messages.length, 2);
const invocation = { state: "result", toolCallId: "c1", toolName: "add", args: { a: 1 }, result: 2 };
const whole = {
  ...{ id: `v2-${agentId}`, threadId, resourceId, role: "assistant", type: "v2", createdAt: new Date() },
  content: { format: 2, parts: [{ type: "tool-invocation", toolInvocation: invocation }, { type: "text", text: "Two." }] },
};
const stored2 = await client.saveMessageToMemory({ agentId, messages: [whole] });
assert.deepEqual(stored2.messages[0].content.parts, whole.content.parts);
const file = { type: "file", mimeType: "image/png", data: "aGk=" };
const withFile = { ...whole, id: "f", content: { format: 2, parts: [file] } };
await assert.rejects(client.saveMessageToMemory({ agentId, messages: [withFile] }), /400/);
if (newest) {
  const users = await thread.listMessages({ filter: { roles: ["user"] }, resourceId });
  assert.deepEqual(users.messages.map((one) => one.id), [`user-${agentId}`]);
  const include = [{ id: `user-${agentId}`, withNextMessages: 1 }];
  const around = await thread.listMessages({ perPage: 1, include });
  assert.equal(around.messages.length, 3);
  assert.equal(around.uiMessages[0].content, "My colour is turquoise.");
}
await thread.deleteMessages(`v2-${agentId}`);
const answer = await client.getAgent(agentId).generate("Which is it?", {
  memory: { thread: threadId, resource: resourceId },
});
assert.match(answer.text, /turquoise/);
const found = await client.searchMemory({ agentId, resourceId, searchQuery: "turquoise colour" });
assert.equal(found.results[0].threadId, threadId);
assert.deepEqual([found.searchType, found.searchScope, found.count], ["text", "resource", found.results.length]);
const near = { agentId, resourceId, threadId, searchQuery: "colour", memoryConfig: { messageRange: 1 } };
const inThread = await client.searchMemory(near);
assert.deepEqual([inThread.searchScope, inThread.results[0].threadTitle], ["thread", "Journey"]);
assert.equal((await client.getMemoryConfig({ agentId })).memoryType ?? "local", "local");
assert.equal((await client.getMemoryStatus(agentId)).result, true);

// --- Options and working memory

const memory = { options: { lastMessages: 5, workingMemory: { template: "# Person" }, semanticRecall: false } };
const stored = client.getStoredAgent(agentId);
assert.deepEqual((await stored.update({ memory })).memory, memory);
assert.equal((await client.getMemoryConfig({ agentId })).config.lastMessages, 5);
const noted = { agentId, threadId, resourceId };
const blank = await client.getWorkingMemory(noted);
assert.deepEqual([blank.workingMemory, blank.workingMemoryTemplate.content], [null, "# Person"]);
assert.deepEqual(await client.updateWorkingMemory({ ...noted, workingMemory: "# Ann" }), { success: true });
assert.equal((await client.getWorkingMemory(noted)).workingMemory, "# Ann");

// --- Observations

const observational = { options: {}, observationalMemory: { observation: { messageTokens: 100 } } };
assert.deepEqual((await stored.update({ memory: observational })).memory, observational);
await assert.rejects(client.getAgent(agentId).generate("Hello"), /requires a threadId/);
const long = { memory: { thread: threadId, resource: resourceId } };
for (const word of ["One", "Two", "Three"]) await client.getAgent(agentId).generate(word.repeat(40), long);
if (newest) {
  const { record } = await client.awaitBufferStatus({ agentId, threadId, resourceId });
  assert.equal(record.threadId, threadId);
  const observed = await client.getObservationalMemory({ agentId, threadId, resourceId, limit: 2 });
  assert.equal(observed.record.id, record.id);
}
const state = (await client.getMemoryStatus(agentId, undefined, { threadId, resourceId })).observationalMemory;
assert.equal(state.enabled, true);

const copy = await thread.clone({ newThreadId: `c-${agentId}` });
assert.equal(copy.clonedMessages.length, 10);
const removed = await thread.deleteMessages([`user-${agentId}`, { id: `assistant-${agentId}` }]);
assert.deepEqual(removed, { success: true, message: "2 messages deleted successfully" });
if (newest) assert.equal((await thread.transfer({ resourceId: `bob-${agentId}` })).resourceId, `bob-${agentId}`);
assert.deepEqual(await thread.delete(), { result: "Thread deleted" });
const clone = `c-${agentId}`;
await client.deleteThread(clone, newest ? { networkId: agentId } : { agentId });
await assert.rejects(client.getMemoryThread({ threadId: clone, agentId }).get(), /404/);
await assert.rejects(thread.get(), /404/);
await client.getStoredAgent(agentId).delete();
console.log("done");
