"""Changes of a population: by the helper, and by a first attempt with pandas."""
import time
random = np.random.default_rng(0)
levels = random.normal(1000, 10, (10_000, 1_000))
for entity in range(0, 1_000, 5):
    levels[: random.integers(1, 9_000), entity] = np.nan
    gap = random.integers(9_000, 9_900)
    levels[gap : gap + 50, entity] = np.nan
hours = pd.date_range('2020', periods=10_000, freq='h', tz='UTC')
frame = pd.DataFrame(levels, index=hours, columns=[f'e{n}' for n in range(1_000)])

def naive(frame):
    there = frame.notna()
    before = there.shift(fill_value=False)
    total = frame.sum(axis=1, min_count=1)
    stable = frame.diff().where(there & before).sum(axis=1)
    change = total.diff()
    entering, exiting = (there & ~before).sum(axis=1), (before & ~there).sum(axis=1)
    return pd.DataFrame({
        'total': total, 'change': change, 'stable': stable, 'coverage': change - stable,
        'entering': entering, 'exiting': exiting,
    })

started = time.perf_counter()
found = derive_change_series(frame)
middle = time.perf_counter()
expected = naive(frame)
ended = time.perf_counter()
assert np.allclose(found['stable_entities_change'].iloc[1:], expected['stable'].iloc[1:])
assert (found['entering_entity_count'].iloc[1:] == expected['entering'].iloc[1:]).all()
set_result({'helper': (middle - started) * 1000, 'naive': (ended - middle) * 1000})
