//! A report as one self-contained HTML file.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::bench::job::{Outcome, Row};
use crate::bench::report::{Part, Report, number, ratio};
use crate::bench::text::busy;
use crate::render::size;

/// If the longest time is more than this many times the shortest, bars are on a logarithmic scale.
const LINEAR: f64 = 50.0;

const STYLE: &str = include_str!("style.css");

pub(crate) fn page(report: &Report, baseline: Option<&Report>) -> String {
    let name = report.plugin.name();
    let facts = [
        ("measured", Some(format!("{}, each row for {} s", report.date, report.seconds))),
        ("machine", Some(report.machine.line())),
        ("note", busy(report)),
        ("file", Some(format!("{}, {}", report.plugin.shown(), size(report.plugin.size)))),
        ("SHA-256", Some(report.plugin.sha256.clone())),
        ("tool", Some(format!("cargo tf-plugin {}", report.tool))),
        ("baseline", baseline.map(|other| format!("{} of {}", other.plugin.name(), other.date))),
    ];
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (name) ": benchmark" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (name) }
                dl {
                    @for (name, value) in &facts {
                        @if let Some(value) = value { dt { (name) } dd { (value) } }
                    }
                }
                @for part in &report.parts { (self::part(part, baseline)) }
            }
        }
    };
    page.into_string()
}

fn part(part: &Part, baseline: Option<&Report>) -> Markup {
    let scale = Scale::of(part);
    let reference = part.reference.as_deref();
    let columns = 5 + if reference.is_some() { 2 } else { 0 } + usize::from(baseline.is_some());
    html! {
        h2 { (part.title()) }
        p {
            "Shorter is better" @if scale.logarithmic { ", on a logarithmic scale" } ". "
            span class="key" style="background:var(--bar)" {} (part.subject)
            @if let Some(reference) = reference {
                span class="key" style="background:var(--other)" {}
                (reference) ", the same operation in turns"
            }
        }
        div class="wide" {
            table class=(if reference.is_some() { "compared" } else { "alone" }) {
                thead {
                    tr {
                        th {} th { "ns/op" } th { "MB/s" } th class="spread" { "fastest to 90 %" }
                        @if let Some(reference) = reference {
                            th class="side" { (reference) } th { "ratio" }
                        }
                        @if baseline.is_some() { th { "baseline" } }
                        th class="chart" {
                            div class="scale" {
                                span { (time(scale.from)) } span { (time(scale.to)) }
                            }
                        }
                    }
                }
                tbody {
                    @for rows in part.rows.chunk_by(|row, next| row.group == next.group) {
                        @if !rows[0].group.is_empty() {
                            tr class="group" { td colspan=(columns) { (rows[0].group) } }
                        }
                        @for row in rows {
                            tr { td { (row.name) } (cells(part, row, baseline, &scale, columns - 1)) }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the cells of a row behind its name; text takes all `columns`.
fn cells(
    part: &Part,
    row: &Row,
    baseline: Option<&Report>,
    scale: &Scale,
    columns: usize,
) -> Markup {
    match &row.outcome {
        Outcome::Measured { timing, reference } => html! {
            td { (number(timing.median_ns)) }
            td { @if let Some(bytes) = row.bytes { (number(timing.megabytes(bytes))) } }
            td class="spread soft" {
                (number(timing.min_ns)) " to " (number(timing.p90_ns))
            }
            @if part.reference.is_some() {
                td class="side" {
                    @if let Some(other) = reference { (number(other.median_ns)) }
                }
                (cell(row.ratio(), 1.0, 3.0))
            }
            @if let Some(baseline) = baseline { (cell(baseline.since(part, row), 0.9, 1.2)) }
            td class="chart" {
                (scale.bars(timing.median_ns, reference.map(|other| other.median_ns)))
            }
        },
        Outcome::Absent { why } => html! { td class="why" colspan=(columns) { (why) } },
        Outcome::Failed { why } => {
            html! { td class="why failed" colspan=(columns) { "failed: " (why) } }
        }
    }
}

fn cell(value: Option<f64>, good: f64, careful: f64) -> Markup {
    let class = match value {
        Some(value) if value <= good => "good",
        Some(value) if value >= careful => "careful",
        _ => "",
    };
    html! { td class=(class) { (value.map(ratio).unwrap_or_default()) } }
}

/// The range of the bars of a part.
struct Scale {
    from: f64,
    to: f64,
    logarithmic: bool,
}

impl Scale {
    fn of(part: &Part) -> Self {
        let times = part.rows.iter().flat_map(|row| match &row.outcome {
            Outcome::Measured { timing, reference } => {
                [Some(timing.median_ns), reference.map(|other| other.median_ns)]
            }
            _ => [None; 2],
        });
        let times: Vec<f64> = times.flatten().collect();
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let most = times.iter().copied().fold(0.0, f64::max);
        if most == 0.0 {
            return Self { from: 0.0, to: 1.0, logarithmic: false };
        }
        if most / least <= LINEAR {
            return Self { from: 0.0, to: most, logarithmic: false };
        }
        // Whole powers of ten, so that the shortest bar is not empty.
        let power = |value: f64| 10_f64.powf(value);
        let (from, to) = (power((least * 0.9).log10().floor()), power(most.log10().ceil()));
        Self { from, to, logarithmic: true }
    }

    /// Returns the place of a time, from 0 to 100.
    fn at(&self, time: f64) -> f64 {
        let part = if self.logarithmic {
            (time / self.from).log10() / (self.to / self.from).log10()
        } else {
            time / self.to
        };
        (part * 100.0).clamp(0.0, 100.0)
    }

    fn bars(&self, time: f64, reference: Option<f64>) -> Markup {
        let place = |time| format!("{:.2}", self.at(time));
        let (top, height) = if reference.is_some() { (0.5, 5.5) } else { (2.0, 8.0) };
        let ticks = std::iter::successors(Some(self.from * 10.0), |tick| Some(tick * 10.0));
        html! {
            svg viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true" {
                @if self.logarithmic {
                    @for at in ticks.take_while(|tick| *tick < self.to * 0.99).map(place) {
                        line class="tick" x1=(at) x2=(at) y1="0" y2="12" {}
                    }
                }
                rect class="bar" y=(top) height=(height) width=(place(time)) {}
                @if let Some(reference) = reference {
                    rect class="other" y="7" height="4" width=(place(reference)) {}
                }
            }
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::tests::{report, row};

    #[test]
    fn the_page_needs_nothing_and_takes_no_text_for_html() {
        let mut report = report(vec![
            row("read <4 KiB>", 1234.0, Some(500.0)),
            Row { outcome: Outcome::Failed { why: "<script>".into() }, ..row("stat", 1.0, None) },
        ]);
        report.parts[0].reference = Some("file://".into());
        let page = page(&report, Some(&report));
        let texts = "lib&lt;a&gt;.so|read &lt;4 KiB&gt;|A &amp; B|failed: &lt;script&gt;|2.47×";
        for text in texts.split('|') {
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
