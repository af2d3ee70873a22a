"""Files of workspaces: nothing leads outside, and sizes are limited."""

import os
import shutil
import subprocess
import threading
from contextlib import suppress

import pytest

from tests.tools_app.acp.test_cleanup import nest
from tools_app.acp.workspaces import folders as workspaces
from tools_app.acp.workspaces.folders import PathRefused, Workspace
from tools_app.acp.workspaces.names import owner_folder


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("secret")
    return folder


@pytest.fixture
def workspace(tmp_path, outside):
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "link.txt").symlink_to(outside / "secret.txt")
    (folder / "links").symlink_to(outside)
    (folder / "dangling.txt").symlink_to(outside / "new.txt")
    os.link(outside / "secret.txt", folder / "hard.txt")
    os.mkfifo(folder / "pipe")
    return Workspace(folder, "/workspace")


def test_a_file_is_written_and_read_by_both_kinds_of_paths(workspace):
    workspace.write("/workspace/a/b.txt", "héllo")
    workspace.write("a/b.txt", "changed")

    assert workspace.read("/workspace/a/b.txt") == "changed"
    assert sorted(os.listdir(workspace.folder / "a")) == ["b.txt"]


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret.txt",
        "a/../../outside/secret.txt",
        "/workspace/../outside/secret.txt",
        "/workspaces/secret.txt",
        "/etc/hostname",
        "/",
        "",
        "link.txt",
        "links/secret.txt",
        "dangling.txt",
        "hard.txt",
        "pipe",
        "links",
        "a\0b",
        "/".join("a" * 50),
    ],
)
def test_no_path_leads_outside(workspace, outside, path):
    with pytest.raises(PathRefused):
        workspace.read(path)
    with pytest.raises(PathRefused):
        workspace.write(path, "changed")

    assert (outside / "secret.txt").read_text() == "secret"
    assert os.listdir(outside) == ["secret.txt"]


def test_a_link_that_is_exchanged_during_the_write_leads_nowhere(workspace, outside):
    """A folder and a file turn into links to the outside and back while the client writes and reads."""
    real, link = workspace.folder / "real", workspace.folder / "to-outside"
    real.mkdir()
    link.symlink_to(outside)
    swapped = workspace.folder / "swapped"
    done = threading.Event()

    def swap():
        while not done.is_set():
            for source in (real, link):
                if swapped.is_dir() and not swapped.is_symlink():  # the write created it in between
                    shutil.rmtree(swapped, ignore_errors=True)
                with suppress(OSError):
                    os.rename(source, swapped)
                    os.rename(swapped, source)

    thread = threading.Thread(target=swap)
    thread.start()
    texts = set()
    try:
        for _ in range(300):
            with suppress(PathRefused):
                workspace.write("swapped/secret.txt", "changed")
            with suppress(PathRefused):
                texts.add(workspace.read("swapped/secret.txt"))
    finally:
        done.set()
        thread.join()

    assert texts <= {"changed"}
    assert (outside / "secret.txt").read_text() == "secret"
    assert os.listdir(outside) == ["secret.txt"]


def test_two_files_are_written_into_a_new_folder_at_once(workspace, monkeypatch):
    mkdir = os.mkdir

    def make_as_second(*arguments, **options):
        mkdir(*arguments, **options)
        mkdir(*arguments, **options)

    monkeypatch.setattr(os, "mkdir", make_as_second)
    workspace.write("src/main.py", "pass")

    assert workspace.read("src/main.py") == "pass"


def test_sizes_are_limited(workspace, monkeypatch):
    workspace.write("a.txt", "x" * 1024 * 1024)
    with pytest.raises(PathRefused, match="larger than 1 MB"):
        workspace.write("b.txt", "x" * (1024 * 1024 + 1))
    (workspace.folder / "big.txt").write_bytes(b"x" * (1024 * 1024 + 1))
    with pytest.raises(PathRefused, match="larger than 1 MB"):
        workspace.read("big.txt")

    monkeypatch.setattr(workspaces, "MAX_WORKSPACE_BYTES", 2 * 1024 * 1024)
    with pytest.raises(PathRefused, match="workspace is full"):
        workspace.write("c.txt", "x")
    assert not (workspace.folder / "c.txt").exists()


def test_nested_and_countless_folders_are_a_full_workspace(workspace, monkeypatch):
    nest(workspace.folder, 1500)
    with pytest.raises(PathRefused, match="workspace is full"):
        workspace.write("a.txt", "x")
    subprocess.run(["rm", "-rf", workspace.folder / "n"], check=True)
    workspace.write("a.txt", "x")

    monkeypatch.setattr(workspaces, "MAX_WORKSPACE_FILES", 20)
    for number in range(20):
        (workspace.folder / f"folder-{number}").mkdir()
    with pytest.raises(PathRefused, match="workspace is full"):
        workspace.write("b.txt", "x")


def test_no_descriptor_stays_open_after_a_refusal(workspace, monkeypatch):
    """An agent that asks for folders, or fills its workspace with them, would use up those of the process."""
    monkeypatch.setattr(workspaces, "MAX_WORKSPACE_FILES", 10)
    for number in range(20):
        (workspace.folder / f"folder-{number}" / "inner").mkdir(parents=True)
    before = len(os.listdir("/proc/self/fd"))

    for _ in range(5):
        with pytest.raises(PathRefused, match="not a plain file"):
            workspace.read("folder-1")
        with pytest.raises(PathRefused, match="workspace is full"):
            workspace.write("a.txt", "x")

    assert len(os.listdir("/proc/self/fd")) == before


def test_a_binary_file_is_refused(workspace):
    (workspace.folder / "a.bin").write_bytes(b"\xff\xfe")

    with pytest.raises(PathRefused, match="not a text"):
        workspace.read("a.bin")


def test_two_owners_never_share_a_folder():
    names = ["", "support", "Support", "_shared", "a/b", "a_b", "..", ".", "ä", "-", "x" * 200]

    folders = {owner_folder(name) for name in names}

    assert len(folders) == len(names)
    assert not any("/" in folder or folder in (".", "..") for folder in folders)
