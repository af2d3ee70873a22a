"""URLs of the API of evaluations."""

from django.urls import path

from evals_app.api import comparisons, datasets, experiments, gates, items, results

DATASET_PATH = "datasets/<str:dataset_id>"
EXPERIMENT_PATH = f"{DATASET_PATH}/experiments/<str:experiment_id>"
ITEM_PATH = f"{DATASET_PATH}/items/<str:item_id>"

urlpatterns = [
    path("datasets", datasets.DatasetsView.as_view(), name="api-datasets"),
    path(DATASET_PATH, datasets.DatasetView.as_view(), name="api-dataset"),
    path(f"{DATASET_PATH}/versions", datasets.DatasetVersionsView.as_view(), name="api-dataset-versions"),
    path(f"{DATASET_PATH}/compare", comparisons.CompareView.as_view(), name="api-dataset-compare"),
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
    path("experiments/<str:experiment_id>/cancel", experiments.CancelView.as_view(), name="api-experiment-cancel"),
]
