//! The name of the platform, and its settings in the environment.

use se_plugin::host::{Delay, HostMemory};
use se_plugin::{Error, Result};
use std::path::PathBuf;
use std::time::Duration;

/// Name and type of the platform.
pub(crate) const TYPE: &str = "RUST_REF";

/// The settings of all devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) devices: usize,
    memory: u64,
    delay: Duration,
    seed: u64,
    is_guarded: bool,
    pub(crate) counters: Option<PathBuf>,
}

impl Config {
    /// Reads the settings from the environment.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming a variable that cannot be parsed.
    pub(crate) fn from_environment() -> Result<Self> {
        Self::read(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn read(get: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let number = |name: &str, default: u64| match get(name) {
            Some(value) => value.trim().parse().map_err(|_| unclear(name, &value, "2")),
            None => Ok(default),
        };
        let memory = match get("REFDEVICE_MEMORY") {
            Some(value) => {
                bytes(&value).ok_or_else(|| unclear("REFDEVICE_MEMORY", &value, "512MiB"))?
            }
            None => 4 << 30,
        };
        let is_guarded = match get("REFDEVICE_GUARD").as_deref() {
            None | Some("1") => true,
            Some("0") => false,
            Some(value) => return Err(unclear("REFDEVICE_GUARD", value, "0")),
        };
        let devices = number("REFDEVICE_DEVICES", 1)?;
        Ok(Self {
            devices: usize::try_from(devices).map_err(Error::invalid_argument)?,
            memory,
            delay: Duration::from_micros(number("REFDEVICE_DELAY_US", 0)?),
            seed: number("REFDEVICE_SEED", 0)?,
            is_guarded,
            counters: get("REFDEVICE_COUNTERS").map(PathBuf::from),
        })
    }

    /// Creates the memory of a device.
    pub(crate) fn memory(&self) -> Result<HostMemory> {
        match self.is_guarded {
            true => HostMemory::new(self.memory),
            false => HostMemory::unguarded(self.memory),
        }
    }

    /// Returns the delays of a device, which are random up to the configured one.
    pub(crate) fn delay(&self, ordinal: usize) -> Delay {
        Delay::up_to(self.delay, self.seed.wrapping_add((ordinal as u64) << 32))
    }
}

fn unclear(name: &str, value: &str, example: &str) -> Error {
    Error::invalid_argument(format!("{name}={value} is not understood; write {name}={example}"))
}

/// Parses a number of bytes, with or without a unit.
fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim() {
        "" | "B" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Result<Config> {
        Config::read(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn sizes_have_units() {
        for (text, expected) in [
            ("1000", Some(1000)),
            ("16 MiB", Some(16 << 20)),
            ("2G", Some(2 << 30)),
            ("64KiB", Some(64 << 10)),
            ("12X", None),
            ("MiB", None),
            ("-1", None),
            ("99999999999G", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn each_variable_is_read() {
        let default = Config::read(|_| None).unwrap();
        assert_eq!((default.devices, default.memory, default.is_guarded), (1, 4 << 30, true));
        assert_eq!(with("REFDEVICE_DEVICES", "3").unwrap().devices, 3);
        assert_eq!(with("REFDEVICE_MEMORY", "1M").unwrap().memory, 1 << 20);
        assert_eq!(with("REFDEVICE_DELAY_US", "50").unwrap().delay, Duration::from_micros(50));
        assert_eq!(with("REFDEVICE_SEED", "7").unwrap().seed, 7);
        assert!(!with("REFDEVICE_GUARD", "0").unwrap().is_guarded);
        assert_eq!(with("REFDEVICE_COUNTERS", "/a").unwrap().counters, Some("/a".into()));
        for name in ["DEVICES", "MEMORY", "DELAY_US", "SEED", "GUARD"] {
            let name = format!("REFDEVICE_{name}");
            let error = with(&name, "junk").unwrap_err();
            assert!(error.message().contains(&name), "{error}");
        }
    }
}
