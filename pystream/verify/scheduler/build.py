"""Make a model build from a copy of csrc, changed or not, with the C compiler alone: each changed file is compiled."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pystream.errors import PystreamError
from pystream.verify.scheduler._library import Library, load
from pystream.whole_file import whole_file, write_whole

OPTIONS = ["-O1", "-std=c11", "-fPIC", "-fvisibility=hidden", "-UNDEBUG"]
DEFINES = ["-DPYSTREAM_MODEL", "-DPYSTREAM_SMALL", "-D_GNU_SOURCE", "-D_DARWIN_C_SOURCE", "-DPy_LIMITED_API=0x030b0000"]
PRELUDE = '#include "base/base.h"\n#include "model/model.h"\n'
NEEDS = "needs a C compiler and Python's headers (on Debian: apt-get install gcc libc6-dev python3-dev)"


def build_own() -> Library:
    """Compile the sources that came with the package: once, then they are in the user's cache."""
    package = Path(__file__).parents[2]
    sources = [folder for folder in (package / "csrc", package.parent / "csrc") if (folder / "model").is_dir()]
    if not sources:
        raise PystreamError(f"the sources of the model build are not in {package}; install pystream-core again")
    if shutil.which(_compiler()) is None or not Path(sysconfig.get_path("include"), "Python.h").exists():
        raise PystreamError(f"the model build is not there yet, and making it {NEEDS}")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return build(sources[0], cache / "pystream" / "model")


def build(csrc: Path, folder: Path) -> Library:
    """Compile the sources in `csrc` and load the result. What has been compiled in `folder` before is used again.

    An object file goes by the contents of its source and of the headers that this includes, so a change of one .c file
    costs one call of the compiler and the link. Each result is a file of its own: several builds can be loaded side by
    side, and what other processes see is whole.
    """
    folder.mkdir(parents=True, exist_ok=True)
    own = csrc / "base/memory.c"  # model/blocks.c takes its place
    sources = [*(path for path in sorted(csrc.glob("*/*.c")) if path != own), _border(csrc, folder)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda source: _compile(csrc, source, folder), sources))
    names = "".join(path.name for path in objects)
    target = folder / f"_model-{hashlib.sha256(names.encode()).hexdigest()[:16]}.so"
    if not target.exists():
        with whole_file(target) as scratch:
            _run(_compiler(), "-shared", *objects, "-lm", "-lpthread", "-o", scratch)
    return load(target)


def _border(csrc: Path, folder: Path) -> Path:
    """The code that cffi makes of model.h."""
    header = csrc / "model/model.h"
    border = folder / f"border-{hashlib.sha256(header.read_bytes()).hexdigest()[:16]}.c"
    if not border.exists():
        write_whole(folder / "prelude.c", PRELUDE)
        generator = [sys.executable, "-m", "cffi.gen_src", "read-sources", "pystream._model"]
        with whole_file(border) as scratch:
            _run(*generator, header, folder / "prelude.c", scratch)
    return border


def _compile(csrc: Path, source: Path, folder: Path) -> Path:
    contents = b"".join(path.read_bytes() for path in sorted(_included(csrc, source)))
    digest = hashlib.sha256(contents).hexdigest()[:16]
    target = folder / f"{source.stem}-{digest}.o"
    if not target.exists():
        includes = [f"-I{csrc}", f"-I{sysconfig.get_path('include')}", f"-fmacro-prefix-map={csrc}/="]
        with whole_file(target) as scratch:
            _run(_compiler(), *OPTIONS, *DEFINES, *includes, "-c", source, "-o", scratch)
    return target


def _included(csrc: Path, source: Path) -> set[Path]:
    """The file and all of our headers that it includes, directly or not."""
    found, look_at = {source}, [source]
    while look_at:
        path = look_at.pop()
        for name in re.findall(r'#include "(.+?)"', path.read_text()):
            header = path.parent / name if (path.parent / name).exists() else csrc / name
            if header not in found:
                found.add(header)
                look_at.append(header)
    return found


def _compiler() -> str:
    return shutil.which("gcc") or shutil.which("cc") or "cc"


def _run(*command: object) -> None:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)  # noqa: S603 - our own
    if done.returncode != 0:
        raise PystreamError(f"the model build does not compile:\n{done.stdout}{done.stderr}")
