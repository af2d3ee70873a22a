"""URLs of the API of evaluations."""

from django.urls import path, re_path

from evals_app.api import (
    comparisons,
    datasets,
    experiments,
    from_runs,
    gates,
    items,
    observability,
    progress,
    results,
    stored_scorers,
)
from evals_app.api.exchange import files
from evals_app.api.scores import scores, traces, usable_scorers

DATASET_PATH = "datasets/<str:dataset_id>"
EXPERIMENT_PATH = f"{DATASET_PATH}/experiments/<str:experiment_id>"
ITEM_PATH = f"{DATASET_PATH}/items/<str:item_id>"
SCORER_PATH = "stored/scorers/<str:scorer_id>"
SCORER_VERSION_PATH = f"{SCORER_PATH}/versions/<str:version_id>"
TRACE_PATH = "observability/traces/<str:trace_id>"

urlpatterns = [
    path("datasets", datasets.DatasetsView.as_view(), name="api-datasets"),
    # Here and below, fixed names come before the path with an ID, which would match them.
    path("datasets/cluster-failures", datasets.ClusterFailuresView.as_view(), name="api-cluster-failures"),
    path(f"{DATASET_PATH}/generate-items", datasets.GenerateItemsView.as_view(), name="api-generate-items"),
    path(DATASET_PATH, datasets.DatasetView.as_view(), name="api-dataset"),
    path(f"{DATASET_PATH}/versions", datasets.DatasetVersionsView.as_view(), name="api-dataset-versions"),
    path(f"{DATASET_PATH}/export", files.DatasetExportView.as_view(), name="api-dataset-export"),
    path(f"{DATASET_PATH}/import", files.DatasetImportView.as_view(), name="api-dataset-import"),
    path(f"{DATASET_PATH}/compare", comparisons.CompareExperimentsView.as_view(), name="api-dataset-compare"),
    path(f"{DATASET_PATH}/items", items.ItemsView.as_view(), name="api-dataset-items"),
    path(f"{DATASET_PATH}/items/batch", items.ItemBatchView.as_view(), name="api-dataset-item-batch"),
    path(ITEM_PATH, items.ItemView.as_view(), name="api-dataset-item"),
    path(f"{ITEM_PATH}/history", items.ItemHistoryView.as_view(), name="api-dataset-item-history"),
    path(f"{ITEM_PATH}/versions/<str:number>", items.ItemVersionView.as_view(), name="api-dataset-item-version"),
    path(f"{ITEM_PATH}/purge", items.PurgeView.as_view(), name="api-dataset-item-purge"),
    path(f"{DATASET_PATH}/experiments", experiments.DatasetExperimentsView.as_view(), name="api-dataset-experiments"),
    path(EXPERIMENT_PATH, experiments.DatasetExperimentView.as_view(), name="api-dataset-experiment"),
    path(f"{EXPERIMENT_PATH}/results", results.ResultsView.as_view(), name="api-experiment-results"),
    path(f"{EXPERIMENT_PATH}/results/<str:result_id>", results.ResultView.as_view(), name="api-experiment-result"),
    path(f"{EXPERIMENT_PATH}/items/<str:item_id>/run", results.ItemRunView.as_view(), name="api-experiment-item-run"),
    path(f"{EXPERIMENT_PATH}/finalize", experiments.FinalizeView.as_view(), name="api-experiment-finalize"),
    path("stored/agents/<str:agent_id>/gates", gates.GatesView.as_view(), name="api-gates"),
    path("stored/agents/<str:agent_id>/gates/<str:gate_id>", gates.GateView.as_view(), name="api-gate"),
    path("experiments", experiments.ExperimentsView.as_view(), name="api-experiments"),
    path("experiments/review-summary", experiments.ReviewSummaryView.as_view(), name="api-review-summary"),
    path("experiments/<str:experiment_id>", experiments.AnyExperimentView.as_view(), name="api-experiment"),
    path(
        "experiments/<str:experiment_id>/cancel",
        experiments.CancelExperimentView.as_view(),
        name="api-experiment-cancel",
    ),
    path("experiments/<str:experiment_id>/stream", progress.ProgressView.as_view(), name="api-experiment-stream"),
    path("stored/scorers", stored_scorers.StoredScorersView.as_view(), name="api-stored-scorers"),
    path(SCORER_PATH, stored_scorers.StoredScorerView.as_view(), name="api-stored-scorer"),
    path(f"{SCORER_PATH}/versions", stored_scorers.ScorerVersionsView.as_view(), name="api-scorer-versions"),
    path(f"{SCORER_PATH}/versions/compare", stored_scorers.ScorerCompareView.as_view(), name="api-scorer-compare"),
    path(SCORER_VERSION_PATH, stored_scorers.ScorerVersionView.as_view(), name="api-scorer-version"),
    path(f"{SCORER_VERSION_PATH}/activate", stored_scorers.ScorerActivateView.as_view(), name="api-scorer-activate"),
    path(f"{SCORER_VERSION_PATH}/restore", stored_scorers.ScorerRestoreView.as_view(), name="api-scorer-restore"),
    path("runs/<str:run_id>/add-to-dataset", from_runs.AddRunView.as_view(), name="api-run-to-dataset"),
    path("scores", scores.ScoresView.as_view(), name="api-scores"),
    path("scores/scorers", usable_scorers.UsableScorersView.as_view(), name="api-usable-scorers"),
    path("scores/scorers/<str:scorer_id>", usable_scorers.UsableScorerView.as_view(), name="api-usable-scorer"),
    path("scores/run/<str:run_id>", scores.RunScoresView.as_view(), name="api-scores-of-run"),
    path("scores/scorer/<str:scorer_id>", scores.ScorerScoresView.as_view(), name="api-scores-of-scorer"),
    path(
        "scores/entity/<str:entity_type>/<str:entity_id>",
        scores.EntityScoresView.as_view(),
        name="api-scores-of-entity",
    ),
    path("observability/traces", observability.TracesView.as_view(), name="api-traces"),
    path("observability/traces/light", observability.LightTracesView.as_view(), name="api-traces-light"),
    path("observability/scores", traces.ObservedScoresView.as_view(), name="api-observed-scores"),
    # These names are not IDs of traces.
    re_path(r"^observability/traces/(?:query|score|delete)$", observability.UnsupportedView.as_view()),
    path(TRACE_PATH, observability.TraceView.as_view(), name="api-trace"),
    path(f"{TRACE_PATH}/light", observability.LightTraceView.as_view(), name="api-trace-light"),
    path(f"{TRACE_PATH}/trajectory", observability.TrajectoryView.as_view(), name="api-trace-trajectory"),
    path(f"{TRACE_PATH}/spans/<str:span_id>", observability.SpanView.as_view(), name="api-trace-span"),
    re_path(r"^observability/", observability.UnsupportedView.as_view()),
]
