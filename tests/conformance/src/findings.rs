//! Which cases were seen to notice which defects.
//!
//! To try all cases on all defects takes minutes. The files in `findings/` record what was seen, the tests try these
//! pairs again, and the book shows them. `c.txt` was chosen by hand: one defect for each case.

use crate::Defect;
use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

/// How many cases are kept for a defect beside those that have it for their own.
const KEPT: usize = 3;

/// A defect, and cases that notice it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noticed {
    /// The defect.
    pub defect: Defect,
    /// Cases of which it proves that they notice something. A case has one such defect.
    pub own: Vec<String>,
    /// Other cases that notice it, the first few.
    pub others: Vec<String>,
}

impl Noticed {
    /// All cases that are named.
    pub fn cases(&self) -> impl Iterator<Item = &str> {
        self.own.iter().chain(&self.others).map(String::as_str)
    }
}

/// A record: a line for each defect that is noticed, `Defect: own cases; other cases`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings(pub Vec<Noticed>);

fn file(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "findings", &format!("{name}.txt")].iter().collect()
}

impl Findings {
    /// Reads a record. With `TF_FS_PLUGIN_WRITE_FINDINGS` in the environment it is found, and written, first.
    pub fn read_or_find(name: &str, find: impl FnOnce() -> Self) -> Self {
        if env::var_os("TF_FS_PLUGIN_WRITE_FINDINGS").is_some() {
            find().write(name);
        }
        Self::read(name)
    }

    /// Reads a record: `filesystems`, or `python` or `c` for the cases in TensorFlow.
    pub fn read(name: &str) -> Self {
        let text = fs::read_to_string(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self::parse(&text)
    }

    fn parse(text: &str) -> Self {
        let names = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let line = |line: &str| {
            let (defect, cases) =
                line.split_once(':').unwrap_or_else(|| panic!("no `:` in {line}"));
            let found = Defect::ALL.iter().find(|(other, _)| format!("{other:?}") == defect);
            let (defect, _) = *found.unwrap_or_else(|| panic!("there is no defect {defect}"));
            let (own, others) = cases.split_once(';').unwrap_or((cases, ""));
            Noticed { defect, own: names(own), others: names(others) }
        };
        Self(text.lines().map(line).collect())
    }

    fn write(&self, name: &str) {
        fs::write(file(name), self.text()).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for Noticed { defect, own, others } in &self.0 {
            let _ = write!(text, "{defect:?}:");
            own.iter().for_each(|case| text += &format!(" {case}"));
            if !others.is_empty() {
                let _ = write!(text, "; {}", others.join(" "));
            }
            text.push('\n');
        }
        text
    }

    /// The record of what was seen: for each defect all cases that notice it.
    ///
    /// A case's own defect is the one that the fewest cases notice: it says most about the case.
    pub fn of(seen: &[(Defect, Vec<&str>)]) -> Self {
        let mut best = BTreeMap::new();
        for (number, (_, cases)) in seen.iter().enumerate() {
            for case in cases {
                let one = best.entry(*case).or_insert(number);
                if cases.len() < seen[*one].1.len() {
                    *one = number;
                }
            }
        }
        let noticed = seen.iter().enumerate().filter(|(_, (_, cases))| !cases.is_empty());
        let noticed = noticed.map(|(number, (defect, cases))| {
            let (own, others): (Vec<_>, Vec<_>) = cases
                .iter()
                .map(|case| (*case).to_owned())
                .partition(|case| best[&**case] == number);
            Noticed { defect: *defect, own, others: others.into_iter().take(KEPT).collect() }
        });
        Self(noticed.collect())
    }

    /// The defect that a case has for its own.
    pub fn own_of(&self, case: &str) -> Option<Defect> {
        let found = self.0.iter().find(|noticed| noticed.own.iter().any(|own| own == case));
        found.map(|noticed| noticed.defect)
    }

    /// The cases that have none.
    pub fn without<'c>(&self, cases: impl Iterator<Item = &'c str>) -> Vec<&'c str> {
        cases.filter(|case| self.own_of(case).is_none()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_has_the_defect_that_the_fewest_notice() {
        let (wide, narrow) = (Defect::OpenFails, Defect::OpenCreates);
        let seen =
            [(wide, vec!["a", "b", "c"]), (narrow, vec!["b"]), (Defect::ReadEndsAtNul, vec![])];
        let findings = Findings::of(&seen);
        assert_eq!(findings.text(), "OpenFails: a c; b\nOpenCreates: b\n");
        assert_eq!(findings.own_of("b"), Some(narrow));
        assert_eq!(findings.own_of("d"), None);
        assert_eq!(Findings::parse(&findings.text()), findings);
    }
}
