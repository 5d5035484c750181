//! Ratios and goals.

use crate::stats::Spread;
use std::fmt::{self, Display};

/// The bound for a ratio.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    /// For a speed.
    AtLeast(f64),
    /// For a time.
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
    /// The value of the plugin, in `unit`; `bare` is that of the reference.
    pub(crate) plugin: f64,
    pub(crate) bare: Option<f64>,
    pub(crate) unit: &'static str,
    /// The plugin's value divided by the reference's, if there is a reference.
    pub(crate) ratio: Option<Spread>,
    pub(crate) goal: Option<Goal>,
    /// Whether the goal also applies on the CPU.
    pub(crate) is_everywhere: bool,
}

impl Row {
    /// Returns whether the goal is met, or `None` if there is no goal here.
    pub(crate) fn is_met(&self, is_software: bool) -> Option<bool> {
        if is_software && !self.is_everywhere {
            return None;
        }
        Some(self.goal?.is_met(self.ratio?.median))
    }

    /// Returns the cells of the table: on the CPU only ratios.
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

/// Returns the rows as a Markdown table.
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
