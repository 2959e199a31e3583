"""A table with its summary and a chart, as a notebook shows them."""
import pandas as pd, matplotlib.pyplot as plt
frame = pd.DataFrame({'x': range(1000), 'y': [v ** 0.5 for v in range(1000)]})
display(frame.describe())
frame.plot(x='x', y='y')
plt.show()
