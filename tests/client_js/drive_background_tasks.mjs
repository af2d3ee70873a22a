// Lists, reads and follows background tasks through the published client, against a running server.
//   node drive_background_tasks.mjs client-newest <address> <key> <agent ID>
import assert from "node:assert/strict";

const [module, baseUrl, key, agentId] = process.argv.slice(2);
const { MastraClient } = await import(module);
const client = new MastraClient({ baseUrl, headers: { Authorization: `Bearer ${key}` }, retries: 0 });
await client.createStoredAgent({
  id: agentId,
  name: agentId,
  instructions: "Count.",
  model: { provider: "demo", name: "echo", delay: 0 },
  tools: ["stock-count"],
  memory: "last-messages",
});
const agent = client.getAgent(agentId);

// --- The stream has the changes of a task while it runs

const stream = await client.streamBackgroundTasks({ agentId });
const chunks = [];
const end = (async () => {
  for await (const chunk of stream) {
    chunks.push(chunk);
    if (chunk.type === "background-task-completed") return;
  }
})();
const memory = { thread: `t-${agentId}`, resource: `r-${agentId}` };
const answer = await agent.generate("stock-count tea", { memory });
assert.ok(answer.runId);
await end;
const types = [...new Set(chunks.map((chunk) => chunk.type))];
assert.equal(types[0], "background-task-running");
assert.equal(types.at(-1), "background-task-completed");
const taskId = chunks[0].payload.taskId;
assert.ok(chunks.every((chunk) => chunk.payload.taskId === taskId));

// --- The task in lists, and by its ID

const task = await client.getBackgroundTask(taskId);
assert.equal(task.status, "completed");
assert.equal(task.runId, answer.runId);
assert.deepEqual(chunks.at(-1).payload.result, task.result);
const { tasks, total } = await client.listBackgroundTasks({
  agentId,
  status: "completed",
  toolName: "stock-count",
  threadId: memory.thread,
  fromDate: new Date(Date.now() - 3600_000),
  toDate: new Date(Date.now() + 3600_000),
  dateFilterBy: "completedAt",
  orderBy: "createdAt",
  orderDirection: "desc",
  page: 0,
  perPage: 5,
});
assert.deepEqual([tasks, total], [[task], 1]);
assert.equal((await client.listBackgroundTasks({ agentId, status: "failed" })).total, 0);
await assert.rejects(client.getBackgroundTask("00000000-0000-4000-8000-000000000000"), /404/);

// --- A stream that stays open until the task has ended

const response = await agent.streamUntilIdle("stock-count coffee", {
  memory: { thread: `u-${agentId}`, resource: memory.resource },
});
const until = [];
await response.processDataStream({ onChunk: (chunk) => void until.push(chunk.type) });
assert.ok(until.includes("background-task-started"), until.join());
assert.ok(until.includes("background-task-completed"), until.join());
assert.ok(until.lastIndexOf("finish") > until.indexOf("background-task-completed"), until.join());
console.log("done");
process.exit(0);
