"""Does chemistry alone tell three cultivars of wine apart?

178 wines with 13 measurements each, that ship with scikit-learn. Run it with

    cellblock run examples/clustering.py
"""

# %% Measurements on one scale
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.preprocessing import StandardScaler

wine = load_wine(as_frame=True)
scaled = StandardScaler().fit_transform(wine.data)
wine.data.describe().T[["mean", "std", "min", "max"]].round(2)

# %% How many groups are there?
scores = pd.DataFrame(
    [
        {
            "clusters": count,
            "silhouette": silhouette_score(scaled, labels),
            "agreement with cultivars": adjusted_rand_score(wine.target, labels),
        }
        for count in range(2, 8)
        for labels in [KMeans(count, n_init=10, random_state=0).fit_predict(scaled)]
    ]
).round(3)
scores

# %% Groups against cultivars
best = int(scores.loc[scores["silhouette"].idxmax(), "clusters"])
labels = KMeans(best, n_init=10, random_state=0).fit_predict(scaled)
print(f"{best} groups fit best; there are {wine.target.nunique()} cultivars")
pd.crosstab(
    pd.Series(labels, name="group"), pd.Series(wine.target_names[wine.target], name="cultivar")
)

# %% Two dimensions of thirteen
components = PCA(n_components=2).fit(scaled)
points = components.transform(scaled)
share = components.explained_variance_ratio_.sum()

figure, axes = plt.subplots(figsize=(7, 5))
for group in range(best):
    inside = labels == group
    axes.scatter(points[inside, 0], points[inside, 1], s=18, alpha=0.75, label=f"group {group}")
axes.set(title=f"Wines in two dimensions ({share:.0%} of the variance)", xlabel="first", ylabel="second")
axes.legend()
plt.show()

# %% What sets the groups apart
centres = pd.DataFrame(scaled, columns=wine.data.columns).groupby(labels).mean()
spread = (centres.max() - centres.min()).sort_values(ascending=False)
spread.head(6).round(2).rename("spread in standard deviations")
