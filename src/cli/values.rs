//! Values of options, as users write them.

/// Seconds: a number, optionally with `ms`, `s`, `m` or `h`.
pub fn seconds(text: &str) -> Result<f64, String> {
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let found = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = found.unwrap_or((text, 1.0));
    match number.trim().parse::<f64>().map(|value| value * factor) {
        Ok(value) if value.is_finite() && value > 0.0 && value <= 1e9 => Ok(value),
        _ => Err("expected a time above 0, such as 10, 10s, 500ms or 2m".to_owned()),
    }
}

/// A number of dB.
pub fn decibels(text: &str) -> Result<f64, String> {
    let value: f64 =
        text.trim_end_matches("dB").trim().parse().map_err(|_| format!("`{text}` is not a number of dB"))?;
    if value.is_finite() { Ok(value) } else { Err(format!("`{text}` is not a number of dB")) }
}

/// Percentage points, 0 or more.
pub fn points(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is not a number of percentage points"))?;
    if (0.0..=100.0).contains(&value) { Ok(value) } else { Err(format!("`{text}` is not between 0 and 100")) }
}
