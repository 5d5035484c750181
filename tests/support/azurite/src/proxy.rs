//! Faults between a client and Azurite, each at one request.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a server may take to finish the request of a client that is gone.
const END: Duration = Duration::from_secs(10);

/// The fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection ends before the server has it.
    CutBefore,
    /// The server does it, but the connection ends without a response.
    CutAfter,
    /// The connection ends when the server has half of the request's body, as if the client was killed.
    CutRequest,
    /// The server says that it is busy, and does nothing.
    Busy,
    /// The server does it, but says that it has failed.
    FailedAfter,
    /// The end of the response does not arrive.
    CutBody,
    /// The server says that the credentials are not valid any more, and does nothing.
    Unauthorized,
    /// The server says that it does not support the request, and does nothing.
    NotSupported,
    /// The server copies, but says that this is not done yet.
    CopyPending,
    /// The server copies, but says that it gave up.
    CopyFailed,
}

impl Fault {
    /// All faults that may pass.
    pub const ALL: [Self; 5] =
        [Self::CutBefore, Self::CutAfter, Self::Busy, Self::FailedAfter, Self::CutBody];
}

/// A proxy in front of a server. It ends with the process.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    server: SocketAddr,
    /// Method and target of each request, and its `If-Match`.
    log: Vec<String>,
    /// The first request, how many, and what happens to them.
    faults: Vec<(usize, usize, Fault)>,
}

impl Proxy {
    /// Starts a proxy without faults, for a server at this endpoint.
    ///
    /// # Panics
    /// If there is no port, or the endpoint is not valid.
    #[must_use]
    pub fn new(endpoint: &str) -> Self {
        let server = endpoint.trim_start_matches("http://").parse().expect("host and port");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("a port");
        let state = Arc::new(Mutex::new(State { server, log: Vec::new(), faults: Vec::new() }));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                // Broken connections are its purpose.
                thread::spawn(move || drop(serve(client, &state)));
            }
        });
        Self { address, state }
    }

    /// Returns scheme, host and port.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Clears the log, and lets a fault hit `count` requests from `first` on, counted from 0.
    pub fn fault(&self, first: usize, count: usize, fault: Fault) {
        let mut state = self.lock();
        state.log.clear();
        state.faults = vec![(first, count, fault)];
    }

    /// Lets a fault hit one more request.
    pub fn also(&self, at: usize, fault: Fault) {
        self.lock().faults.push((at, 1, fault));
    }

    /// Clears the log and all faults.
    pub fn clear(&self) {
        let mut state = self.lock();
        state.log.clear();
        state.faults.clear();
    }

    /// Returns method and target of each request since the last `fault` or `clear`, and ` if-match: …` if it was sent.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        self.lock().log.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A head with its empty line, and the bytes after it.
struct Message {
    head: Vec<u8>,
    body: Vec<u8>,
}

fn serve(client: TcpStream, state: &Mutex<State>) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut requests = BufReader::new(client.try_clone()?);
    let server = TcpStream::connect(lock(state).server)?;
    server.set_nodelay(true)?;
    let mut responses = BufReader::new(server.try_clone()?);
    while let Some(request) = read(&mut requests, false)? {
        let head = String::from_utf8_lossy(&request.head);
        let mut lines = head.lines();
        let line = lines.next().unwrap_or_default().trim_end_matches(" HTTP/1.1");
        let condition = lines.find(|line| line.to_ascii_lowercase().starts_with("if-match:"));
        let line = [Some(line), condition].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let is_head = line.starts_with("HEAD ");
        let fault = {
            let mut state = lock(state);
            let number = state.log.len();
            state.log.push(line);
            let met =
                |(first, n, _): &&(usize, usize, Fault)| (*first..first + n).contains(&number);
            state.faults.iter().find(met).map(|(_, _, fault)| *fault)
        };
        match fault {
            Some(Fault::CutBefore) => return client.shutdown(Shutdown::Both),
            Some(Fault::CutRequest) => {
                (&server).write_all(&request.head)?;
                (&server).write_all(&request.body[..request.body.len() / 2])?;
                // A request without a body is complete. A check must not see the server while it carries it out.
                server.shutdown(Shutdown::Write)?;
                server.set_read_timeout(Some(END))?;
                let _ = io::copy(&mut responses, &mut io::sink());
                return client.shutdown(Shutdown::Both);
            }
            Some(Fault::Busy) => {
                refuse(&client, "503 Server Busy", "ServerBusy", is_head)?;
                continue;
            }
            Some(Fault::NotSupported) => {
                refuse(&client, "400 Bad Request", "UnsupportedOperation", is_head)?;
                continue;
            }
            Some(Fault::Unauthorized) => {
                refuse(&client, "401 Unauthorized", "InvalidAuthenticationInfo", is_head)?;
                continue;
            }
            _ => {}
        }
        (&server).write_all(&request.head)?;
        (&server).write_all(&request.body)?;
        let Some(mut response) = read(&mut responses, is_head)? else {
            return client.shutdown(Shutdown::Both);
        };
        match fault {
            Some(Fault::CutAfter) => return client.shutdown(Shutdown::Both),
            Some(Fault::FailedAfter) => {
                refuse(&client, "500 Internal Server Error", "OperationTimedOut", is_head)?;
            }
            Some(Fault::CutBody) => {
                let all = [response.head, response.body].concat();
                (&client).write_all(&all[..all.len() - all.len().min(20)])?;
                return client.shutdown(Shutdown::Both);
            }
            _ => {
                let status = match fault {
                    Some(Fault::CopyPending) => "x-ms-copy-status: pending",
                    Some(Fault::CopyFailed) => "x-ms-copy-status: failed",
                    _ => "x-ms-copy-status: success",
                };
                let head = String::from_utf8_lossy(&response.head);
                response.head = head.replace("x-ms-copy-status: success", status).into_bytes();
                (&client).write_all(&response.head)?;
                (&client).write_all(&response.body)?;
            }
        }
    }
    Ok(())
}

fn refuse(mut client: &TcpStream, status: &str, code: &str, is_head: bool) -> io::Result<()> {
    let body = format!(
        "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>a fault</Message></Error>"
    );
    let head = format!(
        "HTTP/1.1 {status}\r\nx-ms-error-code: {code}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes())?;
    if is_head { Ok(()) } else { client.write_all(body.as_bytes()) }
}

/// Reads the next message of a connection; `None` at its end.
fn read(from: &mut BufReader<TcpStream>, is_head: bool) -> io::Result<Option<Message>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if from.read_until(b'\n', &mut head)? == 0 {
            return Ok(None);
        }
    }
    let text = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let header = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    };
    let is_empty = is_head || text.starts_with("http/1.1 204") || text.starts_with("http/1.1 304");
    let mut body = Vec::new();
    if is_empty {
    } else if header("transfer-encoding") == Some("chunked") {
        loop {
            let start = body.len();
            from.read_until(b'\n', &mut body)?;
            let size = String::from_utf8_lossy(&body[start..]).trim().to_owned();
            let size = u64::from_str_radix(&size, 16).map_err(io::Error::other)?;
            from.by_ref().take(size + 2).read_to_end(&mut body)?;
            if size == 0 {
                break;
            }
        }
    } else if let Some(length) = header("content-length") {
        let length = length.parse().map_err(io::Error::other)?;
        from.by_ref().take(length).read_to_end(&mut body)?;
    }
    Ok(Some(Message { head, body }))
}
