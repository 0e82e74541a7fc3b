"""Run docs/card.ipynb, and keep it with its outputs: `make notebook`.

nbclient and ipykernel do not belong to the project; `make notebook` installs them beside it and removes them. Warnings
and bars of progress are left out, and pictures have a palette, so that the file stays small.
"""

import base64
import io
import re
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image

NOTEBOOK = Path(__file__).parents[1] / "docs/card.ipynb"
PICTURE = re.compile(r"data:image/png;base64,([\w+/=]+)")
WIDTH = 1000  # pixels


def with_palette(found: re.Match[str]) -> str:
    """Return a picture that is at most WIDTH wide, in 32 colours."""
    picture = Image.open(io.BytesIO(base64.b64decode(found[1]))).convert("RGB")
    picture.thumbnail((WIDTH, 10 * WIDTH), Image.Resampling.LANCZOS)
    small = io.BytesIO()
    picture.quantize(32).save(small, "png", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(small.getvalue()).decode()}"


def main() -> None:
    """Run all cells in a folder that is removed afterwards."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=None, record_timing=False, resources=resources).execute()
    notebook.metadata.language_info = {"name": "python"}
    for cell in notebook.cells:
        cell.pop("id", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.output_type != "stream"]
            for output in cell.outputs:
                output.data.pop("text/html", None)  # tables are text, too
                if "text/markdown" in output.data:
                    del output.data["text/plain"]
                    output.data["text/markdown"] = PICTURE.sub(with_palette, output.data["text/markdown"])
    notebook.nbformat_minor = 4  # cells have no ids
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    main()
