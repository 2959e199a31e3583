"""A bundle of Parsimony, as a provider's package has one."""

from typing import Annotated, Literal

import pandas as pd
from parsimony import Connectors, Namespace, connector
from parsimony.errors import EmptyDataError, ParseError, RateLimitError, UnauthorizedError


@connector(secrets=("api_key",), tags=["macro"])
def series(
    series_id: Annotated[str, Namespace("macro")],
    api_key: str,
    frequency: Literal["m", "q"] = "m",
    limit: int | None = None,
) -> pd.DataFrame:
    """Observations of a series."""
    if series_id == "LIMIT":
        raise RateLimitError("macro", retry_after=7.0)
    if series_id == "EMPTY":
        raise EmptyDataError("macro")
    if series_id == "KEY":
        raise UnauthorizedError("macro", f"the key {api_key} is not registered")
    if series_id == "BROKEN":
        raise ParseError("macro")
    print("fetching", series_id)
    frame = pd.DataFrame(
        {
            "date": pd.to_datetime(["2026-01-01", "2026-02-01"]),
            "value": [1.5, None],
            "unit": pd.Categorical(["%", "%"]),
        }
    )
    return frame.head(limit)


@connector
def text(topic: str) -> str:
    """A note."""
    return f"about {topic}"


CONNECTORS = Connectors([series, text])
