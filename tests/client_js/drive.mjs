// Walks the published client through everything that it knows of stored agents, against a running server.
//   node drive.mjs <client-oldest|client-newest> <address> <key> <id of the agent>
import assert from "node:assert/strict";

const [module, baseUrl, key, id] = process.argv.slice(2);
const { MastraClient, RequestContext } = await import(module);
const newest = module === "client-newest";

let requests = 0;
const counted = (...call) => ((requests += 1), fetch(...call));
const client = new MastraClient({ baseUrl, headers: { Authorization: `Bearer ${key}` }, backoffMs: 5, fetch: counted });
const config = {
  id,
  name: "Concierge – Empfang 👋",
  description: "",
  instructions: "Greet guests.\nعربي 日本語",
  model: { provider: "openai", name: "gpt-4o-mini", temperature: 0.5 },
  tools: ["calculator"],
  defaultOptions: { maxSteps: 5 },
  workflows: [],
  agents: [],
  integrationTools: ["text_case_upper"],
  inputProcessors: [{ key: "mask-email" }],
  outputProcessors: [],
  scorers: { "answer-length": { sampling: { type: "ratio", rate: 0.5 } } },
  metadata: { team: "x", nested: { list: [1, null, true] } },
};
const holds = (agent, expected) => {
  for (const [name, value] of Object.entries(expected)) assert.deepEqual(agent[name], value, name);
};

// --- Agents

const created = await client.createStoredAgent(config);
holds(created, config);
assert.deepEqual([created.status, created.warnings], ["published", []]);
assert.match(created.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

const agent = client.getStoredAgent(id);
const context = { tenant: "a b", number: 7 };
assert.deepEqual(await agent.details(), created);
assert.deepEqual(await agent.details(context), created);

const updated = await agent.update({ instructions: "Two", metadata: { team: "y" } }, context);
holds(updated, { ...config, instructions: "Two", metadata: { team: "y" } });
assert.deepEqual((await agent.update(updated)).warnings, []); // an agent can be sent back as it was read
holds(await agent.update({ changeMessage: "Said why", description: "Three" }), { description: "Three" });

const list = await client.listStoredAgents({ page: 0, perPage: 1, orderBy: { field: "createdAt", direction: "DESC" } });
assert.deepEqual(Object.keys(list).sort(), ["agents", "hasMore", "page", "perPage", "total"]);
assert.equal(list.agents[0].id, id);
assert.equal((await client.listStoredAgents()).perPage, 100);

// --- Versions

const versions = await agent.listVersions();
assert.deepEqual(versions.versions.map((version) => version.versionNumber), [3, 2, 1]);
assert.equal(versions.versions[0].changeMessage, "Said why");
assert.deepEqual(versions.versions[0].changedFields, ["description"]);
const order = newest
  ? { orderBy: { field: "versionNumber", direction: "ASC" } }
  : { orderBy: "versionNumber", sortDirection: "ASC" };
const page = await agent.listVersions({ page: 1, perPage: 2, ...order }, context);
assert.deepEqual([page.versions.map((version) => version.versionNumber), page.total, page.hasMore], [[3], 3, false]);

const [third, second, first] = versions.versions;
assert.deepEqual(await agent.getVersion(first.id, context), first);
assert.equal(first.agentId, id);
holds(first.snapshot, { instructions: config.instructions, metadata: config.metadata });

const byHand = await agent.createVersion({ name: "By hand", changeMessage: "Kept" });
holds(byHand, { name: "By hand", changeMessage: "Kept", versionNumber: 4 });
holds(await agent.createVersion(), { versionNumber: 5 });

holds(await agent.activateVersion(first.id), {
  success: true,
  message: "Version 1 is now active",
  activeVersionId: first.id,
});
assert.equal((await agent.details()).instructions, config.instructions);

const restored = await agent.restoreVersion(third.id, context);
holds(restored, { versionNumber: 6, changeMessage: "Restored from version 3" });
assert.deepEqual(restored.snapshot, third.snapshot);

const compared = await agent.compareVersions(first.id, third.id);
assert.deepEqual(
  compared.diffs.map((diff) => diff.field).sort(),
  ["description", "instructions", "metadata"],
);
holds(compared.diffs.find((diff) => diff.field === "instructions"), {
  previousValue: config.instructions,
  currentValue: "Two",
});
assert.deepEqual([compared.fromVersion.id, compared.toVersion.id], [first.id, third.id]);

assert.equal((await agent.deleteVersion(second.id, context)).success, true);

// --- What only the newest knows

if (newest) {
  await agent.update({ name: "Draft", autoPublish: false });
  assert.equal((await agent.details(undefined, { status: "draft" })).name, "Draft");
  assert.equal((await agent.details(context, { status: "published" })).name, config.name);
  const { dependents, hiddenCount } = await agent.dependents();
  assert.deepEqual([dependents, hiddenCount], [[], 0]);
  const found = await client.listStoredAgents({ metadata: { team: "y" }, status: "draft", authorId: "" });
  assert.deepEqual(found.agents.map((each) => each.name), ["Draft"]);
}

// --- Errors

const refused = async (promise, status, part) => {
  const before = requests;
  await assert.rejects(promise, (error) => {
    assert.ok(error.message.startsWith(`HTTP error! status: ${status} - {`), error.message);
    assert.ok(error.message.includes(part), error.message);
    if (newest) assert.deepEqual([error.status, typeof error.body.code], [status, "string"]);
    return true;
  });
  return requests - before;
};
await refused(client.createStoredAgent(config), 409, "already exists");
await refused(agent.deleteVersion((await agent.details()).activeVersionId), 400, "Cannot delete the active version");
await refused(client.getStoredAgent("nobody").details(), 404, "Stored agent with id nobody not found");
await refused(agent.getVersion("nonsense"), 404, "Version with id nonsense not found");
await refused(client.createStoredAgent({ id: "x" }), 400, "instructions");
await refused(agent.compareVersions("nonsense", first.id), 404, "nonsense");
const stranger = new MastraClient({ baseUrl, headers: { Authorization: "Bearer nothing" }, retries: 0 });
await refused(stranger.getStoredAgent(id).details(), 401, "Invalid or expired token");

// --- Retries: an answer that is lost is asked for again, and an update repeated makes one version

let lost = 1;
const lossy = async (...call) => {
  const answer = await fetch(...call);
  if (lost-- > 0) throw new TypeError("connection lost");
  return answer;
};
const patient = new MastraClient({ baseUrl, headers: { Authorization: `Bearer ${key}` }, backoffMs: 5, fetch: lossy });
const before = (await agent.listVersions()).total;
await patient.getStoredAgent(id).update({ description: "Repeated" });
assert.equal((await agent.listVersions()).total, before + 1);

// --- Archived agents

const post = (path) => fetch(`${baseUrl}/api/stored/${path}`, { method: "POST", headers: { Authorization: `Bearer ${key}` } });
assert.equal((await post(`agents/${encodeURIComponent(id)}/archive`)).status, 200);
assert.deepEqual((await client.listStoredAgents()).agents.filter((each) => each.id === id), []);
if (newest) {
  assert.deepEqual((await client.listStoredAgents({ status: "archived" })).agents.map((each) => each.id), [id]);
  assert.equal((await agent.details(undefined, { status: "archived" })).id, id);
}
await refused(agent.update({ name: "New" }), 409, "is archived. Unarchive it first.");
assert.equal((await post(`agents/${encodeURIComponent(id)}/unarchive`)).status, 200);

assert.deepEqual(await agent.delete(context), { success: true, message: `Agent ${id} was deleted` });
await refused(agent.details(), 404, "not found");
console.log(`${requests} requests`);
