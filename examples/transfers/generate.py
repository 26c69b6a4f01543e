"""Writes the example: accounts.ttl, and transfers.rdfp with about two weeks of transfers, rings hidden among them.

A transfer is known for three days, then deleted: an answer goes when one of its transfers is forgotten, or when the
bank clears the account. Seeded, so the files are always the same: `python examples/transfers/generate.py`.
"""

from pathlib import Path
from random import Random

HERE = Path(__file__).parent
PREFIX = "http://bank.example/"
HOURS, KEEP_HOURS = 14 * 24, 72
PEOPLE = (
    *("ada", "ben", "cleo", "dina", "emil", "fay", "gus", "hana", "ivo", "june", "kai", "lena", "milo"),
    *("nora", "otto", "pia", "quinn", "rosa", "sam", "tess", "uma", "vic", "wim", "xena", "yann", "zoe"),
)


def main() -> None:
    random = Random(7)
    accounts = [f"{name}-{number}" for name in PEOPLE for number in (1, 2)]
    risky = random.sample(accounts, 9)
    write_accounts(random, accounts)
    rings = {hour: random.sample(risky, 1) + random.sample(accounts, 2) for hour in random.sample(range(24, HOURS), 9)}
    rows = []
    alive: dict[tuple[str, str], int] = {}
    for hour in range(HOURS):
        body = [row(op, account, "risk", '"high"') for op, account in risk_changes(random, hour, risky)]
        for pair, sent in list(alive.items()):
            if hour - sent >= KEEP_HOURS:
                del alive[pair]
                body.append(row("D", pair[0], "sentTo", account_iri(pair[1])))
        pairs = [tuple(random.sample(accounts, 2)) for _ in range(random.choice((0, 1, 1, 2, 3)))]
        for offset in range(3):  # a ring closes over three hours
            if hour - offset in rings:
                members = rings[hour - offset]
                pairs.append((members[offset], members[(offset + 1) % 3]))
        for pair in pairs:
            alive[pair] = hour
            body.append(row("A", pair[0], "sentTo", account_iri(pair[1])))
        if body:
            rows += [f"# day {hour // 24 + 1}, {hour % 24:02}:00", "TX .", *body, "TC ."]
    (HERE / "transfers.rdfp").write_text("\n".join(rows) + "\n", encoding="utf-8")


def risk_changes(random: Random, hour: int, risky: list[str]) -> list[tuple[str, str]]:
    """Accounts become suspect during the first days, and one is cleared now and then."""
    if hour % 9 == 0 and hour // 9 < len(risky):
        return [("A", risky[hour // 9])]
    if hour > 120 and random.random() < 0.03:
        return [(op, random.choice(risky)) for op in ("D", "A")][: random.choice((1, 2))]
    return []


def write_accounts(random: Random, accounts: list[str]) -> None:
    lines = [f"@prefix : <{PREFIX}> .", f"@prefix account: <{PREFIX}account/> .", ""]
    for account in accounts:
        bank = random.choice(("north", "south", "island", "island"))
        lines.append(f'account:{account} a :Account ; :owner "{account.split("-")[0].title()}" ; :bank :{bank} .')
    (HERE / "accounts.ttl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def row(op: str, account: str, predicate: str, value: str) -> str:
    return f"{op} {account_iri(account)} <{PREFIX}{predicate}> {value} ."


def account_iri(account: str) -> str:
    return f"<{PREFIX}account/{account}>"


if __name__ == "__main__":
    main()
