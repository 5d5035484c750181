//! The user's limit on the number of devices.

/// The environment variable that limits the number of devices of each plugin built with this SDK.
const VARIABLE: &str = "TF_SE_PLUGIN_DEVICES";

/// Returns the maximum number of devices that the user allows for a plugin.
pub(crate) fn limit() -> usize {
    match std::env::var(VARIABLE) {
        Ok(value) => parse(&value).unwrap_or_else(|| {
            log::warn!(
                "{VARIABLE}={value} has no effect; set it to a number of devices, such as 0"
            );
            usize::MAX
        }),
        Err(_) => usize::MAX,
    }
}

fn parse(value: &str) -> Option<usize> {
    match value.trim() {
        "" => Some(usize::MAX),
        value => value.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_limit_is_a_number() {
        assert_eq!(super::parse("0"), Some(0));
        assert_eq!(super::parse(" 2 "), Some(2));
        assert_eq!(super::parse(""), Some(usize::MAX));
        for junk in ["none", "-1", "1.5"] {
            assert_eq!(super::parse(junk), None, "{junk}");
        }
    }
}
