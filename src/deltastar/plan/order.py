"""In which order the stars of a component are joined, for each pattern that an update can match.

Proposition 5 says that the order exists: the overlapping-subqueries graph of a component is connected.
"""

from __future__ import annotations

from collections.abc import Sequence

from deltastar.query.algebra import Variable


def find_ordered_array(
    centres: Sequence[Variable], overlaps: Sequence[tuple[Variable, Variable]], first: Sequence[Variable]
) -> tuple[Variable, ...]:
    """The paper's findOrderedArray: breadth first over the overlapping-subqueries graph.

    The stars of the pattern's own variables come first; every later one overlaps with an earlier one.

    >>> x, y, z = (Variable(name) for name in "xyz")
    >>> find_ordered_array([x, y, z], [(x, y), (y, z)], [z])
    (?z, ?y, ?x)
    """
    neighbours: dict[Variable, list[Variable]] = {centre: [] for centre in centres}
    for left, right in overlaps:
        neighbours[left].append(right)
        neighbours[right].append(left)
    order = list(dict.fromkeys(first))
    placed = set(order)
    for centre in order:  # grows while it is walked
        for other in neighbours[centre]:
            if other not in placed:
                placed.add(other)
                order.append(other)
    return tuple(order)
