"""The region of the kernel's arrays, where the system does not give it."""

from __future__ import annotations

import resource

import pytest

from deltastar.errors import SourceError
from deltastar.machine import Machine


def test_no_address_space() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (40 << 30, hard))
    try:
        with pytest.raises(
            SourceError, match=r"refuses \d+ GiB of address space.*lift the limit \(ulimit -v unlimited"
        ):
            Machine()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert Machine().triples == 0
