//! Tables in Markdown, and the document that holds them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use cargo_tf_plugin::bench::grouped;

/// The heading of a column of ratios.
pub const RATIO: &str = "ratio (quartiles)";

/// A Markdown table whose first column is text and whose others are numbers.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|&heading| heading.to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn push(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().collect());
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        for (index, row) in self.rows.iter().enumerate() {
            f.write_str("|")?;
            for (column, cell) in row.iter().enumerate() {
                match column {
                    0 => write!(f, " {cell:<0$} |", width(column))?,
                    _ => write!(f, " {cell:>0$} |", width(column))?,
                }
            }
            f.write_char('\n')?;
            if index == 0 {
                f.write_str("|")?;
                for column in 0..columns {
                    let end = if column == 0 { " |" } else { ":|" };
                    write!(f, " {}{end}", "-".repeat(width(column)))?;
                }
                f.write_char('\n')?;
            }
        }
        Ok(())
    }
}

/// Three significant figures at least, no digits that mean nothing.
pub fn number(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => grouped(value),
    }
}

/// The directory of the documents.
pub fn directory() -> Result<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    directory.canonicalize().with_context(|| format!("no {}", directory.display()))
}

/// Prints a table, and puts it into a block of a document of `docs/` if it is to be written.
pub fn show(document: &str, name: &str, text: &str, write: bool) -> Result<()> {
    println!("{text}");
    if write {
        println!("written to {}", write_into(document, name, text)?.display());
    }
    Ok(())
}

/// Puts `text` between `<!-- <name>:begin -->` and `<!-- <name>:end -->` in a document.
pub fn write_into(document: &str, name: &str, text: &str) -> Result<PathBuf> {
    let file = directory()?.join(document);
    let old = fs::read_to_string(&file).with_context(|| format!("no {}", file.display()))?;
    let new = replace(&old, name, text).with_context(|| format!("cannot write docs/{document}"))?;
    fs::write(&file, new)?;
    Ok(file)
}

fn replace(document: &str, name: &str, text: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- {name}:begin -->\n"), format!("<!-- {name}:end -->"));
    let Some((before, (_, after))) = document
        .split_once(&begin)
        .and_then(|(before, rest)| Some((before, rest.split_once(&end)?)))
    else {
        bail!("it has no lines `{}` and `{end}`; restore them", begin.trim_end());
    };
    Ok(format!("{before}{begin}{}\n{end}{after}", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_aligned() {
        let mut table = Table::new(&["what", "ns"]);
        table.push(["`stat`".to_owned(), "1,234".to_owned()]);
        let expected = "| what   |    ns |\n| ------ | -----:|\n| `stat` | 1,234 |\n";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn numbers_have_three_figures() {
        let shown = [1.049, 12.34, 345.6, 1_234_567.0].map(number);
        assert_eq!(shown, ["1.05", "12.3", "346", "1,234,567"]);
    }

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let document = "a\n<!-- t:begin -->\nold\n<!-- t:end -->\nb\n";
        let expected = "a\n<!-- t:begin -->\nnew\n<!-- t:end -->\nb\n";
        assert_eq!(replace(document, "t", "new\n").unwrap(), expected);
        assert!(replace("nothing", "t", "new").is_err());
    }
}
