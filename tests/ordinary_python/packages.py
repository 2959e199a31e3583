"""A cell that runs parts of the tests of numpy, pandas and scipy."""

# What depends on the machine, on the system and on what shows values.
OF_A_PART = (
    "numpy._core.tests.test_memmap numpy._core.tests.test_multithreading numpy.linalg.tests.test_linalg pandas.tests.io.test_parquet "
    # How values show themselves to notebooks, and how pandas looks for one.
    "pandas.tests.io.formats.test_console pandas.tests.io.formats.test_printing scipy.stats.tests.test_contingency"
)
OTHERS = (
    "numpy._core.tests.test_numeric numpy._core.tests.test_umath numpy.random.tests.test_generator_mt19937 numpy.fft.tests.test_pocketfft "
    "pandas.tests.groupby.test_groupby pandas.tests.groupby.test_reductions pandas.tests.reshape.concat.test_concat pandas.tests.reshape.merge.test_merge "
    "pandas.tests.reshape.test_melt pandas.tests.reshape.test_pivot "
    "scipy.stats.tests.test_entropy scipy.stats.tests.test_mstats_basic scipy.stats.tests.test_qmc scipy.stats.tests.test_rank"
)

names = OF_A_PART if "IS_PART" in globals() else f"{OF_A_PART} {OTHERS}"
run([("pytest", name, []) for name in names.split()])  # noqa: F821
