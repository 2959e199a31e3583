"""Generators that code has made draw other numbers once they are seeded anew."""

import random
import unittest

from cellblock_kernel.rescue import generators
from tests.needs import needs


class Own(random.Random):
    """A class of a cell."""


class Hidden:
    """Has a generator in an attribute."""

    def __init__(self, generator):
        self.generator = generator


def twice(make, draw):
    """Returns what two equal generators draw, of which the second is seeded anew in between."""
    first = draw(make())
    held = make()
    generators.reseed()
    return first, draw(held)


class Plain(unittest.TestCase):
    def test_generators_of_random_are_reached_wherever_they_are(self):
        for make, draw in (
            (lambda: random.Random(1), lambda held: held.random()),
            (lambda: Own(1), lambda held: held.random()),
            (lambda: {"x": [(random.Random(1),)]}, lambda held: held["x"][0][0].random()),
            (lambda: Hidden(random.Random(1)), lambda held: held.generator.random()),
            (lambda: random.Random(1).random, lambda held: held()),
        ):
            first, second = twice(make, draw)
            self.assertNotEqual(first, second)

    def test_the_second_number_of_a_pair_is_dropped(self):
        def make():
            held = random.Random(1)
            held.gauss(0, 1)
            return held

        first, second = twice(make, lambda held: held.gauss(0, 1))
        self.assertNotEqual(first, second)

    def test_two_generators_that_were_equal_are_not_any_more(self):
        one, two = random.Random(1), random.Random(1)
        generators.reseed()
        self.assertNotEqual(one.random(), two.random())


@needs("numpy")
class Numpy(unittest.TestCase):
    def test_every_kind_of_bit_generator_is_reached(self):
        import numpy

        for kind in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"):
            with self.subTest(kind):
                bits = getattr(numpy.random, kind)
                first, second = twice(lambda bits=bits: numpy.random.Generator(bits(1)), lambda held: held.random())
                self.assertNotEqual(first, second)

    def test_half_a_number_that_was_drawn_is_dropped(self):
        import numpy

        def make():
            held = numpy.random.default_rng(1)
            held.integers(1 << 30, dtype=numpy.uint32)
            return held

        first, second = twice(make, lambda held: held.integers(1 << 30, dtype=numpy.uint32))
        self.assertNotEqual(first, second)

    def test_the_old_generators_are_reached_with_the_second_number_of_a_pair(self):
        import numpy

        def make():
            held = numpy.random.RandomState(1)
            held.standard_normal()
            return held

        first, second = twice(make, lambda held: held.standard_normal())
        self.assertNotEqual(first, second)

    def test_generators_that_are_spawned_afterward_are_others(self):
        import numpy

        first, second = twice(lambda: numpy.random.default_rng(1), lambda held: held.spawn(1)[0].random())
        self.assertNotEqual(first, second)
