// Uses MCP servers and their tools through the published client, against a running server.
//   node drive_mcp.mjs <client-oldest|client-newest> <address> <key> <key of a stranger> <ID of a new server> <its URL>
import assert from "node:assert/strict";

const [module, baseUrl, key, strangerKey, serverId, url] = process.argv.slice(2);
const { MastraClient } = await import(module);
const connect = (secret) =>
  new MastraClient({ baseUrl, headers: { Authorization: `Bearer ${secret}` }, retries: 0 });
const client = connect(key);
const stranger = connect(strangerKey);
const body = { id: serverId, name: "Shop", ownerId: "support", servers: { [serverId]: { type: "http", url } } };
const send = (method, path, content) =>
  fetch(`${baseUrl}/api${path}`, {
    method,
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: content && JSON.stringify(content),
  });

if (module === "client-newest") {
  const created = await client.createStoredMCPClient(body);
  assert.equal(created.id, serverId);
  assert.equal(created.servers[serverId].url, url);
  const { mcpClients } = await client.listStoredMCPClients({ page: 0, perPage: 100 });
  assert.ok(mcpClients.some((row) => row.id === serverId));
  const stored = client.getStoredMCPClient(serverId);
  assert.equal((await stored.update({ description: "Of the tests" })).description, "Of the tests");
  assert.equal((await stored.details()).versionNumber, 2);
  const command = { [serverId]: { type: "stdio", command: "sh" } };
  await assert.rejects(stored.update({ servers: command }), /422/);
  await assert.rejects(stranger.getStoredMCPClient(serverId).details(), /404/);
} else {
  assert.equal((await send("POST", "/stored/mcp-clients", body)).status, 201);
}

let tools = [];
for (let tries = 0; tries < 600 && !tools.length; tries += 1) {
  tools = (await client.getMcpServerTools(serverId)).tools;
  if (!tools.length) await new Promise((done) => setTimeout(done, 100));
}
assert.deepEqual(tools.map((tool) => tool.id).sort(), ["opening_hours", "reserve", "shipping_price", "stock_level"]);

const { servers, total_count } = await client.getMcpServers({ limit: 1000, offset: 0 });
assert.ok(servers.some((server) => server.id === serverId));
assert.equal(total_count, servers.length);
const page = await client.getMcpServers({ page: 0, perPage: 1 });
assert.equal(page.servers.length, 1);
const details = await client.getMcpServerDetails(serverId);
assert.equal(details.name, "Shop");
const version = details.version_detail.version;
assert.equal((await client.getMcpServerDetails(serverId, { version })).id, serverId);
await assert.rejects(client.getMcpServerDetails(serverId, { version: "99" }), /404/);

const tool = client.getMcpServerTool(serverId, "shipping_price");
assert.deepEqual((await tool.details()).inputSchema.required, ["country", "grams"]);
assert.deepEqual(await tool.execute({ data: { country: "DE", grams: 100 } }), { result: "4.90 EUR" });
await assert.rejects(tool.execute({ data: { country: "XX", grams: 100 } }), /424/);
await assert.rejects(client.getMcpServerTool(serverId, "reserve").execute({ data: {} }), /409/);
await assert.rejects(client.getMcpServerTool(serverId, "shred").details(), /404/);
await assert.rejects(stranger.getMcpServerTool(serverId, "shipping_price").execute({ data: {} }), /404/);
await assert.rejects(stranger.getMcpServerTools(serverId), /404/);

if (module === "client-newest") {
  await assert.rejects(client.getMcpServerResources(serverId), /501/);
  await assert.rejects(client.readMcpServerResource(serverId, "demo://page"), /501/);
  assert.equal((await client.getStoredMCPClient(serverId).delete()).success, true);
} else {
  assert.equal((await send("DELETE", `/stored/mcp-clients/${serverId}`)).status, 200);
}
await assert.rejects(client.getMcpServerDetails(serverId), /404/);

console.log("done");
