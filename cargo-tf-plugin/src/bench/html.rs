//! A report as one HTML file that needs nothing else.

use std::fmt::Write as _;

use crate::bench::Outcome;
use crate::bench::report::{Part, Report, megabytes, nanoseconds, ratio};
use crate::bench::text::busy;
use crate::render::size;

/// Where the longest is more than this many times as long as the shortest, bars are on a logarithmic scale.
const LINEAR: f64 = 50.0;

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1c2230; --soft: #5d6678; --line: #dfe3ea; --page: #ffffff; --card: #f6f7f9;
  --bar: #2f6fde; --other: #b4bccb; --good: #13703a; --careful: #9a5b00; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #9aa4b6; --line: #323a48; --page: #12161d;
  --card: #1a202a; --bar: #6ea2ff; --other: #59637a; --good: #5ccb8a; --careful: #f0b65a; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem 1rem 3rem; background: var(--page); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .75rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0; padding: .75rem 1rem;
  background: var(--card); border-radius: .5rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
p { color: var(--soft); margin: .25rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .5rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { color: var(--soft); font-weight: 500; font-size: .85em; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; white-space: normal; padding-left: 0; min-width: 15rem; }
tr.group td { color: var(--soft); font-size: .85em; padding-top: .9rem; }
td.why { text-align: left; white-space: pre-wrap; color: var(--soft); overflow-wrap: anywhere; }
td.failed { color: var(--bad); }
.soft { color: var(--soft); } .good { color: var(--good); } .careful { color: var(--careful); }
td.chart, th.chart { width: 30%; min-width: 9rem; padding-right: 0; }
svg { display: block; width: 100%; height: 1.1rem; }
.scale { display: flex; justify-content: space-between; }
.bar { fill: var(--bar); } .other { fill: var(--other); } .tick { stroke: var(--line); stroke-width: .3; }
.key { display: inline-block; width: .7rem; height: .7rem; border-radius: .15rem; margin: 0 .3rem 0 .8rem; }
@media (max-width: 66rem) { .compared .spread { display: none; } }
@media (max-width: 46rem) { .spread, .side { display: none; } th:first-child, td:first-child { min-width: 8rem; } th, td { padding: .25rem .35rem; } td.chart, th.chart { min-width: 5rem; width: auto; } }
";

/// The page.
pub(crate) fn page(report: &Report, baseline: Option<&Report>) -> String {
    let mut page = String::new();
    let name = escaped(&report.plugin.name());
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{name}: benchmark</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{name}</h1>\n<dl>\n"
    );
    let mut fact = |name: &str, value: &str| {
        let _ = writeln!(page, "<dt>{name}</dt><dd>{}</dd>", escaped(value));
    };
    fact("measured", &format!("{}, each row for {} s", report.date, report.seconds));
    fact("machine", &report.machine.line());
    if let Some(busy) = busy(report) {
        fact("note", &busy);
    }
    fact("file", &format!("{}, {}", report.plugin.shown(), size(report.plugin.size)));
    fact("SHA-256", &report.plugin.sha256);
    fact("tool", &format!("cargo tf-plugin {}", report.tool));
    if let Some(baseline) = baseline {
        fact("baseline", &format!("{} of {}", baseline.plugin.name(), baseline.date));
    }
    page.push_str("</dl>\n");
    for part in &report.parts {
        self::part(&mut page, part, baseline);
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn part(page: &mut String, part: &Part, baseline: Option<&Report>) {
    let scale = Scale::of(part);
    let _ = writeln!(page, "<h2>{}</h2>", escaped(&part.title()));
    let kind = if scale.logarithmic { ", on a logarithmic scale" } else { "" };
    let _ = write!(
        page,
        "<p>Shorter is better{kind}. <span class=\"key\" style=\"background:var(--bar)\"></span>{}",
        escaped(&part.subject)
    );
    if let Some(reference) = &part.reference {
        let _ = write!(
            page,
            "<span class=\"key\" style=\"background:var(--other)\"></span>{}, the same operation in turns",
            escaped(reference)
        );
    }
    let _ = write!(
        page,
        "</p>\n<div class=\"wide\"><table class=\"{}\">\n<thead><tr><th></th><th>ns/op</th><th>MB/s</th><th class=\"spread\">fastest to 90 %</th>",
        if part.reference.is_some() { "compared" } else { "alone" }
    );
    let mut columns = 5;
    if let Some(reference) = &part.reference {
        let _ = write!(page, "<th class=\"side\">{}</th><th>ratio</th>", escaped(reference));
        columns += 2;
    }
    if baseline.is_some() {
        page.push_str("<th>baseline</th>");
        columns += 1;
    }
    let _ = writeln!(
        page,
        "<th class=\"chart\"><div class=\"scale\"><span>{}</span><span>{}</span></div></th></tr></thead>\n<tbody>",
        time(scale.from),
        time(scale.to)
    );
    let mut group = "";
    for row in &part.rows {
        if row.group != group {
            group = &row.group;
            let _ = writeln!(
                page,
                "<tr class=\"group\"><td colspan=\"{columns}\">{}</td></tr>",
                escaped(group)
            );
        }
        let _ = write!(page, "<tr><td>{}</td>", escaped(&row.name));
        match &row.outcome {
            Outcome::Measured { timing, reference } => {
                let rate =
                    row.bytes.map_or_else(String::new, |bytes| megabytes(timing.megabytes(bytes)));
                let _ = write!(
                    page,
                    "<td>{}</td><td>{rate}</td><td class=\"spread soft\">{} to {}</td>",
                    nanoseconds(timing.median_ns),
                    nanoseconds(timing.min_ns),
                    nanoseconds(timing.p90_ns)
                );
                if part.reference.is_some() {
                    let other = reference.map(|other| nanoseconds(other.median_ns));
                    let _ = write!(page, "<td class=\"side\">{}</td>", other.unwrap_or_default());
                    cell(page, row.ratio(), 1.0, 3.0);
                }
                if let Some(baseline) = baseline {
                    cell(page, baseline.since(part, row), 0.9, 1.2);
                }
                let bars = scale.bars(timing.median_ns, reference.map(|other| other.median_ns));
                let _ = write!(page, "<td class=\"chart\">{bars}</td>");
            }
            Outcome::Absent { why } => {
                let _ = write!(
                    page,
                    "<td class=\"why\" colspan=\"{}\">{}</td>",
                    columns - 1,
                    escaped(why)
                );
            }
            Outcome::Failed { why } => {
                let _ = write!(
                    page,
                    "<td class=\"why failed\" colspan=\"{}\">failed: {}</td>",
                    columns - 1,
                    escaped(why)
                );
            }
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

fn cell(page: &mut String, value: Option<f64>, good: f64, careful: f64) {
    let class = match value {
        Some(value) if value <= good => "good",
        Some(value) if value >= careful => "careful",
        _ => "",
    };
    let value = value.map(ratio).unwrap_or_default();
    let _ = write!(page, "<td class=\"{class}\">{value}</td>");
}

/// What the bars of a part show.
struct Scale {
    from: f64,
    to: f64,
    logarithmic: bool,
}

impl Scale {
    fn of(part: &Part) -> Self {
        let times = part.rows.iter().filter_map(|row| match &row.outcome {
            Outcome::Measured { timing, reference } => {
                Some([Some(timing.median_ns), reference.map(|other| other.median_ns)])
            }
            _ => None,
        });
        let times: Vec<f64> = times.flatten().flatten().collect();
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let most = times.iter().copied().fold(0.0, f64::max);
        if most == 0.0 {
            return Self { from: 0.0, to: 1.0, logarithmic: false };
        }
        if most / least <= LINEAR {
            return Self { from: 0.0, to: most, logarithmic: false };
        }
        // Whole powers of ten; the shortest bar is still one.
        let power = |value: f64| 10_f64.powf(value);
        let (from, to) = (power((least * 0.9).log10().floor()), power(most.log10().ceil()));
        Self { from, to, logarithmic: true }
    }

    /// The place of a time, from 0 to 100.
    fn at(&self, time: f64) -> f64 {
        let part = if self.logarithmic {
            (time / self.from).log10() / (self.to / self.from).log10()
        } else {
            time / self.to
        };
        (part * 100.0).clamp(0.0, 100.0)
    }

    fn bars(&self, time: f64, reference: Option<f64>) -> String {
        let mut svg = String::from(
            "<svg viewBox=\"0 0 100 12\" preserveAspectRatio=\"none\" aria-hidden=\"true\">",
        );
        if self.logarithmic {
            let mut tick = self.from * 10.0;
            while tick < self.to * 0.99 {
                let at = self.at(tick);
                let _ = write!(
                    svg,
                    "<line class=\"tick\" x1=\"{at:.2}\" x2=\"{at:.2}\" y1=\"0\" y2=\"12\"/>"
                );
                tick *= 10.0;
            }
        }
        let height = if reference.is_some() { 5.5 } else { 8.0 };
        let top = if reference.is_some() { 0.5 } else { 2.0 };
        let _ = write!(
            svg,
            "<rect class=\"bar\" y=\"{top}\" height=\"{height}\" width=\"{:.2}\"/>",
            self.at(time)
        );
        if let Some(reference) = reference {
            let _ = write!(
                svg,
                "<rect class=\"other\" y=\"7\" height=\"4\" width=\"{:.2}\"/>",
                self.at(reference)
            );
        }
        svg.push_str("</svg>");
        svg
    }
}

/// A time with its unit.
fn time(nanoseconds: f64) -> String {
    let (value, unit) = match nanoseconds {
        value if value < 1e3 => (value, "ns"),
        value if value < 1e6 => (value / 1e3, "µs"),
        value if value < 1e9 => (value / 1e6, "ms"),
        value => (value / 1e9, "s"),
    };
    let digits = usize::from(value < 9.95 && value.fract() > 0.05);
    format!("{value:.digits$} {unit}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Row;
    use crate::bench::report::tests::{report, row};

    #[test]
    fn the_page_needs_nothing_and_takes_no_text_for_html() {
        let mut report = report(vec![
            row("read <4 KiB>", 1234.0, Some(500.0)),
            Row { outcome: Outcome::Failed { why: "<script>".into() }, ..row("stat", 1.0, None) },
        ]);
        report.parts[0].reference = Some("file://".into());
        let page = page(&report, Some(&report));
        for text in [
            "lib&lt;a&gt;.so",
            "read &lt;4 KiB&gt;",
            "A &amp; B",
            "failed: &lt;script&gt;",
            "2.47×",
        ] {
            assert!(page.contains(text), "`{text}` is missing in {page}");
        }
        for text in ["<script", "http:", "https:", "src=", "@import", "url("] {
            assert!(!page.contains(text), "{text}");
        }
        for tag in ["table", "tr", "td", "svg", "div", "tbody", "body", "html"] {
            let open = page.matches(&format!("<{tag}>")).count()
                + page.matches(&format!("<{tag} ")).count();
            assert_eq!(open, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }

    #[test]
    fn bars_are_logarithmic_where_the_times_are_far_apart() {
        let near =
            Scale::of(&report(vec![row("a", 10.0, None), row("b", 40.0, Some(20.0))]).parts[0]);
        assert!(!near.logarithmic);
        assert_eq!([10.0, 20.0, 40.0].map(|time| near.at(time)), [25.0, 50.0, 100.0]);
        let far = Scale::of(&report(vec![row("a", 20.0, None), row("b", 20_000.0, None)]).parts[0]);
        assert!(far.logarithmic);
        assert_eq!((time(far.from), time(far.to)), ("10 ns".into(), "100 µs".into()));
        assert!((far.at(1000.0) - 50.0).abs() < 1e-9, "{}", far.at(1000.0));
        assert!(far.at(20.0) > 0.0);
        assert_eq!([1.5e3, 2e6, 3.2e9].map(time), ["1.5 µs", "2 ms", "3.2 s"]);
    }
}
