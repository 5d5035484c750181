//! The tables of conformance cases, which the book has and the repository has not: they are made of the cases' lists when
//! the book is built.

use std::fmt::Write as _;
use tf_plugin_conformance_tests::Defect;
use tf_plugin_conformance_tests::findings::{Findings, Noticed};

/// A page's line for a table: `<!-- cases: NAME -->`.
const MARK: (&str, &str) = ("<!-- cases: ", " -->");

/// How many cases the book names for a defect.
const NAMED: usize = 3;

/// A case, as a table shows it: group, name, what it checks, why.
type Row = (String, &'static str, &'static str, &'static str);

/// A page with its tables.
pub(crate) fn filled(page: &str) -> String {
    let (begin, end) = MARK;
    let mut parts = page.split(begin);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(end).expect("the line ends");
        out += &table(name);
        out += rest;
    }
    out
}

fn table(name: &str) -> String {
    use tf_plugin_testing::filesystem::InTensorFlow;
    let in_tensorflow =
        |cases: &[&'static tf_plugin_testing::filesystem::TensorFlowCase]| -> Vec<Row> {
            cases
                .iter()
                .map(|case| (case.group.to_owned(), case.name, case.checks, case.why))
                .collect()
        };
    match name {
        "filesystems" => with_defects(&filesystems(), &Findings::read("filesystems")),
        "python" => {
            with_defects(&in_tensorflow(InTensorFlow::all_from_python()), &Findings::read("python"))
        }
        "c" => with_defects(&in_tensorflow(InTensorFlow::all_in_c()), &Findings::read("c")),
        "devices" => devices(),
        "ops" => ops(),
        _ => panic!("there is no table `{name}`"),
    }
}

fn filesystems() -> Vec<Row> {
    let cases = tf_plugin_testing::filesystem::Case::all().iter();
    let rows = cases.map(|case| {
        let of = if case.group().is_of_the_header() { " (header)" } else { "" };
        (format!("{}{of}", case.group().title()), case.name(), case.checks(), case.why())
    });
    rows.collect()
}

/// The cases, each with its defect, and the defects.
fn with_defects(rows: &[Row], findings: &Findings) -> String {
    let mut text = format!("{} cases, {} defects.\n", rows.len(), findings.0.len());
    let own =
        |name: &str| findings.own_of(name).map_or_else(String::new, |found| format!("`{found:?}`"));
    grouped(&mut text, 2, rows, Some(&own));
    text +=
        "\n## Defects\n\n| Defect | What is wrong | Caught by (among others) |\n|---|---|---|\n";
    for noticed in &findings.0 {
        let what = Defect::ALL.iter().find(|(defect, _)| *defect == noticed.defect);
        let names: Vec<_> =
            Noticed::cases(noticed).take(NAMED).map(|name| format!("`{name}`")).collect();
        let what = what.map_or("", |(_, what)| what);
        let _ = writeln!(text, "| `{:?}` | {what} | {} |", noticed.defect, names.join(", "));
    }
    text
}

/// A table for each group of cases, with a last column if there is one.
fn grouped(text: &mut String, level: usize, rows: &[Row], last: Option<&dyn Fn(&str) -> String>) {
    let mut before = "";
    for (group, name, checks, why) in rows {
        if before != group {
            before = group;
            let (title, line) = if last.is_some() { (" Catches |", "---|") } else { ("", "") };
            let _ = write!(
                text,
                "\n{} {group}\n\n| Case | What it checks | Why |{title}\n|---|---|---|{line}\n",
                "#".repeat(level)
            );
        }
        let last = last.map_or_else(String::new, |last| format!(" {} |", last(name)));
        let _ = writeln!(text, "| `{name}` | {} | {why} |{last}", checks.replace('|', "\\|"));
    }
}

/// The defect of each device, and the case that finds it.
macro_rules! defects_of_devices {
    ($($name:ident $text:literal => $case:ident,)*) => {
        &[$(($text, stringify!($case)),)*]
    };
}

const DEFECTS_OF_DEVICES: &[(&str, &str)] =
    tf_plugin_conformance_tests::device_defects!(defects_of_devices);

/// The defect of each op, and the cases that find it.
macro_rules! defects_of_ops {
    ($($name:ident $text:literal => $($case:ident)+;)*) => {
        &[$(($text, &[$(stringify!($case),)+]),)*]
    };
}

const DEFECTS_OF_OPS: &[(&str, &[&str])] = tf_plugin_conformance_tests::op_defects!(defects_of_ops);

fn ops() -> String {
    use tf_plugin_testing::ops::{InTensorFlow, TensorFlowCase};
    let row = |case: &&'static TensorFlowCase| -> Row {
        (case.group.to_owned(), case.name, case.checks, case.why)
    };
    let rows: Vec<Row> = InTensorFlow::all_from_python().iter().map(row).collect();
    let mut text = format!("{} cases, {} defects.\n", rows.len(), DEFECTS_OF_OPS.len());
    grouped(&mut text, 2, &rows, None);
    text += "\n## Defects\n\n| Defect | Caught by |\n|---|---|\n";
    for (what, cases) in DEFECTS_OF_OPS {
        let cases: Vec<_> = cases.iter().map(|case| format!("`{case}`")).collect();
        let _ = writeln!(text, "| {what} | {} |", cases.join(", "));
    }
    text
}

fn devices() -> String {
    use tf_plugin_testing::device::{Case, InTensorFlow};
    let rows: Vec<Row> = Case::all()
        .iter()
        .map(|case| (case.group().title().to_owned(), case.name(), case.checks(), case.why()))
        .collect();
    let mut text = format!("{} cases, {} defects.\n", rows.len(), DEFECTS_OF_DEVICES.len());
    grouped(&mut text, 2, &rows, None);
    let (python, c) = (InTensorFlow::all_from_python(), InTensorFlow::all_in_c());
    let _ = write!(
        text,
        "\n## In real TensorFlow\n\n`cargo tf-plugin test` runs {} more cases in each TensorFlow: {} from Python, and {} in \
         the C library, in a process without Python. The cases about kernels compare the plugin's kernels with the CPU's, \
         for each type that a kernel is registered for. A kernel that the plugin does not have is skipped, with the \
         reason. After the last case the process must exit cleanly.\n",
        python.len() + c.len(),
        python.len(),
        c.len()
    );
    for (title, cases) in [("From Python", python), ("In C", c)] {
        let row = |case: &&'static tf_plugin_testing::device::TensorFlowCase| -> Row {
            (title.to_owned(), case.name, case.checks, case.why)
        };
        grouped(&mut text, 3, &cases.iter().map(row).collect::<Vec<_>>(), None);
    }
    text += "\n## Defects\n\n| Defect | Caught by |\n|---|---|\n";
    for (what, case) in DEFECTS_OF_DEVICES {
        let _ = writeln!(text, "| {what} | `{case}` |");
    }
    text
}
