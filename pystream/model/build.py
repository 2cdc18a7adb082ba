"""Make a model build from a copy of csrc, changed or not, with the C compiler alone: a second per changed file."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from pystream.errors import PystreamError
from pystream.model._library import Library, load

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = ["-O1", "-std=c11", "-fPIC", "-fvisibility=hidden", "-UNDEBUG"]
DEFINES = ["-DPYSTREAM_MODEL", "-DPYSTREAM_SMALL", "-D_GNU_SOURCE", "-D_DARWIN_C_SOURCE", "-DPy_LIMITED_API=0x030b0000"]
PRELUDE = '#include "base.h"\n#include "model/model.h"\n'


def build(csrc: Path, folder: Path) -> Library:
    """Compile the sources in `csrc` and load the result. What has been compiled in `folder` before is used again.

    An object file goes by the contents of its source and of the headers that this includes, so a change of one .c file
    costs one call of the compiler and the link. Each result is a file of its own: several builds can be loaded side by
    side.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sources = [path for path in sorted(csrc.glob("*.c")) if path.name != "memory.c"]
    sources += [*sorted((csrc / "model").glob("*.c")), _border(csrc, folder)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda source: _compile(csrc, source, folder), sources))
    names = "".join(path.name for path in objects)
    target = folder / f"_model-{hashlib.sha256(names.encode()).hexdigest()[:16]}.so"
    if not target.exists():
        _run(_compiler(), "-shared", *objects, "-lm", "-lpthread", "-o", target)
    return load(target)


def _border(csrc: Path, folder: Path) -> Path:
    """The code that cffi makes of model.h."""
    header = csrc / "model/model.h"
    border = folder / f"border-{hashlib.sha256(header.read_bytes()).hexdigest()[:16]}.c"
    if not border.exists():
        (folder / "prelude.c").write_text(PRELUDE)
        generator = [sys.executable, "-m", "cffi.gen_src", "read-sources", "pystream._model"]
        _run(*generator, header, folder / "prelude.c", border)
    return border


def _compile(csrc: Path, source: Path, folder: Path) -> Path:
    contents = b"".join(path.read_bytes() for path in sorted(_included(csrc, source)))
    digest = hashlib.sha256(contents).hexdigest()[:16]
    target = folder / f"{source.stem}-{digest}.o"
    if not target.exists():
        includes = [f"-I{csrc}", f"-I{sysconfig.get_path('include')}", f"-fmacro-prefix-map={csrc}/="]
        _run(_compiler(), *OPTIONS, *DEFINES, *includes, "-c", source, "-o", target)
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
