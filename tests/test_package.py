"""The package as users get it: an sdist that builds a wheel that works, and a README that tells the truth."""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

import pytest
from tools import run

ROOT = Path(__file__).parent.parent

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


def test_a_wheel_built_from_the_sdist_works(wheel, tmp_path):
    assert re.fullmatch(r"pystream-[\d.]+-cp311-abi3-.*\.whl", wheel.name)
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


def readme_commands() -> list[str]:
    return re.findall(r"^\$ (.*)$", (ROOT / "README.md").read_text().split("\n## ")[0], re.MULTILINE)


def test_ci_runs_the_command_of_the_readme():
    commands = readme_commands()
    assert len(commands) == 2
    assert "pystream demo" in commands[0]
    assert commands[1].endswith("pytest")
    assert commands[1] in (ROOT / ".ci/run").read_text()


def test_the_version_is_the_same_everywhere():
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    assert f'__version__ = "{version}"' in (ROOT / "pystream/__init__.py").read_text()
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_example_of_the_readme_runs():
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    exec(compile(example, "README.md", "exec"), {})  # noqa: S102 - our own README
