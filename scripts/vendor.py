"""Renew everything in static/vendor from npm: htmx, the two typefaces, and the CodeMirror bundle.

Change a version in front/package.json, run `python scripts/vendor.py`, look at the pages, commit.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FRONT = ROOT / "front"
MODULES = FRONT / "node_modules"
VENDOR = ROOT / "static" / "vendor"
FONTS = ("schibsted-grotesk", "red-hat-mono")


def install() -> None:
    """Install what front/package-lock.json names; the lock file keeps no registry addresses."""
    command = "ci" if (FRONT / "package-lock.json").exists() and lock_is_current() else "install"
    options = ["--omit-lockfile-registry-resolved", "--no-audit", "--no-fund", "--ignore-scripts"]
    subprocess.run(["npm", command, *options], cwd=FRONT, check=True)


def lock_is_current() -> bool:
    """Tell whether the lock file was made from today's package.json."""
    wanted = json.loads((FRONT / "package.json").read_text())["dependencies"]
    locked = json.loads((FRONT / "package-lock.json").read_text())["packages"][""]["dependencies"]
    return bool(wanted == locked)


def copy_htmx() -> None:
    folder = fresh_folder("htmx")
    package = MODULES / "htmx.org"
    source = (package / "dist" / "htmx.min.js").read_text()
    # The static files storage follows a source map's address and fails when the map is not there.
    (folder / "htmx.min.js").write_text(re.sub(r"\n?//# sourceMappingURL=.*\s*$", "", source) + "\n")
    shutil.copy(package / "LICENSE", folder / "LICENSE")


def copy_fonts() -> None:
    folder = fresh_folder("fonts")
    for font in FONTS:
        package = MODULES / "@fontsource-variable" / font
        for subset in ("latin", "latin-ext"):
            shutil.copy(package / "files" / f"{font}-{subset}-wght-normal.woff2", folder / f"{font}-{subset}.woff2")
        shutil.copy(package / "LICENSE", folder / f"{font}.LICENSE")


def build_editor() -> None:
    """Bundle front/editor.js into one file, with the licences of all that went into it beside it."""
    folder = fresh_folder("codemirror")
    report = FRONT / "node_modules" / "bundle.json"
    subprocess.run(
        [
            str(MODULES / ".bin" / "esbuild"),
            "editor.js",
            "--bundle",
            "--minify",
            "--format=iife",
            "--global-name=AgentEditor",
            "--target=es2022",
            "--legal-comments=none",
            f"--metafile={report}",
            f"--outfile={folder / 'editor.js'}",
        ],
        cwd=FRONT,
        env={**os.environ, "NO_COLOR": "1"},
        check=True,
    )
    (folder / "LICENSES").write_text("\n\n".join(licences(bundled_packages(report))) + "\n")


def bundled_packages(report: Path) -> list[str]:
    inputs = json.loads(report.read_text())["inputs"]
    found = {re.match(r"node_modules/((?:@[^/]+/)?[^/]+)/", name) for name in inputs}
    return sorted({match[1] for match in found if match})


def licences(packages: list[str]) -> list[str]:
    texts = []
    for package in packages:
        version = json.loads((MODULES / package / "package.json").read_text())["version"]
        licence = next((MODULES / package).glob("LICEN[CS]E*")).read_text().strip()
        texts.append(f"{package} {version}\n\n{licence}")
    return texts


def write_list() -> None:
    """Say in one file which version of what stands here."""
    wanted = json.loads((FRONT / "package.json").read_text())["dependencies"]
    lines = [f"{name} {version}" for name, version in sorted(wanted.items()) if name != "esbuild"]
    heading = "Made by scripts/vendor.py from front/package.json. Do not edit by hand."
    (VENDOR / "README").write_text("\n".join([heading, "", *lines]) + "\n")


def fresh_folder(name: str) -> Path:
    folder = VENDOR / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


if __name__ == "__main__":
    install()
    copy_htmx()
    copy_fonts()
    build_editor()
    write_list()
