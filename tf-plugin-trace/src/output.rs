//! Calls as lines, and as events of Chrome's trace event format.

use std::cell::Cell;
use std::fmt::Write as _;

use crate::abi::system::{self, Sink};
use crate::call::Call;
use crate::settings::Settings;

pub(crate) struct Event<'a> {
    pub(crate) subject: &'a str,
    pub(crate) operation: &'a str,
    pub(crate) call: &'a Call,
    /// Nanoseconds since the program began.
    pub(crate) start: u64,
    pub(crate) took: u64,
    pub(crate) process: u32,
    pub(crate) thread: u32,
}

static CALLS: Sink = Sink::new();
static CHROME: Sink = Sink::new();

/// Writes a call to each output: at once, so that nothing is lost with the process.
pub(crate) fn write(settings: &Settings, event: &Event<'_>) {
    if let Some(file) = &settings.calls {
        if file == "-" {
            system::write_stderr(&line(event, settings.process, settings.colour));
        } else {
            CALLS.append(file, line(event, settings.process, false).as_bytes());
        }
    }
    if let Some(file) = &settings.chrome {
        let mut text = String::new();
        thread_local! {
            // The process for which this thread has written its name: a child has to write it again.
            static NAMED: Cell<u32> = const { Cell::new(0) };
        }
        if NAMED.replace(event.process) != event.process {
            thread_name(&mut text, event.process, event.thread, &system::thread_name());
        }
        chrome(&mut text, event);
        CHROME.append(file, text.as_bytes());
    }
}

/// Formats one line, with its end.
fn line(event: &Event<'_>, program: u32, colour: bool) -> String {
    let (dim, bad, plain) =
        if colour { ("\u{1b}[2m", "\u{1b}[33m", "\u{1b}[0m") } else { ("", "", "") };
    let seconds = event.start / 1_000_000_000;
    let micros = event.start % 1_000_000_000 / 1_000;
    let thread =
        if event.thread == event.process { "main".to_owned() } else { event.thread.to_string() };
    let thread = if event.process == program || program == 0 {
        thread
    } else {
        format!("{}/{thread}", event.process)
    };
    let call = format!("{} {}", event.subject, event.operation);
    let call = call.trim_start();
    let mut line = format!(
        "{dim}{seconds:>4}.{micros:06}  {thread:<12}{plain}  {took:>9}  {call}",
        took = duration(event.took)
    );
    let result = event.call.result();
    if !event.call.arguments.is_empty() || !result.is_empty() {
        let missing = 32usize.saturating_sub(call.chars().count());
        line.extend(std::iter::repeat_n(' ', missing));
    }
    if !event.call.arguments.is_empty() {
        let _ = write!(line, "  {}", event.call.arguments);
    }
    if !result.is_empty() {
        let colour = if event.call.error.is_some() { bad } else { "" };
        let plain = if colour.is_empty() { "" } else { plain };
        let _ = write!(line, "  {colour}→ {result}{plain}");
    }
    line.push('\n');
    line
}

/// Formats nanoseconds with three digits and a unit.
pub(crate) fn duration(nanoseconds: u64) -> String {
    let (unit, divisor) = match nanoseconds {
        0..1_000 => return format!("{nanoseconds} ns"),
        1_000..999_500 => ("µs", 1e3),
        999_500..999_500_000 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    // Durations have fewer digits than a `f64`.
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let number = nanoseconds as f64 / divisor;
    let digits = if number < 9.995 { 2 } else { usize::from(number < 99.95) };
    format!("{number:.digits$} {unit}")
}

/// Writes an event for the time of the call, behind the event before it.
fn chrome(to: &mut String, event: &Event<'_>) {
    let Event { subject, operation, call, start, took, process, thread } = event;
    let _ = write!(to, ",\n{{\"name\":");
    json(to, operation);
    to.push_str(",\"cat\":");
    json(to, if subject.is_empty() { "plugin" } else { subject });
    let micros = |nanoseconds: u64| format!("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
    let _ = write!(
        to,
        ",\"ph\":\"X\",\"ts\":{},\"dur\":{},\"pid\":{process},\"tid\":{thread},\"args\":{{",
        micros(*start),
        micros(*took)
    );
    let mut separator = "";
    for (name, text) in [("arguments", call.arguments.as_str()), ("result", &call.result())] {
        if !text.is_empty() {
            let _ = write!(to, "{separator}\"{name}\":");
            json(to, text);
            separator = ",";
        }
    }
    if call.bytes != 0 {
        let _ = write!(to, "{separator}\"bytes\":{}", call.bytes);
    }
    to.push_str("}}");
}

fn thread_name(to: &mut String, process: u32, thread: u32, name: &str) {
    let _ = write!(
        to,
        ",\n{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{process},\"tid\":{thread},\"args\":{{\"name\":"
    );
    json(to, name);
    to.push_str("}}");
}

fn json(to: &mut String, text: &str) {
    to.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => to.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(to, "\\u{:04x}", u32::from(c));
            }
            c => to.push(c),
        }
    }
    to.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> Call {
        let mut call = Call { is_written: true, has_status: true, ..Call::default() };
        call.argument(format_args!("a://\"\\ä\u{7}b"));
        call.bytes(9);
        call
    }

    fn event(call: &Call) -> Event<'_> {
        Event {
            subject: "a://",
            operation: "read",
            call,
            start: 12_000_345_678,
            took: 4_321,
            process: 5,
            thread: 6,
        }
    }

    #[test]
    fn durations_have_three_digits() {
        let short = [0, 999, 1_000, 9_996, 99_960].map(duration);
        assert_eq!(short, ["0 ns", "999 ns", "1.00 µs", "10.0 µs", "100 µs"]);
        let long = [999_499, 999_500, 12_345_678, 999_500_000, 61_000_000_000].map(duration);
        assert_eq!(long, ["999 µs", "1.00 ms", "12.3 ms", "1.00 s", "61.0 s"]);
    }

    #[test]
    fn a_line_says_when_who_how_long_what_and_what_came_of_it() {
        let mut call = call();
        assert_eq!(
            line(&event(&call), 5, false),
            "  12.000345  6               4.32 µs  a:// read                         a://\"\\ä\u{7}b  → 9 bytes\n"
        );
        let mut of_a_child = event(&call);
        of_a_child.thread = 5;
        assert!(line(&of_a_child, 4, false).starts_with("  12.000345  5/main     "));
        assert!(line(&of_a_child, 5, false).starts_with("  12.000345  main       "));
        call.failed("NOT_FOUND: x".to_owned());
        let coloured = line(&event(&call), 5, true);
        assert!(coloured.contains("\u{1b}[33m→ NOT_FOUND: x; 9 bytes\u{1b}[0m"), "{coloured:?}");
        let bare = Call { is_written: true, ..Call::default() };
        assert!(line(&event(&bare), 5, false).ends_with("  a:// read\n"));
        // The headings are above their columns.
        let heading = |name| crate::settings::HEADINGS.find(name).expect("it is there");
        let line = line(&event(&bare), 5, false).replace('µ', "u");
        let line = line.as_str();
        assert_eq!(line.find("6  "), Some(heading("thread")));
        assert_eq!(line.find("a://"), Some(heading("call")));
    }

    #[test]
    fn an_event_is_json_behind_the_one_before() {
        let call = call();
        let mut text = "[{}".to_owned();
        thread_name(&mut text, 5, 6, "main \"x\"");
        chrome(&mut text, &event(&call));
        text.push(']');
        let events: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(
            events,
            serde_json::json!([{},
                {"name": "thread_name", "ph": "M", "pid": 5, "tid": 6, "args": {"name": "main \"x\""}},
                {"name": "read", "cat": "a://", "ph": "X", "ts": 12_000_345.678, "dur": 4.321, "pid": 5, "tid": 6,
                 "args": {"arguments": "a://\"\\ä\u{7}b", "result": "9 bytes", "bytes": 9}},
            ])
        );
    }
}
