//! A small HTTP server on loopback, in the place of services of AWS's and of proxies.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Method and target: `GET /path`.
    pub line: String,
    /// Names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Asked {
    /// A header's value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// The server; its threads end with the process.
pub struct Fake {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl fmt::Debug for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fake({})", self.address)
    }
}

impl Fake {
    /// Answers every request by what `answer` says: status and body. `None`: no response ever comes. Status 0: the
    /// connection is closed without one.
    ///
    /// # Panics
    /// If there is no port.
    pub fn start(answer: impl Fn(&Asked) -> Option<(u16, String)> + Send + Sync + 'static) -> Self {
        Self::start_with(String::new, answer)
    }

    /// Starts one whose answers have this header too, such as `date: Sun, 29 Nov 2026 00:00:00 GMT`.
    ///
    /// # Panics
    /// If there is no port.
    pub fn start_with(
        header: impl Fn() -> String + Send + Sync + 'static,
        answer: impl Fn(&Asked) -> Option<(u16, String)> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
        let address = listener.local_addr().expect("an address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&asked), Arc::new((header, answer)));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, &log, &answer.0, &answer.1));
            }
        });
        Self { address, asked }
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn serve(
    stream: TcpStream,
    log: &Mutex<Vec<Asked>>,
    header: &(dyn Fn() -> String + Send + Sync),
    answer: &(dyn Fn(&Asked) -> Option<(u16, String)> + Send + Sync),
) {
    let Ok(mut writer) = stream.try_clone() else { return };
    let mut reader = BufReader::new(stream);
    while let Some(asked) = read(&mut reader) {
        let reply = answer(&asked);
        let is_head = asked.line.starts_with("HEAD ");
        log.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
        let Some((status, body)) = reply else {
            std::thread::sleep(std::time::Duration::from_secs(60));
            return;
        };
        if status == 0 {
            return;
        }
        let kind = if body.starts_with('<') { "text/xml" } else { "application/json" };
        // The AWS SDK takes a response with this header for a token, whatever its status.
        let ttl = match status {
            200 => "x-aws-ec2-metadata-token-ttl-seconds: 21600\r\n",
            _ => "",
        };
        let header = match header() {
            header if header.is_empty() => header,
            header => header + "\r\n",
        };
        let text = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\n{ttl}{header}content-length: {}\r\n\r\n{}",
            body.len(),
            if is_head { "" } else { &*body }
        );
        if writer.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

fn read(reader: &mut impl BufRead) -> Option<Asked> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let line = line.trim_end().rsplit_once(' ')?.0.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { line, headers, body: String::from_utf8_lossy(&body).into_owned() })
}
