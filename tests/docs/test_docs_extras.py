import re
import subprocess
import sys

from doc_pages import PACKAGE

from cocobandits.cli import experiments

# Hides the packages of the extra, then asks for help: every verb is listed without them.
PROGRAM = f"""
import sys
for name in {experiments._NEEDED!r}:
    sys.modules[name] = None
from cocobandits.cli.main import main
sys.argv = ["coco", "--help"]
main()
"""


def test_command_line_starts_without_the_extra():
    """Run it in a process of its own."""
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(verb in done.stdout for verb in ("demo", "reproduce", "report"))


def test_only_experiments_runs_and_logs_import_the_extra():
    """Search the other layers for imports, wherever they stand."""
    pattern = rf"^\s*(?:import|from) (?:{'|'.join(experiments._NEEDED)})\b"
    users = {
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        if re.search(pattern, path.read_text(encoding="utf-8"), re.M)
    }
    assert users == {"experiments", "runs", "study", "logs"}
