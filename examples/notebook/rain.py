"""Rain of a year in five cities: `cellblock run --toolset notebook rain.py`."""

cities = ["Kyiv", "Lviv", "Odesa", "Berlin", "Paris"]
year = pd.DataFrame(row for city in cities for row in weather.get_forecast(city, days=365))

# Only this small table leaves the sandbox, not the 1,825 rows.
year.groupby("city", as_index=False)["rain_mm"].sum().sort_values("rain_mm")
