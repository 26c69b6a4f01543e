"""Neighbour lists against a model: random additions and removals, through every representation and back."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from deltastar.kernel import graph
from deltastar.layout import C_HEAP_IN_USE, C_HUB_COUNT, COUNTERS, SEGMENT_INTS


class Lists:
    def __init__(self, nodes: int) -> None:
        self.arrays = (
            np.zeros(COUNTERS, np.int64),
            np.zeros(nodes * 2, np.int32),
            np.zeros(1 << 20, np.int32),
            np.zeros(1 << 18, np.int32),
        )
        self.counters, self.nodes, self.heap, self.hubs = self.arrays

    def neighbours(self, node: int, slot: int) -> list[int]:
        entry = graph.find_entry(self.nodes, self.heap, node, slot)
        if entry == 0:
            return []
        size = graph.size_of(self.heap, entry)
        one_by_one = [int(graph.neighbour_at(self.heap, entry, index)) for index in range(size)]
        in_runs: list[int] = []
        while len(in_runs) < size:
            start, length = graph.run_from(self.heap, entry, len(in_runs))
            in_runs += [int(value) for value in self.heap[start : start + length]]
        assert in_runs == one_by_one
        return one_by_one


@pytest.mark.parametrize(
    ("nodes", "slots", "values", "steps"), [(3, 2, 5, 2000), (4, 40, 60, 6000), (2, 1, 3 * SEGMENT_INTS, 12_000)]
)
def test_lists_hold_what_was_put_into_them(nodes: int, slots: int, values: int, steps: int) -> None:
    for seed in range(3):
        random = Random(seed)
        lists = Lists(nodes + 1)
        model: dict[tuple[int, int], set[int]] = {}
        share = 0.8
        for step in range(steps):
            if step % (steps // 6) == 0:
                share = random.choice((0.2, 0.5, 0.95))
            node, slot = random.randint(1, nodes), random.randrange(slots)
            there = model.setdefault((node, slot), set())
            value = random.choice(sorted(there)) if there and random.random() > share else random.randint(1, values)
            has = graph.has_neighbour(*lists.arrays, node, slot, value)
            assert has == (value in there)
            if not has:
                graph.add_neighbour(*lists.arrays, node, slot, value)
                there.add(value)
            elif random.random() > share:
                graph.remove_neighbour(*lists.arrays, node, slot, value)
                there.remove(value)
            if step % 97 == 0:
                assert sorted(lists.neighbours(node, slot)) == sorted(there)
        for (node, slot), there in model.items():
            assert sorted(lists.neighbours(node, slot)) == sorted(there)
        for (node, slot), there in model.items():
            for value in random.sample(sorted(there), len(there)):
                assert graph.has_neighbour(*lists.arrays, node, slot, value)
                graph.remove_neighbour(*lists.arrays, node, slot, value)
            assert lists.neighbours(node, slot) == []
        assert lists.counters[C_HUB_COUNT] == 0
        assert not lists.nodes.any()
        free_hub_numbers = lists.counters[C_HEAP_IN_USE]
        assert free_hub_numbers <= nodes * slots
