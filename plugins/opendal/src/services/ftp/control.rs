//! A connection to a server of FTP: commands, replies, and the connections for data.

use crate::place::Place;
use crate::settings::Settings;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tf_fs_object_store::config::Secret;
use tf_fs_object_store::http::{HttpError, printable};
use tf_fs_object_store::{ErrorKind, RequestError, StoreError as _};
use tf_fs_plugin::prelude::*;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The port of FTP over TLS from the first byte on.
const IMPLICIT: u16 = 990;
/// Bytes of the longest line of a reply.
const LONGEST: u64 = 64 << 10;
/// Lines of the longest reply.
const LINES: usize = 1000;

/// A connection, with TLS or without.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Where to connect, and as whom.
pub(super) struct Login {
    pub(super) endpoint: String,
    host: String,
    port: u16,
    user: String,
    password: Option<Secret>,
    tls: Option<Arc<ClientConfig>>,
    /// Whether TLS begins with the first byte.
    is_implicit: bool,
    connect_timeout: Duration,
    /// How long there may be no progress.
    stall: Duration,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Login {
    pub(super) fn new(place: &Place, settings: &Settings) -> Result<Self> {
        let (host, port) = place.address();
        let tls = super::super::tls(settings);
        let tls = (place.scheme == "ftps").then(|| tls.resumable_config().map(Arc::new));
        let user = settings.user.clone().filter(|_| place.is_known);
        Ok(Self {
            endpoint: place.origin(),
            host: host.to_owned(),
            port,
            user: user.unwrap_or_else(|| "anonymous".to_owned()),
            password: settings.password.clone().filter(|_| place.is_known),
            tls: tls.transpose()?,
            is_implicit: settings.implicit_tls || port == IMPLICIT,
            connect_timeout: settings.connect_timeout,
            stall: settings.engine.stall_timeout,
        })
    }

    /// Returns the failure of a connection.
    pub(super) fn broken(
        &self,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> HttpError {
        HttpError::Transport(self.endpoint.clone(), error.into())
    }

    /// Waits for progress of a connection. A server may be silent for good: pyftpdlib replies nothing to an upload that its
    /// disk has no room for.
    pub(super) async fn progress<T>(
        &self,
        progress: impl Future<Output = io::Result<T>>,
    ) -> Result<T, HttpError> {
        match tokio::time::timeout(self.stall, progress).await {
            Ok(done) => done.map_err(|error| self.broken(error)),
            Err(_) => Err(HttpError::Stalled(self.endpoint.clone(), self.stall)),
        }
    }

    async fn encrypted(&self, tcp: TcpStream) -> Result<Box<dyn Stream>, HttpError> {
        let Some(tls) = &self.tls else { return Ok(Box::new(tcp)) };
        let name = ServerName::try_from(self.host.clone()).map_err(|error| self.broken(error))?;
        let connected = TlsConnector::from(Arc::clone(tls)).connect(name, tcp).await;
        Ok(Box::new(connected.map_err(|error| self.broken(error))?))
    }

    async fn connect(
        &self,
        address: impl tokio::net::ToSocketAddrs,
    ) -> Result<TcpStream, HttpError> {
        let connected = tokio::time::timeout(self.connect_timeout, TcpStream::connect(address));
        let connected = connected.await.unwrap_or_else(|_| {
            Err(io::Error::new(io::ErrorKind::TimedOut, "no connection in time"))
        });
        let tcp = connected.map_err(|error| self.broken(error))?;
        tcp.set_nodelay(true).map_err(|error| self.broken(error))?;
        Ok(tcp)
    }
}

/// What a server says.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) code: u16,
    pub(super) lines: Vec<String>,
}

impl Reply {
    /// Returns the text of its last line, for messages.
    pub(super) fn text(&self) -> String {
        let last = self.lines.last().map_or("", String::as_str);
        printable(last, 200)
    }

    /// Returns itself if it has one of these codes.
    ///
    /// # Errors
    /// The refusal otherwise.
    pub(super) fn expect(self, codes: &[u16]) -> Result<Self, HttpError> {
        if codes.contains(&self.code) { Ok(self) } else { Err(refused(&self)) }
    }
}

/// Returns the error of a reply. That of a path may mean that nothing is there.
pub(super) fn refused(reply: &Reply) -> HttpError {
    let (code, text) = (reply.code, reply.text());
    let (kind, advice) = match code {
        421 => (ErrorKind::Transient, "it ends the connection"),
        425 | 426 | 450 | 451 => (ErrorKind::Transient, "it may pass"),
        452 | 552 => (ErrorKind::Permanent, "free space on the server, or raise the user's quota"),
        500..=504 => (ErrorKind::Unsupported, "the server does not support it"),
        530 => (ErrorKind::Denied, "set user and password beside the url of this server"),
        532 => (ErrorKind::Denied, "the server wants an account, which is not supported"),
        550 | 553 => (
            ErrorKind::Permanent,
            "look at the rights of the user on the server, and what is at that path",
        ),
        200..=399 => {
            return HttpError::invalid(&format!("FTP {code} does not answer this command: {text}"));
        }
        _ => (ErrorKind::Permanent, "look at the server's log"),
    };
    let error = RequestError::new(kind, format!("FTP {code}: \"{text}\"; {advice}"));
    HttpError::from(match code {
        530 => error.with_code(Code::Unauthenticated),
        452 | 552 => error.with_code(Code::ResourceExhausted),
        550 | 553 => error.with_code(Code::FailedPrecondition),
        _ => error,
    })
}

/// A connection for commands, whose user is logged in.
pub(super) struct Control {
    stream: BufReader<Box<dyn Stream>>,
    peer: SocketAddr,
    pub(super) login: Arc<Login>,
    /// The directory of the user.
    pub(super) home: String,
    /// Whether the server lists files with their facts.
    pub(super) has_facts: bool,
    /// Whether it has extended passive mode.
    is_extended: bool,
}

impl Control {
    /// Connects, and logs in.
    pub(super) async fn new(login: &Arc<Login>) -> Result<Self, HttpError> {
        let tcp = login.connect((&*login.host, login.port)).await?;
        let peer = tcp.peer_addr().map_err(|error| login.broken(error))?;
        let stream = match (&login.tls, login.is_implicit) {
            (Some(_), false) => {
                let mut plain = BufReader::new(tcp);
                receive(&mut plain, login).await?.expect(&[220])?;
                send(&mut plain, login, "AUTH TLS").await?;
                receive(&mut plain, login).await?.expect(&[234])?;
                // What is there already did not come through TLS.
                if !plain.buffer().is_empty() {
                    return Err(HttpError::invalid("it sent bytes before TLS began"));
                }
                login.encrypted(plain.into_inner()).await?
            }
            _ => login.encrypted(tcp).await?,
        };
        let mut control = Self {
            stream: BufReader::new(stream),
            peer,
            login: Arc::clone(login),
            home: String::new(),
            has_facts: false,
            is_extended: true,
        };
        if login.tls.is_none() || login.is_implicit {
            control.reply().await?.expect(&[220])?;
        }
        if login.tls.is_some() {
            control.command("PBSZ 0").await?.expect(&[200])?;
            control.command("PROT P").await?.expect(&[200])?;
        }
        let password = login.password.as_ref().map_or("anonymous@", Secret::expose);
        if control.command(&format!("USER {}", line(&login.user)?)).await?.expect(&[230, 331])?.code
            == 331
        {
            control.command(&format!("PASS {}", line(password)?)).await?.expect(&[202, 230])?;
        }
        let features = control.command("FEAT").await?;
        let has = |name: &str| {
            let mut names = features.lines.iter().map(|line| line.trim().to_ascii_uppercase());
            features.code == 211 && names.any(|line| line.split([' ', ';']).next() == Some(name))
        };
        control.has_facts = has("MLST");
        if has("UTF8") {
            // Some servers always do, and do not know the command.
            control.command("OPTS UTF8 ON").await?;
        }
        control.command("TYPE I").await?.expect(&[200])?;
        let directory = control.command("PWD").await?.expect(&[257])?;
        control.home = quoted(directory.lines.last().map_or("", String::as_str))
            .ok_or_else(|| HttpError::invalid("it does not tell the user's directory"))?;
        Ok(control)
    }

    /// Sends a command, and returns the reply.
    pub(super) async fn command(&mut self, command: &str) -> Result<Reply, HttpError> {
        send(&mut self.stream, &self.login, command).await?;
        self.reply().await
    }

    /// Receives a reply.
    pub(super) async fn reply(&mut self) -> Result<Reply, HttpError> {
        receive(&mut self.stream, &self.login).await
    }

    /// Sends a command that moves data, and returns the connection for them. `None` with the reply if the server refuses.
    pub(super) async fn transfer(
        &mut self,
        commands: &[&str],
    ) -> Result<Result<Box<dyn Stream>, Reply>, HttpError> {
        let address = self.passive().await?;
        let login = Arc::clone(&self.login);
        let tcp = login.connect(address).await?;
        let Some((last, before)) = commands.split_last() else {
            return Err(HttpError::invalid("no command"));
        };
        for command in before {
            self.command(command).await?.expect(&[200, 350])?;
        }
        let reply = self.command(last).await?;
        match reply.code {
            125 | 150 => Ok(Ok(login.encrypted(tcp).await?)),
            _ => Ok(Err(reply)),
        }
    }

    /// Returns where the server waits for a connection: a port of the host that this one leads to, whatever host it names.
    async fn passive(&mut self) -> Result<SocketAddr, HttpError> {
        let invalid = || HttpError::invalid("it names no port for data");
        if self.is_extended {
            let reply = self.command("EPSV").await?;
            match reply.code {
                229 => {
                    let text = reply.lines.last().map_or("", String::as_str);
                    let port = text.rsplit_once("|||").and_then(|(_, rest)| rest.split_once('|'));
                    let port = port.and_then(|(port, _)| port.parse().ok()).ok_or_else(invalid)?;
                    return Ok(SocketAddr::new(self.peer.ip(), port));
                }
                500..=599 if self.peer.is_ipv4() => self.is_extended = false,
                _ => return Err(refused(&reply)),
            }
        }
        let reply = self.command("PASV").await?.expect(&[227])?;
        let text = reply.lines.last().map_or("", String::as_str);
        let numbers: Vec<u16> = text
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|number| number.parse().ok())
            .collect();
        // 227, the address, and the port in two bytes.
        match numbers[..] {
            [.., high @ 0..=255, low @ 0..=255] if numbers.len() >= 6 => {
                Ok(SocketAddr::new(self.peer.ip(), high << 8 | low))
            }
            _ => Err(invalid()),
        }
    }
}

/// Checks that a text fits into a command.
///
/// # Errors
/// `INVALID_ARGUMENT`: what follows a line break would be another command.
pub(super) fn line(text: &str) -> Result<&str, HttpError> {
    match text.contains(['\r', '\n', '\0']) {
        false => Ok(text),
        true => Err(HttpError::Other(Error::invalid_argument(
            "FTP has no names with a line break; rename the file",
        ))),
    }
}

async fn send(
    stream: &mut (impl AsyncWrite + Unpin),
    login: &Login,
    command: &str,
) -> Result<(), HttpError> {
    let sent = async {
        stream.write_all(format!("{command}\r\n").as_bytes()).await?;
        stream.flush().await
    };
    sent.await.map_err(|error: io::Error| login.broken(error))
}

async fn receive(
    stream: &mut (impl tokio::io::AsyncBufRead + Unpin),
    login: &Login,
) -> Result<Reply, HttpError> {
    let mut reply = Reply { code: 0, lines: Vec::new() };
    while reply.lines.len() < LINES {
        let mut bytes = Vec::new();
        let mut limited = (&mut *stream).take(LONGEST);
        login.progress(limited.read_until(b'\n', &mut bytes)).await?;
        if bytes.last() != Some(&b'\n') {
            return Err(login.broken("the server ended the connection"));
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches(['\r', '\n']);
        let code = text.get(..3).and_then(|code| code.parse().ok());
        if reply.lines.is_empty() {
            reply.code = code.ok_or_else(|| HttpError::invalid("it does not speak FTP"))?;
        }
        let is_last = code == Some(reply.code) && text.as_bytes().get(3) != Some(&b'-');
        let rest = if code == Some(reply.code) { text.get(4..).unwrap_or_default() } else { text };
        reply.lines.push(rest.to_owned());
        if is_last {
            return Ok(reply);
        }
    }
    Err(HttpError::invalid("its reply has no end"))
}

/// Returns the path between quotes in which a quote is doubled.
fn quoted(text: &str) -> Option<String> {
    let rest = &text[text.find('"')? + 1..];
    let mut path = String::new();
    let mut letters = rest.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if letters.peek() == Some(&'"') => {
                letters.next();
                path.push('"');
            }
            '"' => return Some(path),
            _ => path.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_quotes_is_read() {
        for (text, path) in [
            ("\"/\" is the current directory", Some("/")),
            ("\"/a \"\"b\"\" c\"", Some("/a \"b\" c")),
            ("\"/a", None),
            ("/a", None),
        ] {
            assert_eq!(quoted(text).as_deref(), path, "{text}");
        }
    }

    #[test]
    fn a_name_is_no_second_command() {
        for name in ["a\nDELE b", "a\rb", "a\0"] {
            assert!(line(name).is_err());
        }
        assert_eq!(line("a b").unwrap(), "a b");
    }
}
