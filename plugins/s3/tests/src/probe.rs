//! A child process with a separate environment, which makes one call of the plugin and reports the result.

use crate::{Store, child, host};
use std::time::{Duration, Instant};
use tf_plugin_testing::filesystem::Host;

/// What came of it.
#[derive(Debug)]
pub struct Probe {
    /// The content, or the error's code and text.
    pub answer: Result<String, (String, String)>,
    /// What the child logged.
    pub log: String,
    /// How long the plugin took.
    pub took: Duration,
}

impl Probe {
    /// The content.
    ///
    /// # Panics
    /// If there was an error.
    #[track_caller]
    #[must_use]
    pub fn content(&self) -> &str {
        match &self.answer {
            Ok(content) => content,
            Err(error) => panic!("{error:?}\n{}", self.log),
        }
    }

    /// The error's text.
    ///
    /// # Panics
    /// If there was none, or one with another code.
    #[track_caller]
    #[must_use]
    pub fn error(&self, code: &str) -> &str {
        match &self.answer {
            Err((actual, text)) if actual == code => text,
            other => panic!("{other:?}, expected {code}\n{}", self.log),
        }
    }
}

const ANSWER: &str = "PROBE-ANSWER";

/// Whether this is the child, which has done its work then: the test returns at once.
#[must_use]
pub fn is_child() -> bool {
    let Some(role) = child::role() else { return false };
    tf_fs_plugin::logging::init();
    let start = Instant::now();
    let mut answer = Ok(Vec::new());
    for uri in role.split(' ') {
        answer = read(host(), uri);
    }
    let took = start.elapsed().as_millis();
    match answer {
        Ok(content) => println!("\n{ANSWER} {took} ok {}", content.escape_ascii()),
        Err(error) => println!(
            "\n{ANSWER} {took} {:?} {}",
            error.code(),
            format!("{error:#}").replace('\n', "\\n")
        ),
    }
    true
}

fn read(host: &Host, uri: &str) -> tf_fs_plugin::Result<Vec<u8>> {
    // `later:` waits for the credentials to grow old enough to be looked at once more, and reads by eight threads at once.
    if let Some(uri) = uri.strip_prefix("later:") {
        std::thread::sleep(Duration::from_millis(1_200));
        return std::thread::scope(|threads| {
            let read = [(); 8].map(|()| threads.spawn(|| host.read_file(uri)));
            let all = read.map(|thread| thread.join().expect("a read does not panic"));
            all.into_iter().collect::<tf_fs_plugin::Result<Vec<_>>>()
        })
        .map(|all| all.concat());
    }
    // `both:` reads two names at once, with a `,` between them.
    if let Some((one, other)) = uri.strip_prefix("both:").and_then(|uris| uris.split_once(',')) {
        return std::thread::scope(|threads| {
            let one = threads.spawn(|| host.read_file(one));
            let other = host.read_file(other)?;
            Ok([one.join().expect("a read does not panic")?, other].concat())
        });
    }
    // `append:` waits as long, and asks for the length first: by HEAD.
    if let Some(uri) = uri.strip_prefix("append:") {
        std::thread::sleep(Duration::from_millis(1_200));
        let mut file = host.new_appendable_file(uri)?;
        file.append(b"!")?;
        file.close()?;
        return host.read_file(uri);
    }
    if let Some(uri) = uri.strip_prefix("put:") {
        return host.write_file(uri, b"x").map(|()| Vec::new());
    }
    // `all:` makes each kind of request, and reads a file that is a copy of a large one.
    if let Some(uri) = uri.strip_prefix("all:") {
        let below = |name: &str| format!("{uri}-all/{name}");
        host.get_children(uri.rsplit_once('/').expect("a key").0)?;
        host.create_dir(below(""))?;
        host.write_file(below("large"), vec![b'x'; 20 << 20])?;
        let mut file = host.new_appendable_file(below("large"))?;
        file.append(b"!")?;
        file.close()?;
        host.copy_file(uri, below("small"))?;
        host.delete_file(below("small"))?;
        host.rename_file(below("large"), format!("{uri}-renamed"))?;
        host.write_file(below("left"), b"x")?;
        host.delete_recursively(below("")).map_err(|left| left.error)?;
        return host.read_file(format!("{uri}-renamed"));
    }
    host.read_file(uri)
}

/// Runs the test of this name as a child that reads these names, separated by spaces, one after the other; the result
/// is the last one's. `change` gets the environment that leads to `store`, but for variables that are `None`.
///
/// # Panics
/// If the child does not answer.
#[must_use]
pub fn probe(test: &str, uris: &str, store: &Store, change: &[(&str, Option<&str>)]) -> Probe {
    let mut command = child::again(test, uris, store);
    for (name, value) in change {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.output().expect("the child runs");
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(ANSWER));
    let line =
        line.unwrap_or_else(|| panic!("no answer, {}:\n{text}\n{log}", output.status)).trim_start();
    let mut parts = line.splitn(3, ' ');
    let took = parts.next().and_then(|took| took.parse().ok()).expect("a time");
    let kind = parts.next().unwrap_or_default().to_owned();
    let rest = parts.next().unwrap_or_default().to_owned();
    let answer = if kind == "ok" { Ok(rest) } else { Err((kind, rest)) };
    Probe { answer, log, took: Duration::from_millis(took) }
}
