"""One region for all arrays of an engine: private memory, or a mapped file.

Every array reserves the address space that it may ever need; pages cost memory only once they are touched. So an array
grows in place: nothing is copied, nothing moves, and growth never stops the world.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltastar.errors import SourceError

_PAGE = 4096
_MAP_NORESERVE = 0x4000  # Linux; Python names it from 3.13 on
_MAGIC = 0x3152415453544C44  # "DLTSTAR1"
H_MAGIC, H_LAYOUT, H_VERSION, H_DIRTY, H_PROGRAM, H_OWNER, H_WRITER, H_SLOT = 0, 1, 2, 3, 4, 5, 6, 7
"""The header: which arrays these are, the last batch that was applied, and whether one is under way; how often the
program has changed, whose arena it is, who worked on it last, and which of two residues is that of the version."""


class Arena:
    """Arrays by name, in one region with a header."""

    def __init__(self, arrays: Mapping[str, tuple[Any, int]], path: str | None = None) -> None:
        offsets, size = {}, _PAGE
        for name, (dtype, capacity) in arrays.items():
            offsets[name] = size
            size += -(-np.dtype(dtype).itemsize * capacity // _PAGE) * _PAGE
        self._map = _map_private(size) if path is None else _map_file(path, size)
        self.header: NDArray[np.uint64] = np.frombuffer(self._map, np.uint64, 64, 0)
        self.arrays: dict[str, NDArray[Any]] = {
            name: np.frombuffer(self._map, dtype, capacity, offsets[name]) for name, (dtype, capacity) in arrays.items()
        }
        layout = _digest(arrays)
        self.is_new = self.header[H_MAGIC] == 0
        if self.is_new:
            self.header[H_MAGIC], self.header[H_LAYOUT] = _MAGIC, layout
        elif self.header[H_MAGIC] != _MAGIC or self.header[H_LAYOUT] != layout:
            raise SourceError(f"{path} is not an arena of this version of deltastar; remove it to start from nothing")


def read_header(path: str | os.PathLike[str]) -> list[int]:
    """The header of an arena in a file, for whoever wants to know whether it is of any use; zeros if there is none."""
    try:
        with open(path, "rb") as file:
            header = file.read(8 * 64)
    except FileNotFoundError:
        header = b""
    return [int(number) for number in np.frombuffer(header.ljust(8 * 64, b"\0"), np.uint64)]


def _digest(arrays: Mapping[str, tuple[Any, int]]) -> int:
    """A number that differs when the arrays do."""
    return zlib.crc32(repr([(name, np.dtype(dtype).str, size) for name, (dtype, size) in arrays.items()]).encode())


def _map_private(size: int) -> mmap.mmap:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    try:
        return mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    except OSError as error:
        raise SourceError(
            f"the system refuses {size >> 30} GiB of address space that the kernel reserves, not uses ({error}); "
            "lift the limit (ulimit -v unlimited; vm.overcommit_memory 0 or 1), or evaluate with the paper's algorithms"
        ) from None


def _map_file(path: str, size: int) -> mmap.mmap:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.ftruncate(descriptor, size)  # sparse: only what is written takes space
        return mmap.mmap(descriptor, size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    finally:
        os.close(descriptor)
