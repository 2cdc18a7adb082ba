"""Virtual environments for executors, and for other versions of PySpark: made without a network where possible."""

from __future__ import annotations

import shutil
import venv
from pathlib import Path

import pyspark

import pystream as ps
from pystream import _core

#: Where this Python has its packages. A path file with it does not run the path files in it, so what is installed for
#: editing, as pystream is, is not found through it.
PACKAGES = Path(pyspark.__file__).parent.parent


def make(folder: Path, *, pystream: bool = True) -> Path:
    """A virtual environment; what else it needs is on the image, as Spark itself is. Gives its Python."""
    venv.create(folder, symlinks=True, with_pip=False)
    site = next((folder / "lib").glob("python3*/site-packages"))
    (site / "image.pth").write_text(f"{PACKAGES}\n")
    if pystream:
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(Path(ps.__file__).parent, site / "pystream", ignore=ignored)
        shutil.copy(_core.__file__, site / "pystream")
    return folder / "bin/python"
