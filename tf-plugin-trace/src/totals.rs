//! The wrapped functions, and the counts of their calls.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::output::duration;

/// The counts of one function. They need no lock: a process may fork at any time.
#[derive(Debug, Default)]
pub(crate) struct Count {
    calls: AtomicU64,
    failed: AtomicU64,
    nanoseconds: AtomicU64,
    longest: AtomicU64,
    bytes: AtomicU64,
}

impl Count {
    pub(crate) fn add(&self, took: u64, failed: bool, bytes: u64) {
        self.calls.fetch_add(1, Relaxed);
        self.failed.fetch_add(failed.into(), Relaxed);
        self.nanoseconds.fetch_add(took, Relaxed);
        self.longest.fetch_max(took, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    fn clear(&self) {
        for number in [&self.calls, &self.failed, &self.nanoseconds, &self.longest, &self.bytes] {
            number.store(0, Relaxed);
        }
    }
}

/// A wrapped table of the plugin, with its original functions.
#[derive(Debug)]
pub(crate) struct Slot {
    /// The owner of these functions: `notes://`, `MY_NPU`.
    pub(crate) subject: String,
    /// Addresses; 0 for functions that the plugin does not have.
    pub(crate) functions: Vec<usize>,
    pub(crate) members: &'static [&'static str],
    pub(crate) counts: Vec<Count>,
}

/// One line of the table at the end.
#[derive(Debug, Default, PartialEq, Eq)]
struct Row {
    name: String,
    calls: u64,
    failed: u64,
    nanoseconds: u64,
    longest: u64,
    bytes: u64,
}

/// Forgets all calls, as a child process does with those of its parent.
pub(crate) fn clear<'a>(slots: impl Iterator<Item = &'a Slot>) {
    for slot in slots {
        slot.counts.iter().for_each(Count::clear);
    }
}

/// Returns whether every process that imports TensorFlow calls this.
fn is_loading(name: &str) -> bool {
    name.ends_with("_InitPlugin") || name.starts_with("TF_Init") || name.ends_with(":// init")
}

/// Returns the table at the end of a process, or nothing if there was no call. Also returns nothing
/// for a process other than the program that has only loaded the plugin, without an error.
pub(crate) fn table<'a>(
    slots: impl Iterator<Item = &'a Slot>,
    plugin: &str,
    process: u32,
    is_program: bool,
) -> Option<String> {
    let mut rows: Vec<Row> = Vec::new();
    for slot in slots {
        for (member, count) in slot.members.iter().zip(&slot.counts) {
            let calls = count.calls.load(Relaxed);
            if calls == 0 {
                continue;
            }
            let name = format!("{} {member}", slot.subject).trim_start().to_owned();
            let row = match rows.iter().position(|row| row.name == name) {
                Some(at) => &mut rows[at],
                None => {
                    rows.push(Row { name, ..Row::default() });
                    rows.last_mut()?
                }
            };
            row.calls += calls;
            row.failed += count.failed.load(Relaxed);
            row.nanoseconds += count.nanoseconds.load(Relaxed);
            row.longest = row.longest.max(count.longest.load(Relaxed));
            row.bytes += count.bytes.load(Relaxed);
        }
    }
    let is_news = |row: &Row| row.failed > 0 || !is_loading(&row.name);
    if rows.is_empty() || !is_program && !rows.iter().any(is_news) {
        return None;
    }
    rows.sort_by(|a, b| b.nanoseconds.cmp(&a.nanoseconds).then_with(|| a.name.cmp(&b.name)));
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or_default().max(9);
    let calls: u64 = rows.iter().map(|row| row.calls).sum();
    let mut table = format!(
        "\n{calls} calls to {plugin} by process {process}; calls within calls are in both\n\n"
    );
    let _ = writeln!(
        table,
        "{:<width$}  {:>9}  {:>7}  {:>9}  {:>9}  {:>9}  {:>15}",
        "operation", "calls", "not OK", "total", "mean", "longest", "bytes"
    );
    for row in rows {
        let mean = row.nanoseconds / row.calls;
        let [total, mean, longest] = [row.nanoseconds, mean, row.longest].map(duration);
        let or_none = |number: u64| if number == 0 { String::new() } else { number.to_string() };
        let line = format!(
            "{:<width$}  {:>9}  {:>7}  {total:>9}  {mean:>9}  {longest:>9}  {:>15}",
            row.name,
            row.calls,
            or_none(row.failed),
            or_none(row.bytes)
        );
        table.push_str(line.trim_end());
        table.push('\n');
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_adds_up() {
        const MEMBERS: &[&str] = &["read", "stat", "init"];
        let slot = |subject: &str| Slot {
            subject: subject.to_owned(),
            functions: vec![1; 3],
            members: MEMBERS,
            counts: (0..3).map(|_| Count::default()).collect(),
        };
        let slots = [slot("a://"), slot("b://"), slot("a://")];
        slots[0].counts[0].add(1_000, false, 4096);
        slots[2].counts[0].add(3_000, true, 4);
        slots[1].counts[1].add(2_000_000, false, 0);
        let text = table(slots.iter(), "libx.so", 7, true).expect("calls");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "",
                "3 calls to libx.so by process 7; calls within calls are in both",
                "",
                "operation      calls   not OK      total       mean    longest            bytes",
                "b:// stat          1             2.00 ms    2.00 ms    2.00 ms",
                "a:// read          2        1    4.00 µs    2.00 µs    3.00 µs             4100",
            ]
        );
        clear(slots.iter());
        // Calls that load the plugin are not a reason for a table, except in the program itself.
        slots[0].counts[2].add(1_000, false, 0);
        assert_eq!(table(slots.iter(), "libx.so", 7, false), None);
        assert!(table(slots.iter(), "libx.so", 7, true).is_some());
        slots[1].counts[2].add(1_000, true, 0);
        assert!(table(slots.iter(), "libx.so", 7, false).is_some_and(|text| text.contains("init")));
        slots[1].counts[2].clear();
        slots[0].counts[1].add(1_000, false, 0);
        assert!(table(slots.iter(), "libx.so", 7, false).is_some_and(|text| text.contains("init")));
        clear(slots.iter());
        assert_eq!(table(slots.iter(), "libx.so", 7, true), None);
    }
}
