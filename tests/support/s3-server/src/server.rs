//! The running server: a thread with its own runtime, a listener, its connections.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc as std_mpsc};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use s3s::service::{S3Service, S3ServiceBuilder};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::Handle;
use crate::answer::{End, Ends};
use crate::auth::{Access, Credentials, Hosts, Keys, Names};
use crate::fault::Faults;
use crate::front::{Connection, Front};
use crate::log::Log;
use crate::quirk::Character;
use crate::service::Service;
use crate::shape::{Network, Shape, Shaped, Wire};
use crate::store::Store;
use crate::tls::{Tls, acceptor};

/// How a server starts.
#[derive(Clone, Debug)]
pub struct Options {
    /// Access key identifier that is accepted.
    pub access_key: String,
    /// Its secret.
    pub secret_key: String,
    /// Buckets that exist from the start; any region may sign for them.
    pub buckets: Vec<String>,
    /// The region of buckets without their own.
    pub region: String,
    /// ETags are unique numbers instead of MD5 sums, which would take longer than the transfer.
    pub fast: bool,
    /// The certificate, if it uses TLS.
    pub tls: Option<Tls>,
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The speed of the network from the start.
    pub shape: Shape,
    /// Threads of the server's runtime.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            access_key: "access".to_owned(),
            secret_key: "secret".to_owned(),
            buckets: Vec::new(),
            region: "us-east-1".to_owned(),
            fast: false,
            tls: None,
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            shape: Shape::default(),
            threads: 2,
        }
    }
}

/// The state that all requests of a server share.
pub(crate) struct Core {
    pub(crate) access_key: String,
    pub(crate) secret_key: String,
    pub(crate) address: SocketAddr,
    pub(crate) ca_pem: Option<String>,
    pub(crate) store: Arc<Store>,
    pub(crate) keys: Keys,
    pub(crate) log: Log,
    pub(crate) faults: Faults,
    pub(crate) character: Character,
    pub(crate) network: Arc<Network>,
    pub(crate) s3: S3Service,
    tls: Option<TlsAcceptor>,
    connections: Mutex<BTreeMap<u64, Ends>>,
    next_connection: AtomicU64,
    next_request: AtomicU64,
    /// Whether to listen; the accept loop follows, and reports the result.
    listening: watch::Sender<bool>,
    listening_done: Mutex<std_mpsc::Receiver<io::Result<()>>>,
}

impl Core {
    pub(crate) fn request_id(&self) -> u64 {
        self.next_request.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn set_refusing(&self, refusing: bool) -> io::Result<()> {
        let done = self.listening_done.lock().unwrap_or_else(PoisonError::into_inner);
        if *self.listening.borrow() != refusing {
            return Ok(());
        }
        self.listening.send_replace(!refusing);
        done.recv().map_err(|_| io::Error::other("the server has stopped"))?
    }

    fn open_connections(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Ends>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn reset_connections(&self) {
        for ends in self.open_connections().values() {
            // A task that is gone has no connection to end.
            let _ = ends.send(End::Reset);
        }
    }
}

/// A running server. Dropping it stops it and closes all its connections.
pub struct Server {
    handle: Handle,
    stop: watch::Sender<bool>,
    /// In a mutex only so that tests can share the server between threads.
    stopped: Mutex<std_mpsc::Receiver<()>>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("endpoint", &self.handle.endpoint()).finish_non_exhaustive()
    }
}

impl std::ops::Deref for Server {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Server {
    /// Starts a server, which accepts requests once this has returned.
    ///
    /// # Errors
    /// If the address cannot be listened on, or no thread or certificate can be created.
    pub fn start(options: Options) -> io::Result<Server> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.threads.max(1))
            .thread_name("s3-server")
            .enable_all()
            .build()?;
        let listener = std::net::TcpListener::bind(options.listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (tls, ca_pem) =
            options.tls.map(|tls| acceptor(tls, &options.buckets)).transpose()?.unzip();

        let store = Arc::new(Store::new(options.fast));
        for bucket in &options.buckets {
            store.create(bucket, None);
        }
        let keys = Keys::default();
        keys.set([Credentials::new(&options.access_key, &options.secret_key)]);
        let mut s3 =
            S3ServiceBuilder::new(Service { store: Arc::clone(&store), region: options.region });
        s3.set_auth(keys.clone());
        s3.set_access(Access { keys: keys.clone(), store: Arc::clone(&store) });
        s3.set_host(Hosts);
        s3.set_validation(Names);

        let (listening, listening_done) = (watch::Sender::new(true), std_mpsc::channel());
        let core = Arc::new(Core {
            access_key: options.access_key,
            secret_key: options.secret_key,
            address,
            ca_pem,
            store,
            keys,
            log: Log::new(),
            faults: Faults::default(),
            character: Character::default(),
            network: Arc::new(Network::new(options.shape)),
            s3: s3.build(),
            tls,
            connections: Mutex::default(),
            next_connection: AtomicU64::new(1),
            next_request: AtomicU64::new(1),
            listening,
            listening_done: Mutex::new(listening_done.1),
        });
        let (stop, (stopped_in, stopped)) = (watch::Sender::new(false), std_mpsc::channel());
        // Subscribed here, so that no request is missed before the task runs.
        let changes = (core.listening.subscribe(), listening_done.0);
        let accepting = accept(Arc::clone(&core), listener, stop.subscribe(), changes);
        runtime.spawn(async move {
            accepting.await;
            // Nobody waits if the server was forgotten.
            let _ = stopped_in.send(());
        });
        Ok(Server {
            handle: Handle(core),
            stop,
            stopped: Mutex::new(stopped),
            runtime: Some(runtime),
        })
    }

    /// Returns a handle that can be sent to other threads; it does not keep the server running.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        // All connections are closed when it responds; a running hook must not delay the test.
        let stopped = self.stopped.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = stopped.recv_timeout(Duration::from_secs(5));
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept(
    core: Arc<Core>,
    listener: std::net::TcpListener,
    mut stop: watch::Receiver<bool>,
    (mut listening, listening_done): (watch::Receiver<bool>, std_mpsc::Sender<io::Result<()>>),
) {
    let mut listener = TcpListener::from_std(listener).ok();
    let mut tasks = JoinSet::new();
    loop {
        let accepted = async {
            match &listener {
                Some(listener) => listener.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = stop.changed() => break,
            _ = listening.changed() => {
                let result = if *listening.borrow_and_update() {
                    TcpListener::bind(core.address).await.map(Some)
                } else {
                    Ok(None)
                };
                let result = result.map(|changed| listener = changed);
                // The receiver may have been dropped.
                let _ = listening_done.send(result);
            }
            Some(_) = tasks.join_next() => {}
            accepted = accepted => match accepted {
                Ok((stream, _)) => {
                    // At once, so that `reset_connections` finds every open connection.
                    let number = core.next_connection.fetch_add(1, Ordering::Relaxed);
                    let (ends, ended) = mpsc::unbounded_channel();
                    core.open_connections().insert(number, ends.clone());
                    let core = Arc::clone(&core);
                    tasks.spawn(async move {
                        connection(&core, stream, number, (ends, ended)).await;
                        core.open_connections().remove(&number);
                    });
                }
                // Mostly out of descriptors: other connections end meanwhile.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
        }
    }
    drop(listener);
    tasks.shutdown().await;
}

/// Lets a close send a reset instead of an orderly end.
fn reset(stream: &socket2::Socket) {
    // On failure the close is orderly: the client sees an end nevertheless.
    let _ = stream.set_linger(Some(Duration::ZERO));
}

async fn connection(
    core: &Arc<Core>,
    stream: TcpStream,
    number: u64,
    (ends, ended): (Ends, mpsc::UnboundedReceiver<End>),
) {
    core.log.connected();
    let Ok(socket) = socket2::SockRef::from(&stream).try_clone() else { return };
    if core.faults.refuses() {
        reset(&socket);
        return;
    }
    // Without it a small response waits for the client's delayed acknowledgement.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let wire = Arc::new(Wire::default());
    let shaped = Shaped::new(stream, Arc::clone(&core.network), Arc::clone(&wire));
    let connection = Arc::new(Connection { number, wire, ends, doomed: AtomicBool::new(false) });
    let front = Front { core: Arc::clone(core), connection };
    match core.tls.clone() {
        None => http(front, shaped, ended, socket).await,
        Some(tls) => {
            if let Ok(stream) = tls.accept(shaped).await {
                http(front, stream, ended, socket).await;
            }
        }
    }
}

/// The largest piece in which a body is read. Larger ones are new pages of the kernel each time, which costs more than
/// the calls that they save.
const READ: usize = 64 << 10;

async fn http(
    front: Front,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    mut ended: mpsc::UnboundedReceiver<End>,
    socket: socket2::Socket,
) {
    let mut http = hyper::server::conn::http1::Builder::new();
    http.max_buf_size(READ).half_close(false);
    let mut serving = std::pin::pin!(http.serve_connection(TokioIo::new(stream), front));
    loop {
        tokio::select! {
            // No request is served on a connection that is to end.
            biased;
            end = ended.recv() => match end {
                Some(End::HalfClose) => {
                    // On failure the connection has ended already.
                    let _ = socket.shutdown(std::net::Shutdown::Write);
                }
                Some(End::Reset) => {
                    reset(&socket);
                    return;
                }
                Some(End::Close) | None => return,
            },
            // A client that goes away is not an error of the server.
            _ = serving.as_mut() => return,
        }
    }
}
