"""Settings as trees: numbers are traced, choices are static.

Two models of the same shape then share every compiled function, whatever their numbers are.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import jax

C = TypeVar("C", bound=type)


def traced(*numbers: str, choices: tuple[str, ...]) -> Callable[[C], C]:
    """Make a class a tree: attributes with numbers are leaves, attributes with choices are static.

    Instances are validated when they are constructed, with plain numbers. Inside of a compiled
    function they hold tracers, which cannot be validated, so they are put together there without
    their constructor and from these attributes alone; a cached property may be one of them.
    """

    def register(cls: C) -> C:
        def flatten(tree: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
            leaves = tuple(getattr(tree, name) for name in numbers)
            return leaves, tuple(getattr(tree, name) for name in choices)

        def unflatten(static: tuple[Any, ...], leaves: Any) -> Any:
            tree: Any = object.__new__(cls)
            tree.__dict__.update(zip(numbers, leaves, strict=True))
            tree.__dict__.update(zip(choices, static, strict=True))
            return tree

        jax.tree_util.register_pytree_node(cls, flatten, unflatten)
        return cls

    return register
