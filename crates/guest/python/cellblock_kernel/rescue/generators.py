"""Seeds the random generators anew that code of a forked session has made itself.

The garbage collector lists them wherever they are: in variables, containers, attributes and closures. It does not list what
the template has made, which `after_fork.seed` knows by name, nor what code has put away with `gc.freeze`.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import Any

_objects, _urandom = gc.get_objects, os.urandom


def reseed() -> None:
    """Gives each generator of `random` and numpy a state of its own."""
    modules: dict[str, Any] = sys.modules
    plain: Any = getattr(modules.get("random"), "Random", None)
    bits: Any = getattr(modules.get("numpy.random.bit_generator"), "BitGenerator", None)
    legacy: Any = getattr(modules.get("numpy.random.mtrand"), "RandomState", None)
    kinds = tuple(kind for kind in (plain, bits, legacy) if kind is not None)
    listed = _objects()
    # There may be millions of objects, but only few types.
    wanted = {kind for kind in set(map(type, listed)) if issubclass(kind, kinds)}
    found = [value for value in listed if type(value) in wanted] if wanted else []
    del listed
    for value in found:
        try:
            if plain is not None and isinstance(value, plain):
                plain.seed(value, int.from_bytes(_urandom(32), "big"))
            elif bits is not None and isinstance(value, bits):
                _reseed_bits(value)
            else:
                _forget_spare(value)
        except Exception:
            pass  # a class of a cell, which does not allow it


def _reseed_bits(value: Any) -> None:
    """Reseeds what a `Generator` or a `RandomState` of numpy draws from."""
    from numpy.random import SeedSequence

    fresh = type(value)(SeedSequence(int.from_bytes(_urandom(32), "big")))
    try:
        # With the sequence from which `spawn` makes other generators.
        value.__setstate__((fresh.state, fresh.seed_seq))
    except (AttributeError, TypeError):
        value.state = fresh.state  # an older numpy


def _forget_spare(value: Any) -> None:
    """Drops the second number of a pair that a `RandomState` has drawn already."""
    state = value.get_state(legacy=False)
    state["has_gauss"], state["gauss"] = 0, 0.0
    value.set_state(state)
