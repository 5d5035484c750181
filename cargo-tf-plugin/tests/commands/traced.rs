//! The lines, the totals and the events of a trace.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// One line of the trace.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) seconds: f64,
    pub(crate) thread: String,
    /// The scheme or platform of the operation, and its name.
    pub(crate) call: String,
    pub(crate) arguments: String,
    pub(crate) result: String,
}

pub(crate) const HEADINGS: &str = "     time s  thread             took  call";

/// Parses the lines behind the headings.
pub(crate) fn lines(text: &str) -> Vec<Line> {
    let (_, rest) = text.split_once(HEADINGS).unwrap_or_else(|| panic!("no headings in:\n{text}"));
    let known = rest.lines().filter_map(|line| {
        let characters: Vec<char> = line.chars().collect();
        let part = |from: usize, to: usize| -> String {
            characters.get(from..to.min(characters.len())).unwrap_or_default().iter().collect()
        };
        let seconds: f64 = part(0, 11).trim().parse().ok()?;
        let (number, unit) =
            part(27, 36).trim().split_once(' ').map(|(n, u)| (n.to_owned(), u.to_owned()))?;
        assert!(
            number.parse::<f64>().is_ok() && ["ns", "µs", "ms", "s"].contains(&unit.as_str()),
            "{line}"
        );
        let rest = part(38, usize::MAX);
        let (call, rest) = rest.split_once("  ").unwrap_or((&rest, ""));
        let (arguments, result) = match rest.split_once("→ ") {
            Some((arguments, result)) => (arguments, result),
            None => (rest, ""),
        };
        let [call, arguments, result] =
            [call, arguments, result].map(|part| part.trim().to_owned());
        Some(Line { seconds, thread: part(13, 25).trim().to_owned(), call, arguments, result })
    });
    known.collect()
}

/// Returns the rows of the table at the end: the operation, its calls, those that were not OK, and the bytes.
pub(crate) fn totals(text: &str) -> Vec<(String, u64, u64, u64)> {
    let heading = "operation  ";
    let table = text.lines().skip_while(|line| !line.starts_with(heading));
    let mut table = table.take_while(|line| !line.is_empty());
    let heading = table.next().unwrap_or_else(|| panic!("no totals in:\n{text}")).to_owned();
    let end = |name: &str| heading.find(name).expect(name) + name.len();
    let ends = [end("calls"), end("not OK"), end("bytes")];
    let rows = table.map(|row| {
        let characters: Vec<char> = row.chars().collect();
        // Numbers are below the end of their heading.
        let number = |end: usize| -> u64 {
            let before = characters.get(..end).unwrap_or_default();
            let digits = before.iter().rev().take_while(|c| c.is_ascii_digit()).count();
            let digits: String = before[before.len() - digits..].iter().collect();
            digits.parse().unwrap_or_default()
        };
        let name: String = characters.iter().collect();
        let name = name.split("  ").next().unwrap_or_default().to_owned();
        (name, number(ends[0]), number(ends[1]), number(ends[2]))
    });
    rows.collect()
}

/// Parses the events of a file, whose last bracket may be missing.
pub(crate) fn events(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("the file");
    serde_json::from_str(&(text + "]")).expect("all but the end of a list")
}
