"""The page that starts an experiment, after an estimate of its cost."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from access_app.caller import Caller
from access_app.role import Role
from agentcms.errors import ApiError
from agentcms.ids import parse_whole_number
from agentcms.web.template_context import TemplateContext
from agentcms.wire.json_types import JSONObject
from agents_app.models import Agent
from agents_app.views.access import GET_POST
from evals_app.experiments.creation import create_experiment
from evals_app.experiments.estimate import estimate_cost
from evals_app.experiments.options import MAX_REPEATS, parse_experiment
from evals_app.experiments.targets import reject_without_model
from evals_app.forms.experiments import MAX_AGENT_CHOICES, StartForm
from evals_app.models import Dataset, Experiment
from evals_app.views.lookups import get_page_dataset
from runs_app.providers.cached_providers import model_unavailable_reason


@require_http_methods(GET_POST)
@login_required
def start(request: HttpRequest, dataset_id: str) -> HttpResponse:
    """Ask for the options of an experiment with an estimate of its cost, then start it."""
    dataset = get_page_dataset(request, dataset_id, Role.EDITOR)
    rows = list_agents(request, dataset)
    choices = [(key, name) for key, name, _ in rows]
    defaults = {"version": "live", "repeats": 1, "concurrency": 4, "scorers": dataset.scorer_keys}
    defaults["target"] = default_target(dataset, {key: model["provider"] for key, _, model in rows})
    given: JSONObject = {  # the estimate is requested by GET, with the fields of the form
        name: request.GET.getlist(name) if name == "scorers" else request.GET[name]
        for name in request.GET
        if name in StartForm.base_fields
    }
    form = StartForm(request.POST or None, initial=defaults | given, dataset=dataset, agents=choices)
    # Without a script, a button of the form asks for the estimate alone.
    if request.method == "POST" and "estimate" not in request.POST and form.is_valid():
        try:
            reject_without_model(form.body, request.user)
            experiment = create_experiment(dataset, parse_experiment(form.body), request.user)
        except ApiError as error:
            # The agent itself was chosen from a list.
            form.add_error("version" if error.code == "EXPERIMENT_TARGET_NOT_FOUND" else None, error.sentence)
        except ValidationError as error:
            form.add_error(None, " ".join(error.messages))
        else:
            return redirect("evals:experiment", experiment.pk)
    return render_form(request, dataset, form)


def list_agents(request: HttpRequest, dataset: Dataset) -> list[tuple[str, str, JSONObject]]:
    """Return the ID, name and model of the agents that are offered, by name.

    They are those that changed last, those that the dataset is for, and the one that the request names.
    """
    agents = Agent.objects.for_user(request.user).without_archived()
    _, _, requested = (request.POST.get("target") or request.GET.get("target", "")).partition(":")
    newest = agents.order_by("-updated_at", "pk")[:MAX_AGENT_CHOICES]
    # PostgreSQL refuses a NUL in a parameter.
    named = agents.filter(pk__in=[*dataset.target_ids, requested.replace("\0", "")])
    rows = {row[0]: row for part in (newest, named) for row in part.values_list("pk", "name", "model")}
    return sorted(rows.values(), key=lambda row: (row[1].casefold(), row[0]))


def default_target(dataset: Dataset, providers: dict[str, str]) -> str:
    """Return the target that the form offers first: one that the dataset is for, else an agent that can answer.

    `providers` has the model provider of each agent that can be chosen. If none can answer, the first one is offered.
    """
    kind = dataset.target_type or Experiment.Target.AGENT
    fitting = [key for key in dataset.target_ids if kind != Experiment.Target.AGENT or key in providers]
    if fitting and kind != Experiment.Target.AGENT:
        return f"{kind}:{fitting[0]}"
    candidates = fitting or [*providers]
    answering = [key for key in candidates if not model_unavailable_reason(providers[key])]
    return f"{Experiment.Target.AGENT}:{[*answering, *candidates][0]}" if candidates else ""


def describe_missing_target(form: StartForm, user: Caller) -> str:
    """Return why the agent that is chosen could answer no item, or a blank text."""
    kind, _, key = str(form["target"].value() or "").partition(":")
    body = {"targetType": kind, "targetId": key, "agentVersion": str(form["version"].value() or "")}
    try:
        reject_without_model(body, user)
    except ApiError as error:
        return error.sentence
    return ""


def render_form(request: HttpRequest, dataset: Dataset, form: StartForm) -> HttpResponse:
    """Render the form with the estimated cost of what is chosen."""
    target = str(form["target"].value() or "")
    groups = form.fields["target"].choices  # type: ignore[attr-defined]
    is_known = any(target == key for _, choices in groups for key, _ in choices)
    kind, _, key = target.partition(":")
    is_agent = kind == Experiment.Target.AGENT
    missing_target = describe_missing_target(form, request.user) if is_known and not form.errors else ""
    repeats = parse_whole_number(str(form["repeats"].value() or ""))
    repeats_count = min(max(repeats, 1), MAX_REPEATS)
    scorers = form["scorers"].value() or dataset.scorer_keys
    context: TemplateContext = {
        "nav": "evals",
        "dataset": dataset,
        "form": form,
        "estimate": estimate_cost(key, dataset, repeats_count, scorers)
        if is_known and is_agent and not missing_target
        else None,
        "is_call": is_known and not is_agent,
        "missing_target": missing_target,
        "run_count": dataset.item_count * repeats_count,
    }
    return render(request, "evals/start.html", context, status=422 if form.errors else 200)
