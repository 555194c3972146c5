"""What a lower floor is given by a higher one: all of it stands in the table here.

Imports run one way; what runs the other way is a name of this module. A lower floor reads `hooks.name` when it needs
it. The first reader loads the module that provides it, all later ones read an attribute of a module.

| hook | given by | used by | what it is |
|---|---|---|---|
| `lax` | `styrax.lax` | `transforms`, rules in `lax` | the operations: rules of families that need one another's |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import names

if TYPE_CHECKING:
    from .. import lax as lax

# module, relative to `styrax` -> the hooks it provides; "hook:its name there"
PROVIDERS = {
    "": "lax",
}

__getattr__, __dir__, __all__ = names(__name__, PROVIDERS)
