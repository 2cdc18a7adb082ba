"""The package as users get it: an sdist that builds a wheel that works."""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from tools import run

ROOT = Path(__file__).parent.parent

#: Where people may read how to install it.
FOLDERS = ["pystream", "bench", "csrc", "spec", "tests"]
TEXTS = {".py", ".md", ".toml", ".txt", ".c", ".h", ".cmake", ".tla", ".css", ".java"}

USE_IT = """
import sys
import pystream as ps
names = set(ps.__all__) - {"Design", "__version__"}
assert all(getattr(ps, name).__module__.startswith("pystream.") for name in names)
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


@pytest.mark.full
def test_a_wheel_built_from_the_sdist_works(wheel, tmp_path):
    assert re.fullmatch(r"pystream_core-[\d.]+-cp311-abi3-.*\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path)
    assert {"pystream/py.typed", "pystream/spec/models.json", "pystream/csrc/model/model.h"} <= set(names)
    libraries = [name for name in names if name.endswith(".so")]
    assert libraries == ["pystream/_core.abi3.so"]  # the model build is for developers, and made when it is first used
    out = run(sys.executable, "-S", "-c", with_path(tmp_path), cwd=tmp_path)
    assert out == f"{tmp_path / 'pystream' / '__init__.py'} [2, 1]\n"


@pytest.mark.full
def test_python_started_in_the_source_tree_finds_the_extension(wheel, tmp_path):
    """`pip install .` and then `python` in the clone: the folder hides the installed package, but not its extension."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    assert (
        run(sys.executable, "-S", "-c", with_path(ROOT, tmp_path), cwd=ROOT)
        == f"{ROOT / 'pystream' / '__init__.py'} [2, 1]\n"
    )


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The Python of an environment into which the wheel was installed; what it depends on is borrowed from ours."""
    folder = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin/python"
    packages = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", wheel)
    Path(packages, "borrowed.pth").write_text(str(Path(pa.__file__).parent.parent))
    return python


@pytest.mark.full
def test_models_are_checked_from_a_wheel(installed, tmp_path):
    said = run(installed.parent / "pystream", "check", "TGateTies", cwd=tmp_path, seconds=300)
    assert "TGateTies" in said


MODEL = """
import sys
sys.modules["pystream._model"] = None  # ours has one, and may be seen from here
from pystream.errors import PystreamError
from pystream.verify.scheduler import Program, explore
try:
    program = Program("counter", [[("increment",)], [("increment",)]], parameters=(1,))
    print(len(explore(program).histories))
except PystreamError as error:
    print(error)
"""


@pytest.mark.full
def test_the_model_build_is_made_when_it_is_first_used(installed, tmp_path, monkeypatch):
    """And without a compiler one sentence says what to do."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with monkeypatch.context() as poor:
        poor.setenv("PATH", str(tmp_path))
        said = run(installed, "-c", MODEL, cwd=tmp_path)
        assert said.startswith("the model build is not there yet, and making it needs a C compiler")
        assert said.count("\n") == 1
    histories = run(installed, "-c", MODEL, cwd=tmp_path, seconds=600)
    made = sorted((tmp_path / "cache/pystream/model").iterdir())
    assert int(histories) > 1
    assert any(path.suffix == ".so" for path in made)
    assert run(installed, "-c", MODEL, cwd=tmp_path) == histories
    assert sorted((tmp_path / "cache/pystream/model").iterdir()) == made


def with_path(*folders: Path) -> str:
    """Use the package in these folders and this environment for its dependencies only: -S hides an editable install."""
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
