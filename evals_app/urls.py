"""URLs of the pages of evaluations."""

from django.urls import path

from evals_app.views import (
    compare,
    dataset_settings,
    datasets,
    experiments,
    from_runs,
    gates,
    imports,
    items,
    quality,
    scorers,
    start_experiment,
)

app_name = "evals"

DATASET = "datasets/<str:dataset_id>"
ITEM = f"{DATASET}/items/<uuid:item_id>"

urlpatterns = [
    path("datasets", datasets.dataset_list, name="datasets"),
    path(DATASET, datasets.dataset, name="dataset"),
    path(f"{DATASET}/export", imports.export, name="export"),
    path(f"{DATASET}/import", imports.upload, name="upload"),
    path(f"{DATASET}/imports/<uuid:job_id>", imports.import_page, name="import"),
    path(f"{DATASET}/imports/<uuid:job_id>/progress", imports.progress, name="import_progress"),
    path(f"{DATASET}/settings", dataset_settings.edit_settings, name="settings"),
    path(f"{DATASET}/archive", dataset_settings.archive, name="archive"),
    path(f"{DATASET}/unarchive", dataset_settings.unarchive, name="unarchive"),
    path(f"{DATASET}/delete", dataset_settings.delete_dataset, name="delete"),
    path(f"{DATASET}/versions", dataset_settings.version_list, name="versions"),
    path(f"{DATASET}/versions/<int:number>", dataset_settings.version_changes, name="version"),
    path(f"{DATASET}/items/add", items.add_item, name="add_item"),
    path(f"{ITEM}/edit", items.edit_item, name="edit_item"),
    path(f"{ITEM}/row", items.show_item, name="show_item"),
    path(f"{ITEM}/delete", items.delete_item, name="delete_item"),
    path(f"{ITEM}/history", items.item_history, name="item_history"),
    path(f"{ITEM}/purge", items.purge, name="purge_item"),
    path(f"{ITEM}/restore/<int:number>", items.restore, name="restore_item"),
    path(f"{DATASET}/experiments/start", start_experiment.start, name="start"),
    path("experiments", experiments.experiment_list, name="experiments"),
    path("experiments/compare", compare.compare, name="compare"),
    path("experiments/compare/again", compare.compare_again, name="compare_again"),
    path("experiments/<uuid:experiment_id>", experiments.experiment, name="experiment"),
    path("experiments/<uuid:experiment_id>/cancel", experiments.cancel, name="cancel"),
    path("experiments/<uuid:experiment_id>/retry", experiments.retry, name="retry"),
    path("experiments/<uuid:experiment_id>/results/<uuid:result_id>/review", experiments.review, name="review"),
    path("agents/<str:agent_id>/quality", quality.quality, name="quality"),
    path("agents/<str:agent_id>/gates/add", gates.add_gate, name="add_gate"),
    path("agents/<str:agent_id>/gates/<uuid:gate_id>", gates.change_gate, name="edit_gate"),
    path("agents/<str:agent_id>/gates/<uuid:gate_id>/delete", gates.delete_gate, name="delete_gate"),
    path("agents/<str:agent_id>/gates/<uuid:gate_id>/run", gates.run_gate, name="run_gate"),
    path("scorers", scorers.scorer_list, name="scorers"),
    path("new-scorer", scorers.create_scorer_page, name="new_scorer"),
    path("scorers/<str:scorer_id>", scorers.scorer, name="scorer"),
    path("scorers/<str:scorer_id>/edit", scorers.change_scorer_page, name="edit_scorer"),
    path("scorers/<str:scorer_id>/delete", scorers.delete_scorer_page, name="delete_scorer"),
    path("scorers/<str:scorer_id>/try", scorers.try_scorer, name="try_scorer"),
    path("scorers/<str:scorer_id>/test", scorers.test_judge, name="test_judge"),
    path("scorers/<str:scorer_id>/discard-draft", scorers.discard_scorer_draft, name="discard_scorer_draft"),
    path("scorers/<str:scorer_id>/compare", scorers.compare_scorer_versions, name="compare_scorer"),
    path(
        "scorers/<str:scorer_id>/versions/<int:number>/publish", scorers.publish_scorer_version, name="publish_scorer"
    ),
    path(
        "scorers/<str:scorer_id>/versions/<int:number>/restore", scorers.restore_scorer_version, name="restore_scorer"
    ),
    path("runs/add-to-dataset", from_runs.add_selected, name="add_runs"),
    path("runs/<uuid:run_id>/add-to-dataset", from_runs.add_to_dataset, name="add_run"),
]
