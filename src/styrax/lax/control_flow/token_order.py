"""Tokens as operations give them: what has to happen before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from styrax.core.arrays.tokens import Token
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import get_aval
from styrax.core.types.avals import AbstractToken, abstract_token

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

create_token_p = Primitive("create_token")
after_all_p = Primitive("after_all")
create_token_p.def_impl(lambda: Token())

for _primitive in (create_token_p, after_all_p):
    _primitive.def_abstract_eval(lambda *_: abstract_token)


def create_token(_: Any = None) -> Any:
    """A token that nothing precedes.

    Returns:
      a token, for `after_all` and what is ordered by tokens.
    """
    return create_token_p.bind()


def after_all(*operands: Any) -> Any:
    """A token that other tokens precede.

    Args:
      *operands: tokens.

    Returns:
      a token.

    Raises:
      TypeError: an operand is no token.
    """
    return after_all_p.bind(*operands)


@after_all_p.def_abstract_eval
def _after_all_abstract(*operands: Any) -> AbstractToken:
    if any(not isinstance(x, AbstractToken) for x in operands):
        raise TypeError("Arguments to after_all must be tokens")
    return abstract_token


@after_all_p.def_impl
def _after_all(*operands: Any) -> Token:
    _after_all_abstract(*map(get_aval, operands))
    return Token()


def _loops(b: Builder, *_: Any) -> Any:
    return b.token()


rules.loops[create_token_p] = rules.loops[after_all_p] = _loops
rules.stablehlos[create_token_p] = lambda m: m.op1("stablehlo.create_token", [], m.avals_out[0])
rules.stablehlos[after_all_p] = lambda m, *xs: m.op1("stablehlo.after_all", xs, m.avals_out[0])
rules.batchers[after_all_p] = lambda args, dims: (after_all_p.bind(*args), None)

__all__ = ["after_all", "after_all_p", "create_token", "create_token_p"]
