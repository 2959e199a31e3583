"""The same table and chart without a notebook: the summary is printed, the chart becomes a PNG."""
import io
import pandas as pd, matplotlib.pyplot as plt
frame = pd.DataFrame({'x': range(1000), 'y': [v ** 0.5 for v in range(1000)]})
print(frame.describe())
frame.plot(x='x', y='y')
png = io.BytesIO()
plt.savefig(png, format='png')
assert png.getvalue().startswith(b'\x89PNG')
