//! Numbers for people.

/// A time given in microseconds, with three significant digits and its unit.
pub fn duration_us(us: f64) -> String {
    match us.abs() {
        us_abs if us_abs >= 1e6 => format!("{} s", significant(us / 1e6)),
        us_abs if us_abs >= 1e3 => format!("{} ms", significant(us / 1e3)),
        _ => format!("{} µs", significant(us)),
    }
}

/// Bytes with a binary unit.
pub fn bytes(bytes: f64) -> String {
    let mut value = bytes;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value.abs() < 1024.0 {
            return if unit == "B" { format!("{value:.0} B") } else { format!("{} {unit}", significant(value)) };
        }
        value /= 1024.0;
    }
    format!("{} TiB", significant(value))
}

/// A count with a decimal unit: `1.25 M`.
pub fn count(count: f64) -> String {
    let mut value = count;
    for unit in ["", " k", " M", " G", " T"] {
        if value.abs() < 1000.0 {
            return if unit.is_empty() { format!("{value:.0}") } else { format!("{}{unit}", significant(value)) };
        }
        value /= 1000.0;
    }
    format!("{} P", significant(value))
}

/// Three significant digits for values below 1000.
fn significant(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(duration_us(0.5), "0.50 µs");
        assert_eq!(duration_us(20_147.0), "20.1 ms");
        assert_eq!(duration_us(1_234_567.0), "1.23 s");
        assert_eq!(bytes(1023.0), "1023 B");
        assert_eq!(bytes(1536.0), "1.50 KiB");
        assert_eq!(bytes(-1_048_576.0), "-1.00 MiB");
        assert_eq!(count(999.0), "999");
        assert_eq!(count(10_838_016.0), "10.8 M");
    }
}
