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

// --- A task whose sub-agent waits for a person, and that goes on after the decision

const helperId = `${agentId}-helper`;
const routerId = `${agentId}-router`;
const model = { provider: "demo", name: "echo", delay: 0 };
await client.createStoredAgent({ id: helperId, name: helperId, instructions: "Refund.", model, tools: ["issue-refund"] });
await client.createStoredAgent({
  id: routerId, name: routerId, instructions: "Route.", model, agents: [helperId], memory: "last-messages",
  backgroundTasks: { tools: { [helperId]: { enabled: true } } },
});
const router = client.getAgent(routerId);
const refund = { order: "A-17", amount: 250 };
const question = `agent-${helperId} ${JSON.stringify({ prompt: `issue-refund ${JSON.stringify(refund)}` })}`;

// Approve the call of each task that waits, as its chunk says, and return the chunks until its end.
const decideWhenAsked = () => {
  const seen = [];
  const decide = async (chunk) => {
    if (chunk.type.startsWith("background-task-")) seen.push(chunk);
    if (chunk.type !== "background-task-suspended") return;
    const { runId, toolCallId } = chunk.payload;
    await router.approveToolCallGenerate({ runId, toolCallId });
  };
  return [seen, decide];
};
const check = (seen) => {
  const names = seen.map((chunk) => chunk.type.replace("background-task-", ""));
  const changes = names.filter((name) => !["started", "progress"].includes(name));
  assert.deepEqual(changes, ["running", "suspended", "resumed", "completed"]);
  const of = (name) => seen.find((chunk) => chunk.type === `background-task-${name}`).payload;
  assert.equal(new Set(["running", "suspended", "resumed", "completed"].map((name) => of(name).taskId)).size, 1);
  const [call] = of("suspended").suspendPayload.calls;
  assert.deepEqual([call.toolName, call.args, call.agentId], ["issue-refund", refund, helperId]);
  assert.ok(of("suspended").suspendedAt && of("resumed").startedAt);
  assert.match(of("completed").result, /Refunded 250.00 for order A-17/);
  return of("completed").taskId;
};

const [seen, decide] = decideWhenAsked();
const taskStream = await client.streamBackgroundTasks({ agentId: routerId });
const completed = (async () => {
  for await (const chunk of taskStream) {
    if (chunk.type === "background-task-suspended") {
      const waiting = await client.getBackgroundTask(chunk.payload.taskId);
      assert.deepEqual([waiting.status, waiting.suspendPayload], ["suspended", chunk.payload.suspendPayload]);
      assert.equal((await client.listBackgroundTasks({ agentId: routerId, status: "suspended" })).total, 1);
    }
    await decide(chunk);
    if (chunk.type === "background-task-completed") return;
  }
})();
await router.generate(question, { memory: { thread: `v-${agentId}`, resource: memory.resource } });
await completed;
const after = await client.getBackgroundTask(check(seen));
assert.deepEqual([after.status, after.suspendedAt, after.suspendPayload], ["completed", undefined, undefined]);

const [seenUntilIdle, decideUntilIdle] = decideWhenAsked();
const open = await router.streamUntilIdle(question, {
  memory: { thread: `w-${agentId}`, resource: memory.resource },
});
await open.processDataStream({ onChunk: decideUntilIdle });
check(seenUntilIdle);
console.log("done");
process.exit(0);
