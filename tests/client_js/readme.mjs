const baseUrl = "http://127.0.0.1:10310", key = "acms_7b02da83_aKjtD4VcWlHQ-iZ2Ht7lyk58gdGH6kRhmEzYMxmP9_c";
import { MastraClient } from "client-newest";

const client = new MastraClient({ baseUrl, headers: { Authorization: `Bearer ${key}` } });

await client.createStoredAgent({
  id: "guide",
  name: "Guide",
  instructions: "Answer questions about the city.",
  model: { provider: "demo", name: "echo" },
});
const stored = client.getStoredAgent("guide");
await stored.update({ instructions: "Answer questions about the city in two sentences." });
const { versions } = await stored.listVersions();
await stored.activateVersion(versions[1].id);

const answer = await client.getAgent("guide").generate("What is there to see?");
console.log(answer.text);
