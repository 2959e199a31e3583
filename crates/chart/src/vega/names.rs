//! Names for readers: `close_price` is "Close price", `load_mwh` is "Load (`MWh`)".

use std::fmt::Write as _;

/// Units at the end of a key, as readers write them.
const UNITS: [(&str, &str); 43] = [
    ("aud", "AUD"),
    ("bn", "bn"),
    ("bps", "bps"),
    ("btc", "BTC"),
    ("cad", "CAD"),
    ("chf", "CHF"),
    ("cm", "cm"),
    ("cny", "CNY"),
    ("eth", "ETH"),
    ("eur", "EUR"),
    ("gb", "GB"),
    ("gbp", "GBP"),
    ("ghz", "GHz"),
    ("gw", "GW"),
    ("gwh", "GWh"),
    ("hz", "Hz"),
    ("inr", "INR"),
    ("jpy", "JPY"),
    ("kb", "kB"),
    ("kg", "kg"),
    ("khz", "kHz"),
    ("km", "km"),
    ("kmh", "km/h"),
    ("kw", "kW"),
    ("kwh", "kWh"),
    ("mb", "MB"),
    ("mbps", "Mbit/s"),
    ("mhz", "MHz"),
    ("mio", "million"),
    ("mm", "mm"),
    ("mn", "million"),
    ("mpa", "MPa"),
    ("ms", "ms"),
    ("mw", "MW"),
    ("mwh", "MWh"),
    ("pct", "%"),
    ("percent", "%"),
    ("ppm", "ppm"),
    ("tb", "TB"),
    ("twh", "TWh"),
    ("usd", "USD"),
    ("usdt", "USDT"),
    ("wh", "Wh"),
];
/// Words that are written in capitals.
const CAPITALS: [&str; 40] = [
    "api", "atr", "aum", "bmi", "btc", "co2", "cpi", "cpu", "ebit", "ebitda", "ecb", "ema", "eps", "etf",
    "eth", "eu", "fx", "gdp", "gpu", "hr", "id", "iq", "kpi", "macd", "mae", "nav", "pmi", "pnl", "ppi",
    "ram", "rmse", "roe", "roi", "rsi", "sma", "uk", "url", "us", "vat", "vwap",
];

/// Returns a key as a name for readers. A key with spaces, brackets or other signs is one already,
/// and a single letter is a symbol.
pub(super) fn humanized(key: &str) -> String {
    let plain = |it: char| it.is_alphanumeric() || matches!(it, '_' | '-');
    if key.chars().count() < 2 || !key.chars().all(plain) || !key.chars().any(char::is_alphabetic) {
        return key.to_owned();
    }
    let mut words: Vec<String> = key
        .split(['_', '-'])
        .filter(|word| !word.is_empty())
        .flat_map(humps)
        .collect();
    let mut units = Vec::new();
    while words.len() > 1
        && let Some(unit) = words.last().and_then(|word| unit(word))
    {
        units.insert(0, unit);
        words.pop();
    }
    let mut name = words
        .iter()
        .enumerate()
        .map(|(at, word)| written(word, at == 0))
        .collect::<Vec<_>>()
        .join(" ");
    if !units.is_empty() {
        let _ = write!(name, " ({})", units.join(" "));
    }
    name
}

/// Splits `closePrice`. A word that begins with a capital, or with a single small letter before
/// one, is a name of its own.
fn humps(word: &str) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    let rises = |at: usize| letters[at].is_uppercase() && !letters[at - 1].is_uppercase();
    let mut starts: Vec<usize> = (1..letters.len()).filter(|at| rises(*at)).collect();
    if !letters.first().is_some_and(|it| it.is_lowercase()) || starts.first() == Some(&1) {
        return vec![word.to_owned()];
    }
    starts.insert(0, 0);
    starts.push(letters.len());
    starts
        .windows(2)
        .map(|pair| {
            let part = &letters[pair[0]..pair[1]];
            let is_acronym = part.len() > 1 && part.iter().all(|it| !it.is_lowercase());
            let part = part.iter().collect::<String>();
            if is_acronym { part } else { part.to_lowercase() }
        })
        .collect()
}

fn unit(word: &str) -> Option<&'static str> {
    let found = UNITS.iter().find(|(key, _)| word.eq_ignore_ascii_case(key))?;
    Some(found.1)
}

fn written(word: &str, first: bool) -> String {
    if CAPITALS.contains(&word) {
        return word.to_uppercase();
    }
    let mut letters = word.chars();
    match letters.next() {
        Some(letter) if first && letter.is_lowercase() && !word.chars().any(char::is_uppercase) => {
            letter.to_uppercase().chain(letters).collect()
        }
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::humanized;

    #[test]
    fn keys_become_names_with_their_units() {
        for (key, name) in [
            ("close_price", "Close price"),
            ("closePrice", "Close price"),
            ("revenue_usd_bn", "Revenue (USD bn)"),
            ("margin_pct", "Margin (%)"),
            ("pct_change", "Pct change"),
            ("load-mwh", "Load (MWh)"),
            ("loadMWh", "Load (MWh)"),
            ("sma_20", "SMA 20"),
            ("gdp_growth", "GDP growth"),
            ("GDP_growth", "GDP growth"),
            ("größe_cm", "Größe (cm)"),
            ("one", "One"),
            ("usd", "Usd"),
            ("__x__", "X"),
        ] {
            assert_eq!(humanized(key), name, "{key}");
        }
    }

    #[test]
    fn names_and_symbols_are_left_alone() {
        for key in [
            "Price (USD/oz)",
            "CO2 [ppm]",
            "VIX",
            "iPhone",
            "x",
            "BTC reserve",
            "a.b",
            "2024",
            "2024_01",
            "",
            "销量",
        ] {
            assert_eq!(humanized(key), key, "{key}");
        }
    }
}
