//! The table of stores in `SEMANTICS.md`.

use s3::Probed;

const DOCUMENT: &str = include_str!("../../SEMANTICS.md");

/// What the table says of the store with this heading: rows and their values.
fn documented(store: &str) -> Vec<(&'static str, &'static str)> {
    let (_, rest) = DOCUMENT.split_once("<!-- stores -->\n").expect("the mark before the table");
    let (table, _) = rest.split_once("<!-- end of stores -->").expect("the mark after the table");
    let mut lines = table
        .lines()
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    let heading = lines.next().expect("a heading");
    let column = heading.iter().position(|&cell| cell == store);
    let column = column.unwrap_or_else(|| panic!("{store} is not in the table: {heading:?}"));
    lines.skip(1).map(|cells| (cells[0], cells[column])).collect()
}

/// Compares what a store has shown with what the table says of it.
///
/// # Panics
/// If they differ.
pub fn check(store: &str, probed: &Probed) {
    let found: Vec<(&str, String)> = probed
        .rows()
        .into_iter()
        .map(|(name, observed)| (name, observed.to_string()))
        .chain(probed.guarantees().map(|(name, guarantee)| (name, guarantee.to_owned())))
        .collect();
    let table: Vec<(&str, String)> =
        documented(store).into_iter().map(|(name, cell)| (name, cell.to_owned())).collect();
    assert_eq!(table, found, "put this into the column {store} of SEMANTICS.md");
}
