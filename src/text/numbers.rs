//! Numbers with few digits and a fitting unit.

/// Three significant digits, without exponents.
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.0005 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// A time, given in microseconds, in its best unit: `812 µs`, `5.21 ms`, `12.3 s`, `2 min 05 s`, `1 h 05
/// min`.
pub fn duration(us: f64) -> String {
    duration_with_micro(us, "µs")
}

/// A [`duration`] that uses `micro` as the unit for microseconds, for terminals without Greek letters.
pub fn duration_with_micro(us: f64, micro: &str) -> String {
    match us.abs() {
        v if v < 999.5 => format!("{} {micro}", three_digits(us)),
        v if v < 999_500.0 => format!("{} ms", three_digits(us / 1e3)),
        v if v < 59.95e6 => format!("{} s", three_digits(us / 1e6)),
        v => {
            let sign = if us < 0.0 { "-" } else { "" };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "positive, and saturating is right"
            )]
            let seconds = (v / 1e6).round() as u64;
            if seconds < 3600 {
                format!("{sign}{} min {:02} s", seconds / 60, seconds % 60)
            } else {
                format!("{sign}{} h {:02} min", seconds / 3600, seconds % 3600 / 60)
            }
        }
    }
}

/// Bytes, or a difference of bytes, in binary units: `512 B`, `14.2 MiB`.
pub fn bytes(value: f64) -> String {
    scaled(value, 1024.0, " B", &[" KiB", " MiB", " GiB", " TiB"])
}

/// A count with an SI prefix: `950`, `1.23 k`, `115 M`, `4.10 G`.
pub fn count(value: f64) -> String {
    scaled(value, 1000.0, "", &[" k", " M", " G", " T", " P"])
}

/// A fraction of 1 in per cent: `42 %`, or `0.4 %` if it would round to zero.
pub fn share(part: f64) -> String {
    let percent = 100.0 * part;
    if percent > 0.0 && percent < 9.5 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// A count with its noun: `1 item`, `2 items`.
pub fn counted(count: u64, one: &str) -> String {
    format!("{count} {}", noun(count, one))
}

/// A noun after a number: `item` after 1, otherwise `items`.
pub fn noun(count: u64, one: &str) -> String {
    if count == 1 { one.to_owned() } else { format!("{one}s") }
}

/// A rate per second, in few digits and without a unit: `43.3`, `750`.
pub fn rate(per_second: f64) -> String {
    if per_second >= 100.0 { format!("{per_second:.0}") } else { format!("{per_second:.1}") }
}

/// A value in the first unit in which it is below `step`; without decimals in the smallest.
fn scaled(mut value: f64, step: f64, smallest: &str, larger: &[&str]) -> String {
    if value.abs() < step - 0.5 {
        return format!("{value:.0}{smallest}");
    }
    let mut unit = smallest;
    for next in larger {
        if value.abs() < step - 0.5 {
            break;
        }
        value /= step;
        unit = next;
    }
    format!("{}{unit}", three_digits(value))
}

/// `3.1 % apart`, or the factor.
pub fn apart_text(percent: f64) -> String {
    if percent < 100.0 {
        format!("{percent:.1} % apart")
    } else {
        format!("apart by a factor of {:.1}", 1.0 + percent / 100.0)
    }
}

/// `to ±3.1 %`, from a half interval on the log scale, or the factor.
pub fn known_text(percent: f64) -> String {
    let factor = (percent / 100.0).exp();
    if percent < 50.0 {
        format!("to ±{percent:.1} %")
    } else if factor < 10.0 {
        format!("to a factor of {factor:.1}")
    } else {
        "only to its order of magnitude".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        for (count, expected) in [(0, "0 items"), (1, "1 item"), (2, "2 items"), (21, "21 items")] {
            assert_eq!(counted(count, "item"), expected);
        }
    }

    #[test]
    fn durations() {
        let cases = [
            (0.0, "0.00 µs"),
            (0.5, "0.50 µs"),
            (0.8, "0.80 µs"),
            (812.0, "812 µs"),
            (999.7, "1.00 ms"),
            (5210.0, "5.21 ms"),
            (-20_147.0, "-20.1 ms"),
            (1_234_567.0, "1.23 s"),
            (12.3e6, "12.3 s"),
            (59.97e6, "1 min 00 s"),
            (125e6, "2 min 05 s"),
            (-125e6, "-2 min 05 s"),
            (3900e6, "1 h 05 min"),
            (3905e6, "1 h 05 min"),
        ];
        for (us, expected) in cases {
            assert_eq!(duration(us), expected, "{us}");
        }
        assert_eq!(duration_with_micro(812.0, "us"), "812 us");
    }

    #[test]
    fn bytes_and_counts() {
        let cases = [
            (1023.0, "1023 B"),
            (1023.6, "1.00 KiB"),
            (1536.0, "1.50 KiB"),
            (-1_048_576.0, "-1.00 MiB"),
            (5e15, "4547 TiB"),
        ];
        for (value, expected) in cases {
            assert_eq!(bytes(value), expected, "{value}");
        }
        let cases = [(999.0, "999"), (999.7, "1.00 k"), (10_838_016.0, "10.8 M"), (-2e9, "-2.00 G")];
        for (value, expected) in cases {
            assert_eq!(count(value), expected, "{value}");
        }
    }

    #[test]
    fn what_launches_vary_reads_as_a_factor_where_per_cent_say_little() {
        assert_eq!(
            (apart_text(3.12), apart_text(250.0)),
            ("3.1 % apart".to_owned(), "apart by a factor of 3.5".to_owned())
        );
        assert_eq!(known_text(2.5), "to ±2.5 %");
        assert_eq!(known_text(100.0), "to a factor of 2.7");
        assert_eq!(known_text(900.0), "only to its order of magnitude");
    }
}
