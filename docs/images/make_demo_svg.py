"""Write diet.svg: what `coco demo` prints, as a picture of a terminal.

Run it with the interpreter that has the package: `.venv/bin/python docs/images/make_demo_svg.py`.
It takes as long as `coco demo`. The same output always gives the same file, and the file names no
font or address outside itself.
"""

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).with_name("diet.svg")
_TEMPLATE = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<title>Output of coco demo</title>
<style>
.{unique_id}-matrix {{
  font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: 21px; /* a little over the default, so that the lines of a table meet */
  line-height: {line_height}px;
}}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def run_demo() -> str:
    """Run `coco demo` in a process of its own and return what it prints."""
    command = [str(Path(sys.executable).with_name("coco")), "demo"]
    environment = os.environ | {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
    # The demo leaves a picture of its own in the folder it is run in.
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
    return done.stdout


def tidy(output: str) -> str:
    """Leave one blank line before each table, whatever the vanished progress bars left behind."""
    text = "\n".join(line.rstrip() for line in output.splitlines())
    return re.sub(r"\n{2,}", "\n\n", re.sub(r"(?m)^(└.*)$", r"\1\n", text)).strip()


def render(output: str) -> str:
    """Draw the output, below the command that gave it, as SVG."""
    text = tidy(output)
    # Room for fonts that are wider than the picture assumes.
    width = max(len(line) for line in text.splitlines()) + 4
    console = Console(
        record=True, width=width, file=io.StringIO(), color_system="truecolor", highlight=False
    )
    console.print(Text.assemble(("$ ", "bold green"), ("coco demo", "bold")))
    console.print(Text(text), soft_wrap=True)
    picture = console.export_svg(title="coco demo", code_format=_TEMPLATE, unique_id="demo")
    return re.sub(r"[ \t]+$", "", picture, flags=re.MULTILINE)


def main() -> None:
    """Run the demo and write the picture beside this file."""
    PICTURE.write_text(render(run_demo()), encoding="utf-8")


if __name__ == "__main__":
    main()
