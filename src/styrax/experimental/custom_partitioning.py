"""Functions with rules of their own for how compilers spread them over devices.

The rules are kept for compilers that spread programs; here the function is computed as it is written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..core.types.typing import Function, Object
from ..transforms.custom import resolve_kwargs
from ..transforms.marked_calls import bind_marked, marked_call

custom_partitioning_p = marked_call("custom_partitioning")
BATCHING = "…"


class CompoundFactor(tuple[str, ...]):
    """Several factors that make one dimension, the slowest first."""

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError("A compound factor should contain at least two factors")
        if not all(isinstance(f, str) for f in factors):
            raise ValueError("Each element of CompoundFactor must be a str")
        return super().__new__(cls, factors)

    def __init__(self, *factors: str):
        super().__init__()


class ArrayMapping(tuple[Any, ...]):
    """The factors of an array's dimensions; `BATCHING` first stands for any leading ones."""

    def __new__(cls, *dim_mappings: str | CompoundFactor) -> ArrayMapping:
        for i, dim in enumerate(dim_mappings):
            if not isinstance(dim, (str, CompoundFactor)):
                raise ValueError("Each element of ArrayMapping must be a str or CompoundFactor, but got "
                                 f"{type(dim).__name__}")
            if isinstance(dim, str) and dim.startswith(BATCHING) and i:
                raise ValueError("Ellipsis can only be used at the beginning of a dimension")
        return super().__new__(cls, dim_mappings)

    def __init__(self, *dim_mappings: str | CompoundFactor):
        super().__init__()


class SdyShardingRule:
    """How the dimensions of operands and results belong together.

    Args:
      operand_mappings, result_mappings: the factors of their dimensions.
      reduction_factors, need_replication_factors, permutation_factors: factors that need more than being split.
      **factor_sizes: sizes of factors that are not dimensions of their own.
    """

    def __init__(self, operand_mappings: tuple[ArrayMapping, ...], result_mappings: tuple[ArrayMapping, ...], *,
                 reduction_factors: tuple[str, ...] = (), need_replication_factors: tuple[str, ...] = (),
                 permutation_factors: tuple[str, ...] = (), **factor_sizes: int):
        used = {f for mapping in (*operand_mappings, *result_mappings) for dim in mapping
                for f in (dim if isinstance(dim, CompoundFactor) else (dim,))}
        compound = {f for mapping in (*operand_mappings, *result_mappings) for dim in mapping
                    if isinstance(dim, CompoundFactor) for f in dim}
        for factor in factor_sizes:
            if factor not in used:
                raise ValueError(f"Factor {factor} is not used in the rule, but size is provided")
        for factor in compound:
            if factor not in factor_sizes and not any(
                    factor in mapping for mapping in (*operand_mappings, *result_mappings)):
                raise ValueError(f"Factor {factor} is only used in compound factors; must specify its size")
        self.operand_mappings = operand_mappings
        self.result_mappings = result_mappings
        self.reduction_factors = reduction_factors
        self.need_replication_factors = need_replication_factors
        self.permutation_factors = permutation_factors
        self.factor_sizes = factor_sizes

    def __repr__(self) -> str:
        return f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, {self.factor_sizes})"


def _check_rule(rule: Object) -> None:
    if rule is None or callable(rule) or isinstance(rule, SdyShardingRule):
        return
    if not isinstance(rule, str):
        raise TypeError(f"rule must be a str, but got {type(rule)}")
    if rule.count("->") != 1:
        raise ValueError(f"There is no or more than one -> in rule: {rule!r}")


class custom_partitioning:
    """A function whose partitioning is given with `def_partition`.

    Args:
      fun: the function.
      static_argnums: positions of arguments that are no arrays.
    """

    def __init__(self, fun: Function, static_argnums: Sequence[int] = ()):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.static_argnums = tuple(static_argnums)
        self.partition: Callable[..., Any] | None = None
        self.infer_sharding_from_operands: Callable[..., Any] | None = None
        self.propagate_user_sharding: Callable[..., Any] | None = None
        self.sharding_rule: Object = None

    def def_partition(self, partition: Function, infer_sharding_from_operands: Function | None = None,
                      propagate_user_sharding: Function | None = None, decode_shardings: bool = True,
                      sharding_rule: Object = None, *, reduction_factors: tuple[str, ...] = (),
                      need_replication_factors: tuple[str, ...] = (), permutation_factors: tuple[str, ...] = (),
                      **factor_sizes: int) -> Function:
        """Sets the rules: `partition(mesh, arg_shapes, result_shape)` gives the function of the parts, the others say
        how operands and results are spread.

        Raises:
          TypeError: `sharding_rule` is no text, no `SdyShardingRule` and no function.
          ValueError: it is a text without one arrow between operands and results.
        """
        _check_rule(sharding_rule)
        self.partition = partition
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        self.sharding_rule = sharding_rule
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function. Raises AttributeError before `def_partition`."""
        if self.partition is None:
            raise AttributeError(f"{getattr(self.fun, '__name__', self.fun)}: `def_partition` has not been called")
        values = resolve_kwargs(self.fun, args, kwargs, "custom_partitioning")
        static = {i if i >= 0 else i + len(values): values[i] for i in self.static_argnums}
        dynamic = tuple(x for i, x in enumerate(values) if i not in static)

        def run(*given: Any) -> Any:
            rest = iter(given)
            return self.fun(*(static[i] if i in static else next(rest) for i in range(len(values))))

        return bind_marked(custom_partitioning_p, run, dynamic)


__all__ = ["ArrayMapping", "BATCHING", "CompoundFactor", "SdyShardingRule", "custom_partitioning",
           "custom_partitioning_p"]
