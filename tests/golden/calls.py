"""The calls of a scenario, as plain tuples: a verb and its arguments.

A decision is referred to by the number of its `decide` call, counted from zero. Rewards do not
depend on the arm, so scenarios of all policies have the same calls.
"""

from typing import Any

Call = tuple[Any, ...]
People = dict[str, dict[str, Any]]
# Written by `store`: a saved and loaded copy is given all later calls too.
STORE: Call = ("store",)

# Near the middle of 0 to 10, so that a noise of 1 leaves several arms plausible.
NUMBERS = (5.2, 4.1, 6.3, 5.9, 4.6, 6.8, 3.9, 5.5, 6.1, 4.8, 5.1, 7.0, 4.4, 5.7)
ANSWERS = (1, 0, 1, 1, 0, 1, 0, 1, 1, 0, 0, 1, 0, 1)

KNOWN: People = {
    "ann": {"x": 0.2, "group": "u"},
    "bob": {"x": 0.9, "group": "v"},
    "cem": {"x": 0.55, "group": "v"},
    "dot": {"x": 0.05, "group": "u"},
}
WITH_GAPS: People = {
    "ann": {"x": 0.2, "group": None},
    "bob": {"x": 0.9, "group": "v"},
    "cem": {"group": "v"},
    "dot": {},
}
ONE_FEATURE: People = {name: {"x": values["x"]} for name, values in KNOWN.items()}


def additions(people: People, rewards: tuple[float, ...]) -> list[Call]:
    """List calls that only add rewards: late ones, closed decisions, suspended arms, `eligible`."""
    return [
        ("enrol", "ann", people["ann"]),
        ("enrol", "bob", people["bob"]),
        ("decide", "ann"),
        ("decide", "bob"),
        ("decide", "ann"),
        ("reward", 0, rewards[0]),
        ("decide", "ann"),
        ("reward", 3, rewards[1]),
        ("reward", 1, rewards[2]),
        ("decide", "bob", ["a", "c"]),
        ("reward", 4, rewards[3]),
        ("enrol", "cem", people["cem"]),
        ("decide", "cem"),
        ("close", 5),
        ("decide", "cem"),
        ("reward", 6, rewards[4]),
        ("suspend", "b"),
        ("decide", "ann"),
        ("reward", 5, rewards[5]),
        ("reward", 7, rewards[6]),
        ("activate", "b"),
        ("decide", "bob"),
        ("reward", 8, rewards[7]),
        STORE,
        ("enrol", "dot", people["dot"]),
        ("decide", "dot"),
        ("decide", "cem"),
        ("reward", 10, rewards[8]),
        ("reward", 9, rewards[9]),
        ("decide", "dot", ["b", "c"]),
        ("reward", 11, rewards[10]),
        ("decide", "ann"),
        ("decide", "dot"),
        ("explain", "ann"),
    ]


def corrections(people: People, rewards: tuple[float, ...]) -> list[Call]:
    """List calls that also change the past: corrections, a withdrawn user, an added arm."""
    return [
        ("enrol", "ann", people["ann"]),
        ("enrol", "bob", people["bob"]),
        ("enrol", "cem", people["cem"]),
        ("decide", "ann"),
        ("reward", 0, rewards[0]),
        ("decide", "bob"),
        ("reward", 1, rewards[1]),
        ("decide", "cem"),
        ("reward", 2, rewards[2]),
        ("correct", 0, rewards[4]),
        ("decide", "ann"),
        ("reward", 3, rewards[3]),
        ("correct", 1, None),
        ("decide", "bob"),
        ("reward", 4, rewards[5]),
        ("correct", 1, rewards[8]),
        ("decide", "cem"),
        ("withdraw", "bob"),
        ("reward", 4, rewards[6]),
        ("decide", "ann"),
        ("reward", 5, rewards[7]),
        STORE,
        ("add_arm", "d"),
        ("reward", 6, rewards[9]),
        ("decide", "cem"),
        ("enrol", "dot", people["dot"]),
        ("decide", "dot"),
        ("reward", 8, rewards[11]),
        ("reward", 7, rewards[12]),
        ("decide", "ann"),
        ("decide", "dot", ["a", "b"]),
        ("explain", "ann"),
    ]


def late_context(people: People, rewards: tuple[float, ...]) -> list[Call]:
    """List calls that add rewards, and values of the context that were missing before."""
    return [
        ("enrol", "ann", people["ann"]),
        ("enrol", "bob", people["bob"]),
        ("enrol", "cem", people["cem"]),
        ("decide", "ann"),
        ("reward", 0, rewards[0]),
        ("decide", "bob"),
        ("reward", 1, rewards[1]),
        ("decide", "cem"),
        ("reward", 2, rewards[2]),
        ("update_context", "cem", {"x": 0.55}),
        ("decide", "cem"),
        ("reward", 3, rewards[3]),
        ("enrol", "dot", people["dot"]),
        ("decide", "dot"),
        ("update_context", "dot", {"group": "u"}),
        ("reward", 4, rewards[4]),
        ("decide", "dot"),
        STORE,
        ("update_context", "ann", {"group": "u"}),
        ("decide", "ann"),
        ("reward", 5, rewards[5]),
        ("reward", 6, rewards[6]),
        ("update_context", "dot", {"x": 0.05}),
        ("decide", "dot"),
        ("reward", 7, rewards[7]),
        ("update_context", "bob", {"x": 0.1}),
        ("decide", "bob"),
        ("reward", 8, rewards[8]),
        ("decide", "ann"),
        ("decide", "dot"),
        ("explain", "dot"),
    ]
