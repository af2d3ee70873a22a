"""The part of the machine that the sandbox shows to a program."""

import subprocess
import sys

import pytest

from tests.tools_app.programs.conftest import assert_refused
from tools_app.programs.sandbox import is_sandbox_available, sandboxed_argv, visible_paths


def test_the_interpreter_of_a_script_is_visible(tmp_path):
    script = tmp_path / "tool" / "run"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nprint('ran')\n")
    script.chmod(0o755)

    tool, *others = visible_paths([str(script)])

    assert tool == str(script.parent)
    assert {f"{sys.prefix}/{name}" for name in ("bin", "lib", "pyvenv.cfg")} <= {*others}
    assert sys.prefix not in others
    if not is_sandbox_available():
        assert_refused()
        return
    assert subprocess.run(sandboxed_argv([str(script)]), capture_output=True, text=True).stdout == "ran\n"


@pytest.mark.parametrize("program", ["/bin/sh", "/usr/bin/env", "/lib/x", "/sbin/y"])
def test_a_program_of_the_system_shows_nothing_more(program):
    assert visible_paths([program]) == []


def test_a_program_shows_its_folder_and_not_what_is_beside_it(tmp_path):
    for name in ("bin", "lib", ".ssh", "data"):
        (tmp_path / name).mkdir()
    for program in (tmp_path / "bin" / "agent", tmp_path / "data" / "agent"):
        program.touch()

    assert visible_paths([str(tmp_path / "bin" / "agent")]) == [str(tmp_path / "bin"), str(tmp_path / "lib")]
    assert visible_paths([str(tmp_path / "data" / "agent")]) == [str(tmp_path / "data")]
    assert visible_paths(["/initrd.img"]) in ([], ["/initrd.img"])


def test_the_data_of_the_server_is_hidden_also_beside_a_program(tmp_path, settings):
    settings.DATA_DIR = tmp_path / "var"
    settings.DATA_DIR.mkdir()
    (settings.DATA_DIR / "secret_key").write_text("hush")
    script = tmp_path / "run"
    script.write_text(f"#!/bin/sh\nls {settings.DATA_DIR}; ls {tmp_path}")
    script.chmod(0o755)

    if not is_sandbox_available():
        assert_refused()
        return
    done = subprocess.run(sandboxed_argv([str(script)]), capture_output=True, text=True)
    assert done.stdout.split() == ["run", "var"]


def test_only_a_first_line_with_a_path_names_an_interpreter(tmp_path):
    for content in (b"\x7fELF\x00", b"#!python3\n", b"#!\n", b"", b"#!\xff\xfe\n"):
        program = tmp_path / "program"
        program.write_bytes(content)

        assert visible_paths([str(program)]) == [str(tmp_path)]
