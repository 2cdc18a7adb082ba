"""The package as users get it: an sdist that builds a wheel that works."""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

import pytest
from tools import run

ROOT = Path(__file__).parent.parent

#: Where people may read how to install it.
FOLDERS = ["pystream", "bench", "csrc", "spec", "tests"]
TEXTS = {".py", ".md", ".toml", ".txt", ".c", ".h", ".cmake", ".tla", ".css", ".java"}

USE_IT = """
import sys
import pystream as ps
assert all(getattr(ps, name).__module__.startswith("pystream.") for name in ps.__all__ if name[0] != "_")
assert not {"pyspark", "click", "rich"} & set(sys.modules)
query = ps.Query(ps.Window(2), "k", {"n": ps.count()})
print(ps.__file__, ps.aggregate(query, [{"ts": [0, 1, 2], "k": ["a", "a", "b"]}])["n"].to_pylist())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = ["-m", "build", "--no-isolation", "--outdir", folder, ROOT]  # the sdist, and the wheel from the sdist
    run(sys.executable, *command, cwd=folder)
    return next(folder.glob("*.whl"))


def test_a_wheel_built_from_the_sdist_works(wheel, tmp_path):
    assert re.fullmatch(r"pystream_core-[\d.]+-cp311-abi3-.*\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path)
    assert "pystream/py.typed" in names
    assert "pystream/spec/models.json" in names
    out = run(sys.executable, "-S", "-c", with_path(tmp_path), cwd=tmp_path)
    assert out == f"{tmp_path / 'pystream' / '__init__.py'} [2, 1]\n"


def test_python_started_in_the_source_tree_finds_the_extension(wheel, tmp_path):
    """`pip install .` and then `python` in the clone: the folder hides the installed package, but not its extension."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    assert (
        run(sys.executable, "-S", "-c", with_path(ROOT, tmp_path), cwd=ROOT)
        == f"{ROOT / 'pystream' / '__init__.py'} [2, 1]\n"
    )


def with_path(*folders: Path) -> str:
    """Use the package in these folders and this environment for its dependencies only: -S hides an editable install."""
    import pyarrow as pa  # noqa: PLC0415

    packages = str(Path(pa.__file__).parent.parent)
    return f"import sys; sys.path[:0] = {[str(f) for f in folders]!r}; sys.path.append({packages!r})\n{USE_IT}"


def test_nobody_is_told_to_install_the_package_of_another_project():
    """On PyPI, `pystream` is not ours: ours is pystream-core, with or without extras."""
    theirs = re.compile(r"""pip install\s+(?:-\S+\s+)*["']?pystream(?![\w./-])|(?<![\w.-])pystream\[[a-z]""")
    texts = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.suffix in TEXTS]
    texts += [ROOT / ".ci/run", *(p for p in ROOT.iterdir() if p.suffix in TEXTS)]
    assert len(texts) > 200
    told = [f"{p.relative_to(ROOT)}: {line.strip()}" for p in texts for line in theirs_in(p, theirs)]
    assert told == []


def theirs_in(path: Path, pattern: re.Pattern[str]) -> list[str]:
    if path == Path(__file__):
        return []
    return [line for line in path.read_text(errors="replace").splitlines() if pattern.search(line)]


def test_the_version_is_the_same_everywhere():
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    assert f'__version__ = "{version}"' in (ROOT / "pystream/__init__.py").read_text()
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()
