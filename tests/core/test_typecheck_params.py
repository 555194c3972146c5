"""The parameters of scans, which the check of a program looks at before it asks for types."""

import pytest

import styrax
from styrax import numpy
from styrax.core.programs.check import JaxprTypeError, check_jaxpr


@pytest.mark.parametrize(("name", "value", "wanted"), [
    ("reverse", 4, "type int, bool required: 4"),
    ("num_carry", "x", "type str, non-negative int required: x"),
    ("num_consts", -3, "type int, non-negative int required: -3"),
    ("unroll", None, "type NoneType, non-negative int required: None"),
    ("jaxpr", None, "type NoneType, ClosedJaxpr required: None"),
])
def test_parameters_of_a_scan(name, value, wanted):
    def program():  # what was checked is not checked again
        made = styrax.make_jaxpr(lambda c, xs: styrax.lax.scan(lambda c, x: (c + x, c), c, xs, unroll=2))(
            1.0, numpy.ones(4))
        return made.jaxpr, next(eqn for eqn in made.jaxpr.eqns if eqn.primitive.name == "scan")

    check_jaxpr(program()[0])
    jaxpr, eqn = program()
    eqn.params[name] = value
    with pytest.raises(JaxprTypeError, match=f"invalid scan param {name} of {wanted}"):
        check_jaxpr(jaxpr)
