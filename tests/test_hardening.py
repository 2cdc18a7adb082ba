"""The extensions as built here: what a compiler and a linker can do against an overflow is switched on."""

from __future__ import annotations

import platform
import struct
import sys
from pathlib import Path

import pytest

from pystream import _core, _model

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads ELF; macOS' linker has none of these switches")

LOAD, DYNAMIC, GNU_STACK, GNU_RELRO = 1, 2, 0x6474E551, 0x6474E552  #: types of segments
STRTAB, SYMTAB, SYMENT, FLAGS, FLAGS_1, GNU_HASH = 5, 6, 11, 30, 0x6FFFFFFB, 0x6FFFFEF5  #: entries of DYNAMIC
BIND_NOW, NOW_1, EXECUTABLE = 8, 1, 1


class Elf:
    """As much of a 64-bit little-endian shared object as the loader reads."""

    def __init__(self, path: str) -> None:
        self.data = Path(path).read_bytes()
        assert self.data[:6] == b"\x7fELF\x02\x01"
        table, size, n = (*struct.unpack_from("<Q", self.data, 32), *struct.unpack_from("<HH", self.data, 54))
        headers = [struct.unpack_from("<IIQQQQ", self.data, table + i * size) for i in range(n)]
        self.flags = {kind: flags for kind, flags, *_ in headers}  #: of each type of segment
        self.loaded = [(start, bytes_, at) for kind, _, at, start, _, bytes_ in headers if kind == LOAD]
        [(at, length)] = [(at, length) for kind, _, at, _, _, length in headers if kind == DYNAMIC]
        self.dynamic = dict(struct.iter_unpack("<QQ", self.data[at : at + length]))

    def place(self, address: int) -> int:
        """Of an address in the file."""
        return next(at + address - start for start, size, at in self.loaded if start <= address < start + size)

    def symbols(self) -> dict[str, int]:
        """Addresses of the dynamic symbols, 0 for what is imported. The string table follows the symbols."""
        names, first = self.place(self.dynamic[STRTAB]), self.place(self.dynamic[SYMTAB])
        found = {}
        for at in range(first, names, self.dynamic[SYMENT]):
            name, _, _, _, address, _ = struct.unpack_from("<IBBHQQ", self.data, at)
            found[self.data[names + name : self.data.index(b"\0", names + name)].decode()] = address
        return found


@pytest.fixture(scope="module", params=[_core, _model], ids=["_core", "_model"])
def built(request) -> Elf:
    return Elf(request.param.__file__)


def test_the_tables_of_the_linker_cannot_be_written(built):
    """Full RELRO: every address is bound when the extension is loaded, and read-only from then on."""
    assert GNU_RELRO in built.flags
    assert built.dynamic.get(FLAGS, 0) & BIND_NOW or built.dynamic.get(FLAGS_1, 0) & NOW_1


def test_the_stack_cannot_be_executed(built):
    assert not built.flags[GNU_STACK] & EXECUTABLE


def test_overflows_of_the_stack_and_of_known_sizes_are_checked(built):
    imported = {name for name, address in built.symbols().items() if address == 0}
    assert "__stack_chk_fail" in imported
    assert [name for name in imported if name.startswith("__") and name.endswith("_chk")]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the marks of x86-64")
def test_indirect_calls_of_the_core_land_on_marks():
    elf = Elf(_core.__file__)
    entry = elf.place(elf.symbols()["PyInit__core"])
    assert elf.data[entry : entry + 4] == b"\xf3\x0f\x1e\xfa", "endbr64"
