//! What there is to know about the machine and the time of a measurement.

use std::fs;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The machine that something was measured on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// The processor's name.
    pub(crate) cpu: String,
    /// The processors that a process may use.
    pub(crate) cores: usize,
    /// In bytes.
    pub(crate) memory: u64,
    /// The system's name and version.
    pub(crate) system: String,
    /// How many processes wanted a processor in the minute before.
    pub(crate) load: f64,
}

impl Machine {
    pub(crate) fn this() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let cpu = field(&read("/proc/cpuinfo"), "model name");
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        let kilobytes = memory.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        let load = read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok());
        Self {
            cpu: cpu.unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: thread::available_parallelism().map_or(1, usize::from),
            memory: kilobytes.unwrap_or(0) * 1024,
            system: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            load: load.unwrap_or(0.0),
        }
    }

    /// In a line, for people.
    pub(crate) fn line(&self) -> String {
        let cores =
            if self.cores == 1 { "1 core".to_owned() } else { format!("{} cores", self.cores) };
        let memory = self.memory as f64 / f64::from(1 << 30);
        format!("{}, {cores}, {memory:.0} GiB, {}", self.cpu, self.system)
    }
}

/// Now, as in `2026-11-21T14:00:00Z`.
pub(crate) fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    date(seconds)
}

fn date(seconds: u64) -> String {
    let (mut days, of_day) = (seconds / 86_400, seconds % 86_400);
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut month = 0;
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", month + 1, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_772_323_200, "2026-03-01T00:00:00Z"),
        ] {
            assert_eq!(date(seconds), text);
        }
    }

    #[test]
    fn this_machine_has_a_name_and_memory() {
        let machine = Machine::this();
        assert!(!machine.cpu.is_empty() && machine.cores > 0 && machine.memory > 0, "{machine:?}");
        assert!(machine.line().contains("core"), "{}", machine.line());
    }
}
