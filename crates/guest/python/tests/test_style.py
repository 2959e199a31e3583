"""The look of matplotlib's pictures: dates and names below narrow axes, and colors."""

import itertools
import unittest
import warnings

from tests.needs import needs


@needs("matplotlib", "pandas")
class Labels(unittest.TestCase):
    """What is written below an axis of a picture 560 pixels wide."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import pandas

        from cellblock_kernel.outputs import style

        style.install()
        import matplotlib

        matplotlib.use("agg")
        import matplotlib.pyplot

        cls.pandas, cls.pyplot = pandas, matplotlib.pyplot

    def tearDown(self):
        self.pyplot.close("all")

    def written(self, axes):
        """Draws the figure of some axes, and returns their labels below, which do not touch."""
        from cellblock_kernel.outputs import plot

        axes.figure.set_size_inches(5.6, 3.4)
        with warnings.catch_warnings(action="ignore"):
            plot._png(axes.figure)
        labels = [*axes.get_xticklabels(), *axes.get_xticklabels(minor=True)]
        labels = [label for label in labels if label.get_visible() and label.get_text()]
        labels.sort(key=lambda label: label.get_window_extent().x0)
        if not any(label.get_rotation() for label in labels):
            boxes = [label.get_window_extent() for label in labels]
            self.assertTrue(all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes)), labels)
        return labels

    def axes_of(self, dates, draw="plot"):
        axes = self.pyplot.subplots()[1]
        getattr(axes, draw)(dates, range(len(dates)))
        return axes

    def test_dates_that_matplotlib_chooses_stand_side_by_side(self):
        for freq, count in (("D", 120), ("D", 400), ("h", 60), ("30min", 40), ("MS", 30), ("YS", 40), ("min", 500)):
            with self.subTest(freq=freq, count=count):
                labels = self.written(self.axes_of(self.pandas.date_range("2023-11-01 09:00", periods=count, freq=freq)))
                self.assertEqual({label.get_rotation() for label in labels}, {0.0})
                self.assertIn(len(labels), range(3, 10))

    def test_the_shared_part_of_dates_is_written_as_readers_write_it(self):
        axes = self.axes_of(self.pandas.date_range("2024-05-17", periods=10))
        self.written(axes)
        self.assertEqual(axes.xaxis.get_major_formatter().get_offset(), "May 2024")

    def test_months_of_pandas_keep_their_years(self):
        series = self.pandas.Series(range(400), index=self.pandas.date_range("2023-01-01", periods=400))
        texts = [label.get_text() for label in self.written(series.plot())]
        self.assertEqual(texts, ["Jan\n2023", "Mar", "May", "Jul", "Sep", "Nov", "Jan\n2024"])

    def test_many_names_stand_upright_and_very_many_are_thinned(self):
        for count, rotation, shown in ((4, 0.0, 4), (12, 30.0, 12), (24, 90.0, 24), (120, 90.0, 24)):
            with self.subTest(count=count):
                labels = self.written(self.axes_of([f"2023-{number:03}" for number in range(count)], "bar"))
                self.assertEqual({label.get_rotation() for label in labels}, {rotation})
                self.assertLessEqual(abs(len(labels) - shown), 8)

    def test_what_code_chose_is_kept(self):
        import matplotlib.dates

        axes = self.axes_of(self.pandas.date_range("2024-05-17", periods=10))
        axes.xaxis.set_major_locator(matplotlib.dates.AutoDateLocator(minticks=2, maxticks=3))
        self.written(axes)
        self.assertEqual(axes.xaxis.get_major_locator().maxticks[matplotlib.dates.YEARLY], 3)


class Colors(unittest.TestCase):
    """Colors as people with each kind of color vision see them."""

    # Machado and others (2009), for linear RGB.
    _VISIONS = {
        "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
        "no red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
        "no green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
        "no blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
    }

    @staticmethod
    def _linear(color):
        parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]

    @staticmethod
    def _times(rows, values):
        return [sum(one * other for one, other in zip(row, values)) for row in rows]

    def _seen(self, color, vision):
        """Returns a color in Oklab, where distances are those that people see."""
        light = [min(max(part, 0), 1) for part in self._times(self._VISIONS[vision], self._linear(color))]
        cones = (
            (0.4122214708, 0.5363325363, 0.0514459929),
            (0.2119034982, 0.6806995451, 0.1073969566),
            (0.0883024619, 0.2817188376, 0.6299787005),
        )
        lab = (
            (0.2104542553, 0.7936177850, -0.0040720468),
            (1.9779984951, -2.4285922050, 0.4505937099),
            (0.0259040371, 0.7827717662, -0.8086757660),
        )
        return self._times(lab, [part ** (1 / 3) for part in self._times(cones, light)])

    def test_any_two_colors_differ_in_any_vision(self):
        from cellblock_kernel.outputs.style import COLORS

        for vision in self._VISIONS:
            for one, other in itertools.combinations(COLORS, 2):
                parts = zip(self._seen(one, vision), self._seen(other, vision))
                distance = sum((left - right) ** 2 for left, right in parts) ** 0.5
                self.assertGreater(distance, 0.07, (vision, one, other))

    def test_the_first_colors_are_dark_enough_for_lines_on_white(self):
        from cellblock_kernel.outputs.style import COLORS

        for color in COLORS[:3]:
            (luminance,) = self._times(((0.2126, 0.7152, 0.0722),), self._linear(color))
            self.assertGreater(1.05 / (luminance + 0.05), 3.0, color)
