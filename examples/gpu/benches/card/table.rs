//! Medians, ratios and goals.

use anyhow::Result;
use std::fmt::{self, Display};

/// A median with the quartiles around it.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    low: f64,
    pub(crate) median: f64,
    high: f64,
}

impl Spread {
    /// Those of at least one value.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<_> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let at = |quarter: usize| sorted[(sorted.len() - 1) * quarter / 4];
        Self { low: at(1), median: at(2), high: at(3) }
    }

    /// The ratios of values of the same rounds.
    pub(crate) fn ratios(values: &[f64], to: &[f64]) -> Self {
        Self::of(values.iter().zip(to).map(|(value, to)| value / to))
    }
}

impl Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} ({:.2}–{:.2})", self.median, self.low, self.high)
    }
}

/// Lets contestants take turns: `run` gets the index of one and returns what it measured. Returns the rounds of each.
///
/// A first round warms up and does not count. In each round another one is the first.
pub(crate) fn take_turns<T>(
    contestants: usize,
    rounds: usize,
    mut run: impl FnMut(usize) -> Result<T>,
) -> Result<Vec<Vec<T>>> {
    let mut taken: Vec<_> = (0..contestants).map(|_| Vec::with_capacity(rounds)).collect();
    for round in 0..=rounds {
        for turn in 0..contestants {
            let index = (turn + round) % contestants;
            let value = run(index)?;
            if round > 0 {
                taken[index].push(value);
            }
        }
    }
    Ok(taken)
}

/// What a ratio has to be.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    /// Of a speed.
    AtLeast(f64),
    /// Of a time.
    AtMost(f64),
}

impl Goal {
    fn is_met(self, ratio: f64) -> bool {
        match self {
            Self::AtLeast(goal) => ratio >= goal,
            Self::AtMost(goal) => ratio <= goal,
        }
    }
}

impl Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(goal) => write!(f, "≥ {goal:.2}"),
            Self::AtMost(goal) => write!(f, "≤ {goal:.2}"),
        }
    }
}

/// A comparison of the plugin with a reference.
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) reference: String,
    /// Of the plugin and of the reference, in `unit`.
    pub(crate) plugin: f64,
    pub(crate) bare: Option<f64>,
    pub(crate) unit: &'static str,
    /// The plugin's to the reference's; without a reference there is none.
    pub(crate) ratio: Option<Spread>,
    pub(crate) goal: Option<Goal>,
    /// Whether the goal is also one on the processor.
    pub(crate) is_everywhere: bool,
}

impl Row {
    /// `None` where no goal can be missed.
    pub(crate) fn is_met(&self, is_software: bool) -> Option<bool> {
        if is_software && !self.is_everywhere {
            return None;
        }
        Some(self.goal?.is_met(self.ratio?.median))
    }

    /// Cells of the table. On the processor there are no figures but ratios.
    fn cells(&self, is_software: bool) -> Vec<String> {
        let dash = || String::from("–");
        let mut cells = vec![self.what.clone(), self.reference.clone()];
        if !is_software {
            let figure = |value: f64| format!("{value:.3} {}", self.unit);
            cells.extend([figure(self.plugin), self.bare.map_or_else(dash, figure)]);
        }
        cells.push(self.ratio.map_or_else(dash, |ratio| ratio.to_string()));
        cells.push(self.goal.map_or_else(dash, |goal| goal.to_string()));
        cells.push(match self.is_met(is_software) {
            None => dash(),
            Some(true) => String::from("met"),
            Some(false) => String::from("missed"),
        });
        cells
    }
}

/// The rows as a Markdown table.
pub(crate) fn table(rows: &[Row], is_software: bool) -> String {
    let mut headings = vec!["what", "compared with"];
    if !is_software {
        headings.extend(["plugin", "reference"]);
    }
    headings.extend(["ratio (quartiles)", "goal", "result"]);
    let mut lines = vec![headings.into_iter().map(String::from).collect::<Vec<_>>()];
    lines.extend(rows.iter().map(|row| row.cells(is_software)));
    let widths: Vec<_> = (0..lines[0].len())
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    lines.insert(1, widths.iter().map(|&width| "-".repeat(width)).collect());
    let mut text = String::new();
    for line in lines {
        for (cell, width) in line.iter().zip(&widths) {
            text.push_str(&format!("| {cell:<width$} "));
        }
        text.push_str("|\n");
    }
    text
}
