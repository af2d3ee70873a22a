"""The part of the machine that the sandbox shows to a program."""

import subprocess
import sys

from tools_app.programs.sandbox import is_sandbox_available, sandboxed_argv, visible_paths


def test_the_interpreter_of_a_script_is_visible(tmp_path):
    script = tmp_path / "tool" / "run"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nprint('ran')\n")
    script.chmod(0o755)

    (tool, interpreter, *_) = visible_paths([str(script)])

    assert (tool, interpreter) == (str(script.parent), sys.prefix)
    if is_sandbox_available():
        assert subprocess.run(sandboxed_argv([str(script)]), capture_output=True, text=True).stdout == "ran\n"


def test_only_a_first_line_with_a_path_names_an_interpreter(tmp_path):
    for content in (b"\x7fELF\x00", b"#!python3\n", b"#!\n", b"", b"#!\xff\xfe\n"):
        program = tmp_path / "program"
        program.write_bytes(content)

        assert visible_paths([str(program)]) == [str(tmp_path)]
