"""Time series of tool results: joined on common buckets, and changes of totals whose members come and go.

Needs pandas, so nothing of the kernel imports it before a cell names one of the three functions.
"""

from cellblock_kernel.timeseries.align import align_timeseries
from cellblock_kernel.timeseries.change import derive_change_series
from cellblock_kernel.timeseries.merge import safe_merge_timeseries

__all__ = ["align_timeseries", "derive_change_series", "safe_merge_timeseries"]
