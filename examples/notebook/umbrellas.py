"""Are more umbrellas sold when it rains? `cellblock run --toolset notebook umbrellas.py`."""

cities = ["Kyiv", "Lviv", "Odesa", "Berlin", "Paris"]
rain = pd.DataFrame(row for city in cities for row in weather.get_forecast(city, days=365))
sales = pd.DataFrame(row for city in cities for row in shop.get_sales(city, days=365))
days = rain.merge(sales, on=["city", "day"])
days["sky"] = days["rain_mm"].gt(5).map({True: "rain", False: "dry"})

# Only this small table leaves the sandbox, not the 3,650 rows.
days.groupby(["city", "sky"])["umbrellas"].mean().unstack().round(1).reset_index()
