"""Sales of two regions over a year, and how they grew."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

rng = np.random.default_rng(7)
months = pd.date_range("2026-01-01", periods=12, freq="MS")
sales = pd.DataFrame(
    {
        "month": months,
        "north": (100 + 4 * np.arange(12) + rng.normal(0, 5, 12)).round(1),
        "south": (90 + 7 * np.arange(12) + rng.normal(0, 5, 12)).round(1),
    }
)
print("growth over the year, in percent:")
print((100 * (sales[["north", "south"]].iloc[-1] / sales[["north", "south"]].iloc[0] - 1)).round(1))

sales.plot(x="month", y=["north", "south"], title="Sales by region", figsize=(6, 3))
plt.tight_layout()
plt.show()
sales.head(3)
