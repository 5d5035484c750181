//! What stands in the cells of the tables.

use crate::clients::Client;
use crate::figures::{Figure, Figures, Network, Sample};
use crate::rows::Row;

/// Seconds, or milliseconds below one.
#[must_use]
pub fn seconds(value: f64) -> String {
    match value {
        value if value < 0.0995 => format!("{:.1} ms", value * 1e3),
        value if value < 0.9995 => format!("{:.0} ms", value * 1e3),
        value if value < 99.5 => format!("{value:.2} s"),
        value => format!("{value:.0} s"),
    }
}

pub(crate) fn spread(figure: Figure) -> String {
    let (min, max) = (seconds(figure.min), seconds(figure.max));
    let median = seconds(figure.median);
    if min == max { median } else { format!("{median} ({min}–{max})") }
}

pub(crate) fn count(value: f64) -> String {
    if (value - value.round()).abs() < 0.05 {
        grouped(value.round() as u64)
    } else {
        format!("{value:.1}")
    }
}

/// Digits in groups of three.
pub(crate) fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join(",")
}

pub(crate) fn mark(scaled: bool) -> &'static str {
    if scaled { "≈ " } else { "" }
}

pub(crate) const NOTHING: &str = "–";

/// The figures of one client in one row.
pub(crate) struct Cell<'f> {
    pub(crate) samples: &'f [Sample],
}

impl<'f> Cell<'f> {
    pub(crate) fn of(figures: &'f Figures, row: &Row, network: Network, client: Client) -> Self {
        Self { samples: figures.samples(row.run, network, client) }
    }

    pub(crate) fn figure(&self, of: impl Fn(&Sample) -> f64) -> Option<Figure> {
        Figure::of(self.samples.iter().map(of))
    }

    pub(crate) fn median(&self) -> Option<f64> {
        Some(self.figure(|sample| sample.seconds)?.median)
    }

    pub(crate) fn scaled(&self) -> bool {
        self.samples.iter().any(|sample| sample.scaled)
    }

    pub(crate) fn time(&self) -> String {
        let time = self.figure(|sample| sample.seconds);
        time.map_or(NOTHING.into(), |time| mark(self.scaled()).to_owned() + &spread(time))
    }

    /// The most that a round needed.
    pub(crate) fn requests(&self) -> Option<f64> {
        Some(self.figure(|sample| sample.requests)?.max)
    }

    pub(crate) fn requests_text(&self) -> String {
        self.requests()
            .map_or(NOTHING.into(), |value| mark(self.scaled()).to_owned() + &count(value))
    }
}

pub(crate) fn ratio(plugin: &Cell<'_>, other: &Cell<'_>) -> String {
    match (plugin.median(), other.median()) {
        (Some(plugin), Some(other)) => {
            let ratio = other / plugin;
            // Below ten the first decimal says something.
            if ratio < 9.95 {
                format!("{ratio:.1}×")
            } else {
                format!("{}×", grouped(ratio.round() as u64))
            }
        }
        _ => NOTHING.into(),
    }
}
