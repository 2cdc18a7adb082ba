"""Full disks and read-only folders: every command that writes says so in one line, and leaves what was there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from disks import PAGE, Disk, read_only, small_disk
from faults import record
from test_report import EVALUATION

from pystream.cli import bench, main
from pystream.cli import report as report_module
from pystream.data.sample import smart_meters
from pystream.errors import PystreamError
from pystream.lab.report.facts import Same
from pystream.queries import PAPER
from pystream.verify.tlc import update
from pystream.verify.tlc.manifest import MANIFEST, find_spec, load
from pystream.whole_file import check_writable, whole_file, write_whole

#: What each command writes: its arguments, and the files, of which `{out}` is the folder.
WRITERS = {
    **{
        f"run to {kind}": (
            ["run", "k-OI", "--data", "{data}", "--out", f"{{out}}/rows.{kind}", "--force"],
            [f"rows.{kind}"],
        )
        for kind in ("parquet", "csv", "arrow", "jsonl")
    },
    "bench": (["bench", "--quick", "--out", "{out}/b.json", "--plot", "{out}/b.png"], ["b.json", "b.png"]),
    "report": (
        ["report", "--out", "{out}", "--evaluation", "{data}/evaluation.json"],
        ["index.html", "evaluation.png", "throughput-1.svg"],
    ),
    "check": (["check", "--list", "TGateTies", "TGateStructure", "--keep", "{out}"], ["TGateStructure.cfg"]),
}

#: Pages that are left, from none to more than enough: every one at first, then some.
ROOM = [*range(8), *(int(8 * 1.5**n) for n in range(13))]


@pytest.fixture
def data(tmp_path, monkeypatch) -> Path:
    """Something to run on; what takes long and writes nothing is left out."""
    folder = tmp_path / "data"
    folder.mkdir()
    for i, stream in enumerate(smart_meters(2, 3_000, seed=1)):
        pq.write_table(stream, folder / f"{i}.parquet")
    (folder / "evaluation.json").write_text(json.dumps(EVALUATION))
    monkeypatch.setattr(bench.Evaluation, "run", lambda _self: None)
    monkeypatch.setattr(bench, "document", lambda *_: EVALUATION | {"seconds": 1.0})
    monkeypatch.setattr(bench, "tables", lambda _result: ["what was measured"])
    same = [Same(PAPER["k-OS"], 478, "abcdef", dict.fromkeys(("mq", "sliced"), "abcdef"))]
    monkeypatch.setattr(report_module, "compare_designs", lambda _advance: same)
    return folder


@pytest.fixture
def disk(tmp_path):
    (tmp_path / "disk").mkdir()
    with small_disk(tmp_path / "disk") as made:
        yield made


def invoke(writer: str, data: Path, out: Path):
    args = [arg.format(data=data, out=out) for arg in WRITERS[writer][0]]
    return CliRunner(env={"COLUMNS": "200"}).invoke(main, args)


def failed_in_one_line(done, out: Path) -> None:
    assert done.exit_code == 1, done.output
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("Error")]  # not progress
    assert len(lines) == 1, done.stderr
    assert re.match(rf"Error: {re.escape(str(out))}\S* cannot be written: \w", lines[0]), lines


@pytest.mark.parametrize("writer", WRITERS)
def test_a_disk_that_is_full(writer, data, disk):
    """With room for no page, one page, two ..., until it is enough: each file is the old one or the new one."""
    names = WRITERS[writer][1]
    for name in names:
        (disk.folder / name).write_text("old")
    failures = 0
    for pages in ROOM:
        before = disk.files()
        with disk.room(pages):
            done = invoke(writer, data, disk.folder)
        if done.exit_code == 0:
            break
        failures += 1
        failed_in_one_line(done, disk.folder)
        check_files(before, disk.files(), names)
    assert 1 <= failures < len(ROOM)
    assert all(disk.files()[name] != b"old" for name in names)
    assert not [name for name in disk.files() if name.startswith(".")]
    record("full disk, at some page of a file", tried=failures, survived=failures, lost=0, where="test_disks.py")


def check_files(before: dict[str, bytes], after: dict[str, bytes], names: list[str]) -> None:
    """Nothing half: no scratch file, no file that is shorter than it must be."""
    assert not [name for name in after if name.startswith(".")]
    for name, content in after.items():
        assert content == before.get(name) or is_whole(name, content), name
    assert set(names) <= set(after)


def is_whole(name: str, content: bytes) -> bool:
    ends = {".png": b"IEND\xaeB`\x82", ".svg": b"</svg>\n", ".json": b"}\n", ".cfg": b"\n", ".html": b"</html>\n"}
    return content.endswith(ends[Path(name).suffix])


@pytest.mark.parametrize("writer", WRITERS)
def test_a_folder_that_is_read_only(writer, data, tmp_path):
    folder = tmp_path / "sealed"
    folder.mkdir()
    for name in WRITERS[writer][1]:
        (folder / name).write_text("old")
    with read_only(folder) as sealed:
        failed_in_one_line(invoke(writer, data, sealed), sealed)
        if sealed == folder:
            assert {p.name: p.read_text() for p in folder.iterdir()} == dict.fromkeys(WRITERS[writer][1], "old")
    record("read-only folder", tried=1, survived=1, lost=0, where="test_disks.py")


def test_bench_and_report_find_out_before_they_measure(data, tmp_path, monkeypatch):
    monkeypatch.setattr(bench.Evaluation, "run", lambda _self: pytest.fail("it measures"))
    monkeypatch.setattr(report_module, "compare_designs", lambda _advance: pytest.fail("it compares"))
    (tmp_path / "sealed").mkdir()
    with read_only(tmp_path / "sealed") as sealed:
        for writer in ("bench", "report"):
            failed_in_one_line(invoke(writer, data, sealed), sealed)


def test_bench_shows_what_it_has_measured_when_the_disk_is_full(data, disk):
    with disk.room(0):
        done = invoke("bench", data, disk.folder)
    assert "what was measured" in done.stdout


def test_the_manifest_stays_when_the_disk_is_full(disk):
    """`pystream check --update` writes into the folder of the specs: two files that nobody wants to lose."""
    models = load(find_spec())
    for name in (MANIFEST, update.README):
        (disk.folder / name).write_bytes((find_spec() / name).read_bytes())
    before = disk.files()
    for write in (lambda: update.write_manifest(disk.folder, []), lambda: update.write_readme(disk.folder, models)):
        for pages in range(3):
            with disk.room(pages), pytest.raises(PystreamError, match="cannot be written: "):
                write()
            assert disk.files() == before
        write()
    assert set(disk.files()) == set(before)
    record("full disk while the manifest is written", tried=6, survived=6, lost=0, where="test_disks.py")


def test_tlc_on_a_full_disk_shows_nothing(disk):
    """A model that must fail does not pass as one that did."""
    environment = os.environ | {"TMPDIR": str(disk.folder)}
    command = [sys.executable, "-m", "pystream", "check", "TGateTies"]
    with disk.room(8):
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 1, done.stdout
    assert "1 undecided" in done.stdout or "cannot be written" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("args", ["--help", "run --help", "queries", "demo --tuples 1000", "doctor", "check --list"])
def test_output_that_nobody_takes(args):
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "pystream", *args.split()]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert done.stderr == "Error: OSError: [Errno 28] No space left on device (--debug shows where)\n"


# ---- the one way to write ----


def test_an_error_of_the_writer_leaves_the_old_file(tmp_path):
    write_whole(tmp_path / "a", "old")
    with pytest.raises(ZeroDivisionError), whole_file(tmp_path / "a") as scratch:
        scratch.write_text("half")
        1 / 0  # noqa: B018
    with pytest.raises(FileNotFoundError), whole_file(tmp_path / "a"):
        (tmp_path / "what is read meanwhile").read_bytes()  # not the file's fault: the error stays as it is
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a": "old"}


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path):
    write_whole(tmp_path / "a", "old")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "null").symlink_to(os.devnull)
    for name in ("link", "null"):
        check_writable(tmp_path / name)
        write_whole(tmp_path / name, b"new")
    assert (tmp_path / "a").read_text() == "new"
    assert (tmp_path / "link").is_symlink()
    assert not Path(os.devnull).is_file()


def test_a_folder_that_is_not_there(tmp_path):
    for call in (check_writable, lambda path: write_whole(path, "")):
        with pytest.raises(PystreamError, match="no such/a cannot be written: No such file or directory"):
            call(tmp_path / "no such" / "a")


def test_a_disk_without_a_mount_is_full_too(tmp_path):
    """What stands in for a tmpfs where nothing can be mounted."""
    disk = Disk(tmp_path, mounted=False)
    with disk.room(1):
        write_whole(tmp_path / "a", bytes(PAGE))
        with pytest.raises(PystreamError, match="cannot be written: File too large"):
            write_whole(tmp_path / "a", bytes(PAGE + 1))
    assert disk.files() == {"a": bytes(PAGE)}
