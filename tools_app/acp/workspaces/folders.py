"""The workspaces of ACP agents: folders in which they read and write files.

Each part of a path is opened relative to the folder before it, without following links. So nothing that an agent puts
there, or exchanges while a file is opened, leads outside.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from uuid import UUID

from django.conf import settings

from agentcms.ids import uuid7
from tools_app.acp.errors import AcpError
from tools_app.acp.workspaces.names import owner_folder, validate_workspace_name
from tools_app.models import AcpWorkspace

MAX_FILE_BYTES = 1024 * 1024
MAX_WORKSPACE_BYTES = 100 * 1024 * 1024
MAX_WORKSPACE_FILES = 10_000  # and folders
EXCHANGED = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}  # an entry was deleted or exchanged meanwhile
MAX_PATH_DEPTH = 32  # of a path that our client opens
MAX_NESTED_FOLDERS = 100  # that an agent made itself

OUTSIDE_MESSAGE = "The path is outside of the workspace."
LINK_MESSAGE = "The path leads through a link, which is not followed."
MISSING_MESSAGE = "There is no such file."
NOT_A_FILE_MESSAGE = "The path is not a plain file."
FILE_SIZE_MESSAGE = "The file is larger than 1 MB."
FULL_MESSAGE = "The workspace is full: it has more than 100 MB, or too many files or folders. Delete some."
NOT_TEXT_MESSAGE = "The file is not a text in UTF-8."

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # not blocking: a pipe has no end


class PathRefused(AcpError):
    """A path that may not be used. The agent reads the message."""


@dataclass(frozen=True)
class Workspace:
    """A folder, and the path at which the agent sees it."""

    folder: Path
    seen_as: str

    def read(self, path: str) -> str:
        """Return the text of a file. Raise PathRefused."""
        *folders, name = self.split(path)
        with self.open_folders(folders) as parent, refusals():
            content = read_descriptor(os.open(name, _FILE, dir_fd=parent))
        if len(content) > MAX_FILE_BYTES:
            raise PathRefused(FILE_SIZE_MESSAGE)
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise PathRefused(NOT_TEXT_MESSAGE) from None

    def write(self, path: str, text: str) -> None:
        """Write a file, and create its folders. Raise PathRefused."""
        *folders, name = self.split(path)
        content = text.encode("utf-8", "replace")
        if len(content) > MAX_FILE_BYTES:
            raise PathRefused(FILE_SIZE_MESSAGE)
        self.reject_full(len(content))
        with self.open_folders(folders, create=True) as parent, refusals():
            reject_target(name, parent)
            temporary = f".{uuid7().hex}.tmp"
            file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=parent)
            try:
                with os.fdopen(file, "wb") as opened:
                    opened.write(content)
                # Replaces the name itself, also if it has become a link meanwhile.
                os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                os.unlink(temporary, dir_fd=parent)
                raise

    def split(self, path: str) -> list[str]:
        """Return the parts of a path inside the workspace. Raise PathRefused for any other path."""
        pure = PurePosixPath(path)
        if "\0" in path or ".." in pure.parts:
            raise PathRefused(OUTSIDE_MESSAGE)
        if pure.is_absolute():
            if not pure.is_relative_to(self.seen_as):
                raise PathRefused(OUTSIDE_MESSAGE)
            pure = pure.relative_to(self.seen_as)
        if not pure.parts or len(pure.parts) > MAX_PATH_DEPTH:
            raise PathRefused(NOT_A_FILE_MESSAGE)
        return list(pure.parts)

    @contextmanager
    def open_folders(self, names: list[str], *, create: bool = False) -> Iterator[int]:
        """Yield the descriptor of the folder below the workspace that these names lead to."""
        current = os.open(self.folder, _FOLDER)
        try:
            for name in names:
                with refusals():
                    following = open_folder(name, current, create=create)
                os.close(current)
                current = following
            yield current
        finally:
            os.close(current)

    def reject_full(self, more: int = 0) -> None:
        """Raise PathRefused if the workspace has no room for this many more bytes."""
        size, count = more, 0
        with self.open_folders([]) as folder:
            for bytes_of_entry in entry_sizes(folder):
                size, count = size + bytes_of_entry, count + 1
                if size > MAX_WORKSPACE_BYTES or count > MAX_WORKSPACE_FILES:
                    raise PathRefused(FULL_MESSAGE)


def entry_sizes(folder: int, depth: int = 0) -> Iterator[int]:
    """Yield the size of each file and folder in an open folder. Raise PathRefused where nobody can look into it."""
    if depth > MAX_NESTED_FOLDERS:
        raise PathRefused(FULL_MESSAGE)
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
                inner = os.open(entry.name, _FOLDER, dir_fd=folder) if stat.S_ISDIR(status.st_mode) else None
            except OSError as error:
                if error.errno in EXCHANGED:
                    continue
                raise PathRefused(FULL_MESSAGE) from None
            try:
                yield status.st_size  # the reader may end here
                if inner is not None:
                    yield from entry_sizes(inner, depth + 1)
            finally:
                if inner is not None:
                    os.close(inner)


def open_folder(name: str, parent: int, *, create: bool) -> int:
    """Return the descriptor of a folder in another, which it creates if it is missing and `create` is True."""
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            raise
        with suppress(FileExistsError):  # another write of the agent was first
            os.mkdir(name, 0o700, dir_fd=parent)
        return os.open(name, _FOLDER, dir_fd=parent)


@contextmanager
def refusals() -> Iterator[None]:
    """Raise PathRefused where the system refuses a path."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
            raise PathRefused(LINK_MESSAGE) from None
        if error.errno == errno.ENOENT:
            raise PathRefused(MISSING_MESSAGE) from None
        raise PathRefused(NOT_A_FILE_MESSAGE) from None


def read_descriptor(file: int) -> bytes:
    """Return the content of an open file, at most a byte more than it may have, and close it. Raise PathRefused."""
    try:
        reject_special(os.fstat(file))
        # Not before the check: Python refuses to open a folder as a file, and leaves its descriptor open.
        with os.fdopen(file, "rb", closefd=False) as opened:
            return opened.read(MAX_FILE_BYTES + 1)
    finally:
        os.close(file)


def reject_special(status: os.stat_result) -> None:
    """Raise PathRefused unless a file is a plain one. Another name of it may be outside of the workspace."""
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise PathRefused(NOT_A_FILE_MESSAGE)


def reject_target(name: str, parent: int) -> None:
    """Raise PathRefused if a name exists and is not a plain file."""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISLNK(status.st_mode):
        raise PathRefused(LINK_MESSAGE)
    reject_special(status)


# --- Folders


def workspace_folder(owner_id: str, thread_id: int | None, root_id: UUID, name: str) -> Path:
    """Return the folder of a run, which exists then. Raise AcpError if its team has no workspace of this name."""
    team = settings.WORKSPACES_DIR / owner_folder(owner_id)
    if name:
        validate_workspace_name(name)
        if not AcpWorkspace.objects.filter(owner_id=owner_id, name=name).exists():
            raise AcpError(f"The team of this run has no workspace '{name}'. Ask a superuser for it.")
        folder = team / f"named-{name}"
    else:
        folder = team / (f"thread-{thread_id}" if thread_id is not None else f"run-{root_id}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
