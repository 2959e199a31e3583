"""Recessions, inflation and unemployment in the United States, once with pandas and once with Polars.

The data is an input: a CSV with a row per quarter. Run it with

    cellblock run --input macro=examples/data/macro.csv examples/macro.py
"""

# %% pandas: growth by decade
if "macro" not in globals():
    raise SystemExit("the input `macro` is missing: add `--input macro=examples/data/macro.csv` before the file")
macro["date"] = pd.PeriodIndex.from_fields(year=macro["year"], quarter=macro["quarter"], freq="Q")
macro["growth"] = macro["realgdp"].pct_change(4) * 100
by_decade = (
    macro.assign(decade=macro["year"] // 10 * 10)
    .groupby("decade")[["growth", "infl", "unemp"]]
    .mean()
    .round(2)
)
by_decade

# %% pandas: quarters in which the economy shrank against the year before
shrinking = macro.loc[macro["growth"] < 0, ["date", "growth", "unemp"]]
print(f"{len(shrinking)} of {len(macro)} quarters were below the same quarter of the year before")
shrinking.astype({"date": str}).sort_values("growth").head(8).round(2)

# %% Polars: what unemployment did while inflation was high, middling or low
quarters = pl.from_pandas(macro.drop(columns="date"))
levels = (
    quarters.with_columns(
        pl.when(pl.col("infl") < 2)
        .then(pl.lit("low"))
        .when(pl.col("infl") < 5)
        .then(pl.lit("middling"))
        .otherwise(pl.lit("high"))
        .alias("inflation")
    )
    .group_by("inflation")
    .agg(
        pl.len().alias("quarters"),
        pl.col("infl").mean().round(2).alias("mean inflation"),
        pl.col("unemp").mean().round(2).alias("mean unemployment"),
        pl.col("growth").mean().round(2).alias("mean growth"),
    )
    .sort("mean inflation")
)
levels

# %% Altair: both rates over time
rates = quarters.select(
    pl.date(pl.col("year"), pl.col("quarter") * 3 - 2, 1).alias("quarter"),
    pl.col("infl").alias("inflation"),
    pl.col("unemp").alias("unemployment"),
).unpivot(index="quarter", variable_name="rate", value_name="percent")

alt.Chart(rates, title="Inflation and unemployment, 1959 to 2009").mark_line().encode(
    x=alt.X("quarter:T", title=None), y="percent:Q", color=alt.Color("rate:N", title=None)
).properties(width=600, height=280)
