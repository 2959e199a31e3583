"""Flows into three exchanges: each reports in its own form of time, and one is listed in the middle.

Run in this folder:

    cellblock run --toolset derivation \\
        --alias get_reserves_alpha_1=alpha.json --alias get_reserves_beta_1=beta.json --alias get_reserves_gamma_1=gamma.json \\
        --contract contract.json flows.py
"""

# beta once sent a placeholder before the day's sample. The levels go onto common days first.
reserves = safe_merge_timeseries(
    get_reserves_alpha_1["reserves"],
    get_reserves_beta_1["reserves"],
    get_reserves_gamma_1["reserves"],
    names=["alpha", "beta", "gamma"],
    freq="D",
)
levels = reserves[["alpha_reserve", "beta_reserve", "gamma_reserve"]].rename(columns=lambda name: name.removesuffix("_reserve"))

# A listing changes the total but is not a flow.
change = derive_change_series(levels)
listing = change.attrs["coverage_events"][0]

fig, (above, below) = plt.subplots(2, 1, figsize=(9, 6), sharex=True)
above.plot(change.index, change["total_value"], color="black", label="all exchanges")
above.axvline(pd.Timestamp(listing["period"]), color="tab:orange", linestyle="--", label=f"{listing['entity']} is listed")
above.set_ylabel("reserve in BTC")
above.legend()
below.bar(change.index, change["stable_entities_change"], color="tab:blue", label="flow")
below.set_ylabel("BTC a day")
below.legend()
fig.autofmt_xdate()
save_figure("Total reserves of three exchanges with a jump where gamma is listed, and daily flows without it", title="Reserve flows")

render_chart(
    {
        "type": "bar",
        "xKey": "day",
        "series": [{"key": "stable_entities_change", "label": "flow"}],
        "xAxis": {"type": "time", "label": "day"},
        "yAxis": {"label": "BTC", "format": "compact"},
        "referenceLines": [{"x": str(pd.Timestamp(listing["period"]).date()), "label": f"{listing['entity']} is listed"}],
    },
    change.reset_index(names="day")[["day", "stable_entities_change"]].assign(day=lambda rows: rows["day"].dt.strftime("%Y-%m-%d")),
    title="Daily flow of reserves",
)

set_result(
    {
        "flow": round(change["stable_entities_change"].sum(), 1),
        "change_of_total": round(change["total_change"].sum(), 1),
        "listed": {"exchange": listing["entity"], "day": listing["period"][:10], "level": listing["value"]},
    }
)
