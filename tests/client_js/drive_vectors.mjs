// Uses knowledge bases as vector stores through the published client, against a running server.
//   node drive_vectors.mjs <client-oldest|client-newest> <address> <key> <ID of a new knowledge base>
import assert from "node:assert/strict";

const [module, baseUrl, key, baseId] = process.argv.slice(2);
const { MastraClient } = await import(module);
const headers = { Authorization: `Bearer ${key}` };
const client = new MastraClient({ baseUrl, headers, retries: 0 });

const created = await fetch(`${baseUrl}/api/knowledge`, {
  method: "POST",
  headers: { ...headers, "Content-Type": "application/json" },
  body: JSON.stringify({ id: baseId, name: baseId, filterable: ["year"] }),
});
assert.equal(created.status, 201, await created.text());

if (module === "client-newest") {
  const { vectors } = await client.listVectors();
  assert.ok(vectors.some((store) => store.name === baseId));
  assert.ok((await client.listEmbedders()).embedders.length);
}
const store = client.getVector(baseId);
assert.deepEqual(await store.getIndexes(), [baseId]);
assert.equal((await store.createIndex({ indexName: "own", dimension: 3, metric: "cosine" })).success, true);
const { ids } = await store.upsert({
  indexName: "own",
  vectors: [
    [1, 0, 0],
    [0, 1, 0],
  ],
  metadata: [
    { year: 2024, text: "first" },
    { year: 2025, text: "second" },
  ],
});
assert.equal(ids.length, 2);
assert.deepEqual(await store.details("own"), { dimension: 3, count: 2, metric: "cosine" });
const found = await store.query({ indexName: "own", queryVector: [1, 0.1, 0], topK: 1, includeVector: true });
assert.equal(found.length, 1);
assert.deepEqual([found[0].id, found[0].metadata.text, found[0].vector.length], [ids[0], "first", 3]);
const filtered = await store.query({ indexName: "own", queryVector: [1, 0, 0], filter: { year: { $gt: 2024 } } });
assert.deepEqual(filtered.map((row) => row.id), [ids[1]]);
await assert.rejects(store.query({ indexName: "own", queryVector: [1], topK: 1 }), /400/);
assert.equal((await store.delete("own")).success, true);
await assert.rejects(client.getVector("missing").getIndexes(), /404/);

console.log("done");
