"""`pytest --styrax`: the tests of a program written for JAX, with `import jax` giving Styrax."""

from __future__ import annotations

import pytest

from .finder import install


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--styrax", action="store_true", help="`import jax` and its submodules give Styrax")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before the first conftest, which may import jax."""
    if early_config.known_args_namespace.styrax:
        install()
