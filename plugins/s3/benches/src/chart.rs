//! A bar chart of the shaped figures, as SVG.

use std::fmt::Write as _;

use crate::clients::Client;
use crate::figures::{Figures, Network};
use crate::rows::ROWS;

const WIDTH: f64 = 980.0;
/// Where the bars begin.
const LEFT: f64 = 330.0;
/// Where the scale ends; figures stand to the right of the bars.
const RIGHT: f64 = 890.0;
const TOP: f64 = 96.0;
const ROW: f64 = 30.0;
const BAR: f64 = 11.0;

const STYLE: &str = "
    .back { fill: #ffffff } .text { fill: #1f2933 } .faint { fill: #5b6472 } .grid { stroke: #dde2e8 }
    .plugin { fill: #c2571a } .peer { fill: #7b8794 }
    @media (prefers-color-scheme: dark) {
      .back { fill: #0d1117 } .text { fill: #e6edf3 } .faint { fill: #9aa4b0 } .grid { stroke: #2d333b }
      .plugin { fill: #f08a4b } .peer { fill: #8b98a5 }
    }
  ";

/// Seconds as a place on the logarithmic scale from 10 ms to 1,000 s.
fn place(seconds: f64) -> f64 {
    let decades = seconds.log10() + 2.0;
    LEFT + (RIGHT - LEFT) * (decades / 5.0).clamp(0.0, 1.0)
}

fn figure(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 0.0995 => format!("{:.0} ms", seconds * 1e3),
        seconds if seconds < 0.995 => format!("{seconds:.2} s"),
        seconds if seconds < 9.95 => format!("{seconds:.1} s"),
        seconds => format!("{seconds:.0} s"),
    }
}

/// Markdown's backquotes are not for pictures, and XML has letters of its own.
fn plain(title: &str) -> String {
    // In the tables that row is below the other.
    let title = title.replace("– with ", "TFRecordDataset, ").replace('`', "");
    title.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The chart of all rows that both the plugin and tensorflow-io have run with the shaped network.
#[must_use]
pub fn svg(figures: &Figures) -> String {
    let rows: Vec<(&str, f64, f64)> = ROWS
        .iter()
        .filter_map(|row| {
            let median = |client| {
                Some(
                    figures
                        .figure(row.run, Network::Shaped, client, |sample| sample.seconds)?
                        .median,
                )
            };
            Some((row.title, median(Client::Plugin)?, median(Client::TensorflowIo)?))
        })
        .collect();
    let bottom = TOP + ROW * rows.len() as f64;
    let height = bottom + 52.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" font-family=\"-apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\" \
         role=\"img\" aria-label=\"Seconds of operations on s3:// in TensorFlow, this plugin and tensorflow-io\">\n  \
         <style>{STYLE}</style>\n  <rect class=\"back\" width=\"{WIDTH}\" height=\"{height}\"/>\n  \
         <text class=\"text\" x=\"20\" y=\"32\" font-size=\"18\" font-weight=\"600\">s3:// in TensorFlow: \
         seconds of one operation, lower is better</text>\n  \
         <text class=\"faint\" x=\"20\" y=\"54\" font-size=\"13\">30 ms to the first byte, 80 MB/s for each \
         connection; medians; logarithmic scale</text>\n"
    );
    // Writing into a string does not fail.
    for (name, class, x) in
        [("this plugin", "plugin", LEFT), ("tensorflow-io 0.37.1", "peer", LEFT + 130.0)]
    {
        let _ = writeln!(
            svg,
            "  <rect class=\"{class}\" x=\"{x}\" y=\"68\" width=\"14\" height=\"12\" rx=\"2\"/>\
             <text class=\"text\" x=\"{}\" y=\"79\" font-size=\"13\">{name}</text>",
            x + 20.0
        );
    }
    for (seconds, label) in [
        (0.01, "10 ms"),
        (0.1, "0.1 s"),
        (1.0, "1 s"),
        (10.0, "10 s"),
        (100.0, "100 s"),
        (1000.0, "1,000 s"),
    ] {
        let x = place(seconds);
        let _ = writeln!(
            svg,
            "  <line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{}\" y2=\"{bottom}\"/>\
             <text class=\"faint\" x=\"{x:.1}\" y=\"{}\" font-size=\"12\" text-anchor=\"middle\">{label}</text>",
            TOP - 4.0,
            bottom + 18.0
        );
    }
    let _ = writeln!(
        svg,
        "  <text class=\"faint\" x=\"{:.1}\" y=\"{}\" font-size=\"12\" text-anchor=\"middle\">time of one \
         operation</text>",
        (LEFT + RIGHT) / 2.0,
        bottom + 38.0
    );
    for (index, (title, plugin, peer)) in rows.iter().enumerate() {
        let y = TOP + ROW * index as f64;
        let _ = writeln!(
            svg,
            "  <text class=\"text\" x=\"{}\" y=\"{:.1}\" font-size=\"12.5\" text-anchor=\"end\">{}</text>",
            LEFT - 10.0,
            y + BAR + 5.0,
            plain(title)
        );
        for (seconds, class, y) in [(*plugin, "plugin", y + 1.0), (*peer, "peer", y + 2.0 + BAR)] {
            let end = place(seconds);
            let _ = writeln!(
                svg,
                "  <rect class=\"{class}\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"2\"/>\
                 <text class=\"faint\" x=\"{:.1}\" y=\"{:.1}\" font-size=\"11\">{}</text>",
                (end - LEFT).max(1.0),
                end + 5.0,
                y + BAR - 1.5,
                figure(seconds)
            );
        }
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenfold_time_is_the_same_way_further() {
        let step = place(0.1) - place(0.01);
        assert!((place(1.0) - place(0.1) - step).abs() < 1e-9);
        assert!((place(1000.0) - RIGHT).abs() < 1e-9);
        assert!((place(0.001) - LEFT).abs() < 1e-9, "it does not leave the picture");
    }

    #[test]
    fn titles_are_fit_for_xml() {
        assert_eq!(plain("– with `a<b>` & c"), "TFRecordDataset, a&lt;b&gt; &amp; c");
    }
}
