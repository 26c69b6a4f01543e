"""Algorithms 2, 3, 5, 6 and 7 as the paper prints them, line by line, errors included.

Only tests use this: each correction in `deltastar.paper` has a case on which this gives a wrong delta. Line numbers in
comments are the paper's. Queries are lists of (subject, predicate, object) with variables as `?x`; only binary
predicates, as in the paper.
"""

from __future__ import annotations

from itertools import product
from typing import Any

Edge = tuple[str, str, str]
Output = list[tuple[str, tuple[str, ...]]]


def is_variable(node: str) -> bool:
    return node.startswith("?")


def unify(pattern: Edge, edge: Edge) -> dict[str, str] | None:
    """The paper does not define unification; read naively, the last occurrence of a variable wins."""
    binding = {}
    for node, value in zip(pattern, edge, strict=True):
        if is_variable(node):
            binding[node] = value
        elif node != value:
            return None
    return binding


class PrintedStar:
    """Algorithm 2: process_update_message_on_star."""

    def __init__(self, query: list[Edge]) -> None:
        self.query = query
        self.L: list[tuple[str, list[int]]] = []

    def process(self, op: str, edge: Edge) -> tuple[str, str] | None:
        matches = [(j, b) for j, e in enumerate(self.query) if (b := unify(e, edge)) is not None]
        if not matches:
            return None
        j, binding = matches[0]  # line 9: "for some j"
        (x,) = set(binding.values())
        if op == "ins":
            for centre, M in self.L:
                if centre == x:
                    M[j] = 1
                    return ("positive", x) if all(M) else None
            M = [0] * len(self.query)
            M[j] = 1
            self.L.append((x, M))
            return ("positive", x) if len(self.query) == 1 else None
        for centre, M in list(self.L):
            ground = [tuple(centre if is_variable(n) else n for n in e) for e in self.query]
            if edge in ground:
                if all(M):
                    return ("negative", centre)  # line 25 returns before line 26 clears the state
                M[ground.index(edge)] = 0
                self.L = [(c, N) for c, N in self.L if any(N)]
        return None


class PrintedLoose:
    """Algorithm 3 for star subqueries, with the set of answers T_S[i] passed as the list of instances (line 21)."""

    def __init__(self, stars: list[list[Edge]]) -> None:
        self.stars = [PrintedStar(star) for star in stars]
        self.T: list[list[Any]] = [[] for _ in stars]

    def process(self, op: str, edge: Edge) -> Output:
        output: Output = []
        for i, star in enumerate(self.stars):
            star.L = self.T[i]  # line 21: the third argument is T_S[i]
            R = star.process(op, edge)
            self.T[i] = star.L
            if R is None:
                continue
            sign, x = R
            if sign == "positive":
                self.T[i].append(x)  # line 23
                if all(self.T):
                    sets = [[x] if k == i else T for k, T in enumerate(self.T)]
                    output += [("positive", values) for values in product(*sets)]
        return output


class PrintedConnected:
    """Algorithms 5, 6 and 7."""

    def __init__(self, query: list[Edge]) -> None:
        self.query = query
        self.variables = list(dict.fromkeys(n for e in query for n in (e[0], e[2]) if is_variable(n)))
        self.stars = {v: [e for e in query if v in (e[0], e[2])] for v in self.variables}
        self.lists: dict[str, list[dict[str, Any]]] = {v: [] for v in self.variables}

    def process(self, op: str, edge: Edge) -> Output:
        output: Output = []
        for e_j in self.query:  # Algorithm 5, line 10: for each pattern the triple unifies with
            if (binding := unify(e_j, edge)) is None:
                continue
            order = self.order(e_j)
            R = self.star_ext(op, order[0], e_j, binding)
            bound = len({n for n in (e_j[0], e_j[2]) if is_variable(n)})
            if bound == 2:
                R_2 = self.star_ext(op, order[1], e_j, binding)
                R = [V | W for V in R for W in R_2 if all(V[n] == W[n] for n in V.keys() & W.keys())]
            for V_k in R:
                for V_t in self.find(V_k, bound, order)[1]:
                    row = tuple(V_t.get(v, "*") for v in self.variables)
                    output.append(("positive" if op == "ins" else "negative", row))
        return output

    def order(self, e_j: Edge) -> list[str]:
        order = [n for n in dict.fromkeys((e_j[0], e_j[2])) if is_variable(n)]
        for centre in order:
            for e in self.stars[centre]:
                order += [n for n in (e[0], e[2]) if is_variable(n) and n not in order]
        return order

    def star_ext(self, op: str, centre: str, e_j: Edge, binding: dict[str, str]) -> list[dict[str, str]]:
        """Algorithm 6."""
        star, L_e = self.stars[centre], self.lists[centre]
        j = star.index(e_j)
        others = [n for n in (e_j[0], e_j[2]) if is_variable(n) and n != centre]
        Y = others[0] if others else None
        R = []
        if op == "ins":
            at_centre = [record for record in L_e if record["X"] == binding[centre]]
            for record in at_centre:
                if Y is not None and Y in record["V"]:
                    copy = {"X": record["X"], "M": list(record["M"]), "V": dict(record["V"])}
                    copy["M"][j] = 1
                    copy["V"][Y] = binding[Y]
                    if copy not in L_e:
                        L_e.append(copy)
                    if all(copy["M"]) and copy["V"] not in R:
                        R.append(copy["V"])
                else:
                    record["M"][j] = 1
                    if Y is not None:
                        record["V"][Y] = binding[Y]
                    if all(record["M"]):
                        R.append(dict(record["V"]))
            if not at_centre:
                record = {"X": binding[centre], "M": [0] * len(star), "V": {centre: binding[centre]}}
                record["M"][j] = 1
                if Y is not None:
                    record["V"][Y] = binding[Y]
                L_e.append(record)
                if len(star) == 1:
                    R.append(dict(record["V"]))
            return R
        for record in [record for record in L_e if record["M"][j] == 1]:  # as printed: of any centre, any value of Y
            if all(record["M"]):
                R.append(dict(record["V"]))
            record["M"][j] = 0
            if Y is not None:
                record["V"].pop(Y, None)
            compatible = any(
                other is not record
                and all(other["V"][n] == record["V"][n] for n in other["V"].keys() & record["V"].keys())
                for other in L_e
            )
            if not any(record["M"]) or compatible:
                L_e.remove(record)
        return R

    def find(self, V_i: dict[str, str], k: int, order: list[str]) -> tuple[bool, list[dict[str, str]]]:
        """Algorithm 7."""
        if k > len(order) - 1:
            return True, [V_i]
        centre = order[k]
        ground = [
            record["V"]
            for record in self.lists[centre]
            if record["X"] == V_i.get(centre)
            and all(record["M"])
            and all(record["V"][n] == V_i[n] for n in record["V"].keys() & V_i.keys())
        ]
        R: list[dict[str, str]] = []
        for V_j in ground:
            V_ij = V_i | V_j
            if k == len(order) - 1:
                return True, [V_ij]  # line 14: the first one, and the others are lost
            found, deeper = self.find(V_ij, k + 1, order)
            R += deeper if found else []
        return bool(R), R
