"""URLs of the API of evaluations."""

from django.urls import path

from evals_app.api import datasets, items

DATASET_PATH = "datasets/<str:dataset_id>"
ITEM_PATH = f"{DATASET_PATH}/items/<str:item_id>"

urlpatterns = [
    path("datasets", datasets.DatasetsView.as_view(), name="api-datasets"),
    path(DATASET_PATH, datasets.DatasetView.as_view(), name="api-dataset"),
    path(f"{DATASET_PATH}/versions", datasets.DatasetVersionsView.as_view(), name="api-dataset-versions"),
    path(f"{DATASET_PATH}/items", items.ItemsView.as_view(), name="api-dataset-items"),
    path(f"{DATASET_PATH}/items/batch", items.ItemBatchView.as_view(), name="api-dataset-item-batch"),
    path(ITEM_PATH, items.ItemView.as_view(), name="api-dataset-item"),
    path(f"{ITEM_PATH}/history", items.ItemHistoryView.as_view(), name="api-dataset-item-history"),
    path(f"{ITEM_PATH}/versions/<str:number>", items.ItemVersionView.as_view(), name="api-dataset-item-version"),
    path(f"{ITEM_PATH}/purge", items.PurgeView.as_view(), name="api-dataset-item-purge"),
]
