"""How fast does the CO₂ at Mauna Loa rise, and how much does it swing within a year?

Weekly measurements, 1958 to 2001, that ship with statsmodels. Run it with

    cellblock run examples/co2.py
"""

# %% The data, with gaps filled and weeks put together to months
import statsmodels.api as sm
from statsmodels.tsa.seasonal import STL

weekly = sm.datasets.co2.load_pandas().data["co2"]
print(f"{len(weekly):,} weeks, {weekly.isna().sum()} of them without a measurement")

monthly = weekly.resample("MS").mean().interpolate()
monthly.describe().round(2)

# %% Trend, season and remainder
parts = STL(monthly, period=12, robust=True).fit()

figure = parts.plot()
figure.set_size_inches(9, 7)
figure.axes[0].set_title("CO₂ at Mauna Loa in parts per million")
figure.tight_layout()
plt.show()

# %% How much faster it rises than it did
growth = parts.trend.diff(12).dropna()
decades = growth.groupby(growth.index.year // 10 * 10).agg(["mean", "min", "max"]).round(2)
decades.index.name = "decade"
decades.columns = ["ppm per year", "slowest", "fastest"]
decades

# %% The year's swing
season = parts.seasonal.groupby(parts.seasonal.index.month).mean()
figure, axes = plt.subplots(figsize=(8, 3.5))
axes.bar(season.index, season, color=np.where(season > 0, "tab:red", "tab:blue"))
axes.set(title="Seasonal part by month", xlabel="month", ylabel="ppm", xticks=range(1, 13))
plt.show()

print(f"In May there is {season[5] - season[9]:.1f} ppm more than in September, on average.")
print(f"The trend rose by {parts.trend.iloc[-1] - parts.trend.iloc[0]:.1f} ppm in all.")
