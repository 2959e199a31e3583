"""A cell that runs parts of the tests of numpy, pandas and scipy."""

NUMPY = (
    "numpy._core.tests.test_numeric numpy._core.tests.test_umath numpy._core.tests.test_memmap numpy._core.tests.test_multithreading "
    "numpy.linalg.tests.test_linalg numpy.random.tests.test_generator_mt19937 numpy.fft.tests.test_pocketfft"
)
PANDAS = (
    "pandas.tests.groupby.test_groupby pandas.tests.groupby.test_reductions pandas.tests.reshape.concat.test_concat pandas.tests.reshape.merge.test_merge "
    "pandas.tests.reshape.test_melt pandas.tests.reshape.test_pivot pandas.tests.io.test_parquet "
    # How values show themselves to notebooks, and how pandas looks for one.
    "pandas.tests.io.formats.test_console pandas.tests.io.formats.test_printing"
)
SCIPY = "scipy.stats.tests.test_contingency scipy.stats.tests.test_entropy scipy.stats.tests.test_mstats_basic scipy.stats.tests.test_qmc scipy.stats.tests.test_rank"

run([("pytest", name, []) for name in f"{NUMPY} {PANDAS} {SCIPY}".split()])  # noqa: F821
