//! Numbers with a unit, as people write them.

/// Parses a number without a sign. `str::parse` would accept a `+`.
pub(crate) fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Parses a number of bytes, alone or with a unit.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = with_unit(text);
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" | "kb" => 1 << 10,
        "m" | "mib" | "mb" => 1 << 20,
        "g" | "gib" | "gb" => 1 << 30,
        "t" | "tib" | "tb" => 1 << 40,
        _ => return None,
    };
    digits(number)?.checked_mul(unit)
}

/// Splits a text into the digits that it begins with, and what follows them.
pub(crate) fn with_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim_start())
}
