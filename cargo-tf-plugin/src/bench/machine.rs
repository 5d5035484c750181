//! The machine and the time of a measurement.

use std::fs;
use std::thread;

use chrono::{SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    /// How many CPUs a process may use.
    pub(crate) cores: usize,
    /// In bytes.
    pub(crate) memory: u64,
    pub(crate) system: String,
    /// How many processes needed a CPU in the minute before.
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

    /// Describes the machine in one line.
    pub(crate) fn line(&self) -> String {
        let cores =
            if self.cores == 1 { "1 core".to_owned() } else { format!("{} cores", self.cores) };
        let memory = self.memory as f64 / f64::from(1 << 30);
        format!("{}, {cores}, {memory:.0} GiB, {}", self.cpu, self.system)
    }
}

/// Returns the time now, as in `2026-11-21T14:00:00Z`.
pub(crate) fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)
}
