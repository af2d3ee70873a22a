// Lists, reads and follows background tasks through the published client, against a running server.
//   node drive_background_tasks.mjs <client-newest> <address> <key> <agent ID>
import assert from "node:assert/strict";

const [module, baseUrl, key, agentId] = process.argv.slice(2);
const { MastraClient } = await import(module);
const client = new MastraClient({ baseUrl, headers: { Authorization: `Bearer ${key}` }, retries: 0 });
console.log(Object.getOwnPropertyNames(Object.getPrototypeOf(client)).filter((n) => /ackground/.test(n)));
for (const n of ["listBackgroundTasks","getBackgroundTask","streamBackgroundTasks"]) console.log(String(client[n]));
console.log(String(client.getAgent("x").streamUntilIdle));
