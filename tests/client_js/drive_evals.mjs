// Uses datasets and experiments through the published client, against a running server.
//   node drive_evals.mjs <address> <key> <key of a stranger> <agent id>
import assert from "node:assert/strict";

const [baseUrl, key, strangerKey, agentId] = process.argv.slice(2);
const { MastraClient } = await import("client-newest");
const connect = (secret) =>
  new MastraClient({ baseUrl, headers: { Authorization: `Bearer ${secret}` }, retries: 0 });
const client = connect(key);
const stranger = connect(strangerKey);

let checks = 0;
const equal = (actual, expected) => {
  checks += 1;
  assert.deepEqual(actual, expected);
};
const refused = async (promise, status) => {
  checks += 1;
  await assert.rejects(promise, (error) => {
    assert.ok(error.message.includes(`${status}`), error.message);
    return true;
  });
};
console.error = () => {};

// --- Datasets

const model = { provider: "demo", name: "echo", delay: 0 };
await client.createStoredAgent({ id: agentId, name: agentId, instructions: "", model });
const dataset = await client.createDataset({
  name: `Questions of ${agentId}`, description: "Of customers", targetType: "agent", targetIds: [agentId],
  scorerIds: ["exact"], metadata: { topic: "support" },
});
const datasetId = dataset.id;
equal([dataset.version, dataset.scorerIds, dataset.metadata], [0, ["exact"], { topic: "support" }]);
equal((await client.getDataset(datasetId)).name, dataset.name);
equal((await client.updateDataset({ datasetId, description: "New" })).description, "New");
const listed = await client.listDatasets({ targetType: "agent", targetIds: [agentId], page: 0, perPage: 5 });
equal([listed.datasets.length, listed.pagination.total], [1, 1]);

// --- Items

const answer = (text) => `I am the demo model 'echo'. You said: ${text}`;
const one = await client.addDatasetItem({ datasetId, input: "One", groundTruth: answer("One"), externalId: "q1" });
equal([one.datasetVersion, one.externalId, one.input], [1, "q1", "One"]);
const batch = await client.batchInsertDatasetItems({
  datasetId, items: [{ input: "Two", groundTruth: "No" }, { input: "Three", metadata: { hard: true } }],
});
equal([batch.count, batch.items[1].metadata], [2, { hard: true }]);
const changed = await client.updateDatasetItem({ datasetId, itemId: one.id, metadata: { easy: true } });
equal([changed.metadata, changed.datasetVersion], [{ easy: true }, 3]);
equal((await client.getDatasetItem(datasetId, one.id)).groundTruth, answer("One"));
equal((await client.listDatasetItems(datasetId)).items.map((item) => item.input), ["One", "Two", "Three"]);
equal((await client.listDatasetItems(datasetId, { version: 1 })).items.length, 1);
equal((await client.listDatasetItems(datasetId, { search: "thr" })).items.length, 1);
equal((await client.listDatasetItems(datasetId, { page: 1, perPage: 2 })).pagination.hasMore, false);
equal((await client.getItemHistory(datasetId, one.id)).history.map((row) => row.datasetVersion), [3, 1]);
equal((await client.getDatasetItemVersion(datasetId, one.id, 2)).metadata, null);
equal((await client.listDatasetVersions(datasetId)).versions.map((row) => row.version), [3, 2, 1]);

// --- An experiment that runs here

const finish = async (id) => {
  for (;;) {
    const experiment = await client.getDatasetExperiment(datasetId, id);
    if (!["pending", "running"].includes(experiment.status)) return experiment;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
};
const started = await client.triggerDatasetExperiment({
  datasetId, targetType: "agent", targetId: agentId, name: "First", maxConcurrency: 2,
  grouping: { experimentSetId: "set", trialIndex: 0 }, provenance: { source: "test" },
});
equal([started.status, started.totalItems, started.results], ["pending", 3, []]);
const first = await finish(started.experimentId);
equal([first.status, first.succeededCount, first.failedCount, first.skippedCount], ["completed", 3, 0, 0]);
equal([first.targetId, first.experimentSetId, first.trialIndex], [agentId, "set", 0]);
const results = (await client.listDatasetExperimentResults(datasetId, first.id)).results;
equal(results.map((result) => result.output), ["One", "Two", "Three"].map(answer));
// The third item has no ground truth, so its answer is not scorable.
equal(results.map((result) => result.scores[0].score), [1, 0, null]);
equal(results.map((result) => [result.error, result.retryCount]), [[null, 0], [null, 0], [null, 0]]);
const reviewed = await client.updateExperimentResult({
  datasetId, experimentId: first.id, resultId: results[1].id, status: "needs-review", tags: ["odd"], comment: "Why?",
});
equal([reviewed.status, reviewed.tags, reviewed.comment], ["needs-review", ["odd"], "Why?"]);
const tagged = await client.listDatasetExperimentResults(datasetId, first.id, { tags: ["odd"] });
equal(tagged.results.map((result) => result.id), [results[1].id]);
const counts = (await client.getExperimentReviewSummary()).counts.find((row) => row.experimentId === first.id);
equal([counts.total, counts.needsReview], [3, 1]);
equal((await client.listDatasetExperiments(datasetId, { experimentSetId: "set" })).experiments.length, 1);
equal((await client.listExperiments({ targetId: agentId })).pagination.total, 1);
const renamed = await client.updateDatasetExperiment({ datasetId, experimentId: first.id, name: "Renamed" });
equal(renamed.name, "Renamed");

// --- Experiments over workflows and scorers

const tickets = await client.createDataset({ name: `Tickets of ${agentId}`, targetType: "workflow" });
await client.addDatasetItem({
  datasetId: tickets.id, input: { subject: "Hi", body: "My delivery" },
  groundTruth: { queue: "delivery", priority: "normal" },
});
const called = { datasetId: tickets.id, targetType: "workflow", targetId: "triage-ticket", scorerIds: ["exact"] };
const triaged = await client.triggerDatasetExperiment(called);
while (["pending", "running"].includes((await client.getDatasetExperiment(tickets.id, triaged.experimentId)).status)) {
  await new Promise((resolve) => setTimeout(resolve, 100));
}
const [ticket] = (await client.listDatasetExperimentResults(tickets.id, triaged.experimentId)).results;
equal([ticket.output.queue, ticket.scores[0].score, ticket.traceId], ["delivery", 1, null]);
await client.batchInsertDatasetItems({ datasetId: tickets.id, items: [{ input: { output: "[1]" }, groundTruth: 1 }] });
const judged = await client.createDatasetExperiment({
  datasetId: tickets.id, targetType: "scorer", targetId: "cites-source", scorerIds: ["agreement"],
});
const [, answered] = (await client.listDatasetItems(tickets.id)).items;
const judgement = await client.runExperimentItem({
  datasetId: tickets.id, experimentId: judged.experimentId, itemId: answered.id,
});
equal([judgement.result.output, judgement.scores[0].score], [{ score: 1, reason: null }, 1]);
await refused(client.triggerDatasetExperiment({ ...called, targetId: "nobody" }), 404);
await client.deleteDataset(tickets.id);

// --- Experiments that a program outside drives

const external = await client.createDatasetExperiment({ datasetId, targetType: "agent", targetId: agentId });
const ran = await client.runExperimentItem({ datasetId, experimentId: external.experimentId, itemId: one.id });
equal([ran.result.output, ran.scores[0].score], [answer("One"), 1]);
const again = await client.runExperimentItem({ datasetId, experimentId: external.experimentId, itemId: one.id });
equal(again.result.id, ran.result.id);
equal((await client.finalizeExperiment({ datasetId, experimentId: external.experimentId })).succeededCount, 1);
const pair = { datasetId, experimentIdA: first.id, experimentIdB: external.experimentId };
const comparison = await client.compareExperiments(pair);
equal([comparison.baselineId, comparison.items.length], [first.id, 3]);
const compared = comparison.items.find((row) => row.itemId === one.id);
equal(compared.results[first.id], { output: answer("One"), scores: { exact: 1 } });
equal(compared.results[external.experimentId], { output: answer("One"), scores: { exact: 1 } });
equal(comparison.items.filter((row) => row.results[external.experimentId] === null).length, 2);
await refused(stranger.compareExperiments(pair), 404);
const ingested = await client.createDatasetExperiment({ datasetId, name: "From outside" });
const submission = { datasetId, experimentId: ingested.experimentId, itemId: one.id, output: "Uno" };
const submitted = await client.submitExperimentResult({ ...submission, scores: [{ scorerId: "exact", score: 0.5 }] });
equal([submitted.output, submitted.attempt], ["Uno", 0]);
equal((await client.submitExperimentResult(submission)).id, submitted.id);
equal((await client.finalizeExperiment({ datasetId, experimentId: ingested.experimentId })).status, "completed");
await refused(client.submitExperimentResult(submission), 409);

// --- Scores, scorers and traces of the runs of the experiment

const runId = results[0].traceId;
const saved = await client.saveScore({ score: { runId, scorerId: "exact", score: 0.5, reason: "By hand" } });
equal([saved.score.runId, saved.score.score, saved.score.reason], [runId, 0.5, "By hand"]);
const byHand = (page) => page.scores.filter((score) => score.reason === "By hand").length;
const entity = { entityId: agentId, entityType: "AGENT" };
equal(byHand(await client.listScoresByRunId({ runId })), 1);
// The scores of an experiment are those of a run with its ID.
const ofExperiment = await client.listScoresByRunId({ runId: first.id, perPage: 50 });
equal(ofExperiment.scores.every((score) => score.runId === first.id && score.source === "TEST"), true);
equal(ofExperiment.pagination.total > 0 && ofExperiment.pagination.total === ofExperiment.scores.length, true);
equal(byHand(await client.listScoresByScorerId({ scorerId: "exact", ...entity })), 1);
equal(byHand(await client.listScoresByEntityId(entity)), 1);
equal("exact" in (await client.listScorers()), true);
equal(typeof (await client.getScorer("exact")).scorer.config, "object");
const traces = await client.listTraces({ filters: { entityId: agentId } });
equal(traces.spans.some((span) => span.traceId === runId), true);
equal("input" in (await client.listTracesLight({ filters: { entityId: agentId } })).spans[0], false);
equal((await client.getTrace(runId)).traceId, runId);
equal("input" in (await client.getTraceLight(runId)).spans[0], false);
equal((await client.getSpan(runId, runId)).span.spanId, runId);
equal((await client.getTraceTrajectory(runId)).steps, []);
const scored = { traceId: runId, scorerId: "exact", score: 0.25, reason: "Of a trace" };
equal((await client.createScore({ score: scored })).success, true);
equal((await client.listScoresByRunId({ runId })).scores.some((score) => score.reason === "Of a trace"), true);
await refused(stranger.createScore({ score: scored }), 404);
equal(byHand(await client.listScores({ filters: { entityId: agentId } })), 1);
const filters = { traceId: runId, entityType: "agent", startedAt: { start: new Date(Date.now() - 3600_000) } };
equal((await client.listTraces({ filters })).spans.map((span) => span.traceId), [runId]);
const ofTrace = { filters: { traceId: runId, scorerId: ["exact"] }, orderBy: { field: "score", direction: "DESC" } };
const { scores: observed } = await client.listScores(ofTrace);
equal([...new Set(observed.map((score) => score.traceId))], [runId]);
equal(observed.every((score) => !Number.isNaN(Date.parse(score.timestamp))), true);
for (const call of [
  () => stranger.saveScore({ score: { runId, scorerId: "exact", score: 1 } }),
  () => stranger.listScoresByRunId({ runId }),
  () => stranger.listScoresByEntityId(entity),
  () => stranger.getTrace(runId),
  () => stranger.getTraceLight(runId),
  () => stranger.getSpan(runId, runId),
  () => stranger.getTraceTrajectory(runId),
]) {
  await refused(call(), 404);
}
const hidden = await stranger.listTraces({ filters: { entityId: agentId } });
equal(hidden.spans.filter((span) => span.traceId === runId), []);

// --- Stored scorers

const preset = { check: "includes", value: "You" };
const id = `${agentId}-check`;
equal((await client.createStoredScorer({ id, name: "Says you", type: "check", presetConfig: preset })).id, id);
const stored = client.getStoredScorer(id);
equal((await client.listStoredScorers()).scorerDefinitions.some((row) => row.id === id), true);
equal([(await stored.details()).name, (await stored.details()).presetConfig], ["Says you", preset]);
equal((await stored.update({ presetConfig: { ...preset, value: "said" } })).versionNumber, 2);
const [newer, older] = (await stored.listVersions()).versions;
equal([newer.versionNumber, older.versionNumber, (await stored.getVersion(older.id)).presetConfig], [2, 1, preset]);
equal((await stored.compareVersions(older.id, newer.id)).diffs.map((row) => row.field), ["presetConfig"]);
equal((await stored.createVersion({ changeMessage: "A mark" })).versionNumber, 3);
equal((await stored.activateVersion(older.id)).activeVersionId, older.id);
equal((await stored.restoreVersion(older.id)).versionNumber, 4);
equal((await stored.deleteVersion(older.id)).success, true);
const foreign = stranger.getStoredScorer(id);
for (const call of [
  () => foreign.details(),
  () => foreign.update({ name: "Mine" }),
  () => foreign.listVersions(),
  () => foreign.createVersion({}),
  () => foreign.getVersion(newer.id),
  () => foreign.compareVersions(newer.id, newer.id),
  () => foreign.activateVersion(newer.id),
  () => foreign.restoreVersion(newer.id),
  () => foreign.deleteVersion(newer.id),
  () => foreign.delete(),
  () => stranger.getScorer(id),
  () => stranger.listScoresByScorerId({ scorerId: id }),
]) {
  await refused(call(), 404);
}
equal((await stranger.listStoredScorers()).scorerDefinitions.some((row) => row.id === id), false);
equal((await stored.delete()).success, true);
await refused(stored.details(), 404);

// --- What is not supported

const generation = { modelId: "demo/echo", prompt: "More" };
await refused(client.generateDatasetItems({ datasetId, ...generation }), 501);
await refused(client.clusterFailures({ modelId: "demo/echo", items: [] }), 501);
for (const call of [
  () => client.getTraceQueryFields({}),
  () => client.queryTraces({ filters: {} }),
  () => client.score({ scorerName: "exact", targets: [{ traceId: runId }] }),
  () => client.deleteTraces({ traceIds: [runId] }),
  () => client.getScoreAggregate({}),
  () => client.getEntityTypes(),
  () => client.getServiceNames(),
  () => client.getEnvironments(),
]) {
  await refused(call(), 501);
}

// --- What is refused

const experimentId = first.id;
for (const call of [
  () => stranger.getDataset(datasetId),
  () => stranger.updateDataset({ datasetId, name: "Mine" }),
  () => stranger.deleteDataset(datasetId),
  () => stranger.listDatasetItems(datasetId),
  () => stranger.getDatasetItem(datasetId, one.id),
  () => stranger.addDatasetItem({ datasetId, input: "Mine" }),
  () => stranger.updateDatasetItem({ datasetId, itemId: one.id, input: "Mine" }),
  () => stranger.deleteDatasetItem(datasetId, one.id),
  () => stranger.purgeDatasetItem(datasetId, one.id),
  () => stranger.batchInsertDatasetItems({ datasetId, items: [{ input: "Mine" }] }),
  () => stranger.batchDeleteDatasetItems({ datasetId, itemIds: [one.id] }),
  () => stranger.getItemHistory(datasetId, one.id),
  () => stranger.getDatasetItemVersion(datasetId, one.id, 1),
  () => stranger.listDatasetVersions(datasetId),
  () => stranger.generateDatasetItems({ datasetId, ...generation }),
  () => stranger.listDatasetExperiments(datasetId),
  () => stranger.getDatasetExperiment(datasetId, experimentId),
  () => stranger.deleteDatasetExperiment(datasetId, experimentId),
  () => stranger.deleteExperiment(experimentId),
  () => stranger.updateDatasetExperiment({ datasetId, experimentId, name: "Mine" }),
  () => stranger.listDatasetExperimentResults(datasetId, experimentId),
  () => stranger.updateExperimentResult({ datasetId, experimentId, resultId: results[0].id, comment: "Mine" }),
  () => stranger.triggerDatasetExperiment({ datasetId, targetType: "agent", targetId: agentId }),
  () => stranger.createDatasetExperiment({ datasetId }),
  () => stranger.runExperimentItem({ datasetId, experimentId, itemId: one.id }),
  () => stranger.submitExperimentResult({ datasetId, experimentId, itemId: one.id }),
  () => stranger.finalizeExperiment({ datasetId, experimentId }),
]) {
  await refused(call(), 404);
}
equal((await stranger.listExperiments()).experiments.filter((row) => row.datasetId === datasetId), []);
equal((await stranger.listDatasets()).datasets.filter((row) => row.id === datasetId), []);
equal((await stranger.getExperimentReviewSummary()).counts.filter((row) => row.experimentId === experimentId), []);

// --- Deletion

equal((await client.batchDeleteDatasetItems({ datasetId, itemIds: [batch.items[1].id] })).deletedCount, 1);
equal((await client.purgeDatasetItem(datasetId, one.id)).success, true);
equal((await client.deleteDatasetItem(datasetId, one.id)).success, true);
equal((await client.deleteDatasetExperiment(datasetId, external.experimentId)).success, true);
equal((await client.deleteExperiment(ingested.experimentId)).success, true);
equal((await client.deleteDataset(datasetId)).success, true);
await refused(client.getDataset(datasetId), 404);
console.log(checks);
