//! What tests and fuzz targets hold the parsers of decimals to.

/// The number that `text` writes with `.`, in units of the last of `scale` places: digits are moved, nothing reckoned.
/// `None` if it is no decimal or does not fit.
pub fn decimal_by_digits(text: &str, precision: u8, scale: u8) -> Option<i128> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let moved = format!("{whole}{fraction:0<width$}", width = usize::from(scale));
    let moved = moved.trim_start_matches('0');
    if fraction.len() > usize::from(scale) || moved.len() > usize::from(precision) {
        return None;
    }
    let value: i128 = if moved.is_empty() { 0 } else { moved.parse().ok()? };
    Some(if text.starts_with('-') { -value } else { value })
}
