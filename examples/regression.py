"""What does consumption follow? A regression of quarterly growth rates, with its diagnosis.

Macroeconomic data of the United States, 1959 to 2009, that ships with statsmodels. Run it with

    cellblock run examples/regression.py
"""

# %% Growth rates: levels that all rise would only explain each other
import statsmodels.formula.api as smf
from statsmodels.datasets import macrodata
from statsmodels.stats.diagnostic import acorr_ljungbox, het_breuschpagan

levels = macrodata.load_pandas().data
growth = pd.DataFrame(
    {
        "consumption": np.log(levels["realcons"]).diff() * 100,
        "income": np.log(levels["realdpi"]).diff() * 100,
        "unemployment": levels["unemp"].diff(),
        "interest": levels["realint"],
    }
).dropna()
growth.corr().round(2)

# %% The model, with standard errors that allow for autocorrelation
model = smf.ols("consumption ~ income + unemployment + interest", growth).fit(
    cov_type="HAC", cov_kwds={"maxlags": 4}
)
coefficients = pd.DataFrame(
    {
        "coefficient": model.params,
        "standard error": model.bse,
        "p": model.pvalues,
        "from": model.conf_int()[0],
        "to": model.conf_int()[1],
    }
).round(4)
print(f"R² = {model.rsquared:.2f} from {int(model.nobs)} quarters")
coefficients

# %% Can it be trusted?
checks = pd.DataFrame(
    {
        "p": [
            het_breuschpagan(model.resid, model.model.exog)[1],
            acorr_ljungbox(model.resid, lags=[4])["lb_pvalue"].iloc[0],
        ]
    },
    index=pd.Index(["equal variance (Breusch-Pagan)", "no autocorrelation (Ljung-Box)"], name="hypothesis"),
)
checks.round(3)

# %% Residuals, and the strongest relation
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
left.scatter(model.fittedvalues, model.resid, s=12, alpha=0.6)
left.axhline(0, color="black", linewidth=0.8)
left.set(title="Residuals", xlabel="fitted growth, %", ylabel="residual")
right.scatter(growth["unemployment"], growth["consumption"], s=12, alpha=0.6)
slope, intercept = np.polyfit(growth["unemployment"], growth["consumption"], 1)
ends = np.array([growth["unemployment"].min(), growth["unemployment"].max()])
right.plot(ends, intercept + slope * ends, color="tab:red")
right.set(title="Consumption and unemployment", xlabel="change of unemployment", ylabel="growth of consumption, %")
figure.tight_layout()
plt.show()
