//! Our connections, kept for the next request: a body goes from the socket straight into its destination.

use super::network_policy::looked_up;
use super::raw_connection::RawConnection;
use super::{HttpError, IDLE, NetworkPolicy};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::timeout_at;

/// Idle connections kept for one place.
const KEPT: usize = 64;
/// How long a result of DNS is believed.
const RESOLVED: Duration = Duration::from_secs(10);
/// The least time for an address to respond, if the time for a connection allows it: Linux sends a lost packet again
/// after a second.
const SLOW: Duration = Duration::from_secs(2);

/// Where connections go.
#[derive(Clone, Debug)]
pub struct PoolKey {
    host: String,
    port: u16,
    /// `None`: without TLS.
    tls: Option<Arc<rustls::ClientConfig>>,
}

impl PoolKey {
    /// Creates a place of a host, which may be an IPv6 address in brackets or not. Without `tls` its connections have
    /// none.
    pub fn new(host: &str, port: u16, tls: Option<Arc<rustls::ClientConfig>>) -> Self {
        // Only in a URL is an IPv6 address in brackets.
        Self { host: host.trim_matches(['[', ']']).to_owned(), port, tls }
    }
}

impl PartialEq for PoolKey {
    // Connections with other TLS settings are in other pools.
    fn eq(&self, other: &Self) -> bool {
        let tls = |pool_key: &Self| pool_key.tls.as_ref().map(Arc::as_ptr);
        self.port == other.port && self.host == other.host && tls(self) == tls(other)
    }
}

impl Eq for PoolKey {}

impl Hash for PoolKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.host, self.port, self.tls.is_some()).hash(state);
    }
}

/// The idle connections of a process.
#[derive(Debug, Default)]
pub struct Pool {
    idle: Arc<Idle>,
    addresses: Mutex<HashMap<(String, u16), Resolved>>,
    reach: NetworkPolicy,
}

#[derive(Debug, Default)]
struct Idle {
    connections: Mutex<HashMap<PoolKey, Vec<RawConnection>>>,
    /// Whether a task closes connections that are idle for too long. Set with the lock held.
    is_tidied: AtomicBool,
}

#[derive(Debug)]
struct Resolved {
    addresses: Arc<[SocketAddr]>,
    at: Instant,
    /// Counts up, so that connections spread over the addresses.
    next: usize,
}

impl Idle {
    fn lock(&self) -> MutexGuard<'_, HashMap<PoolKey, Vec<RawConnection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes connections that are idle for too long, until none is left: the store may have closed them, unnoticed.
async fn tidy(idle: Weak<Idle>) {
    loop {
        tokio::time::sleep(IDLE).await;
        let Some(idle) = idle.upgrade() else { return };
        let mut pooled = idle.lock();
        pooled.retain(|_, connections| {
            connections.retain(|connection| connection.idle_since.elapsed() < IDLE);
            !connections.is_empty()
        });
        if pooled.is_empty() {
            idle.is_tidied.store(false, Ordering::Relaxed);
            return;
        }
    }
}

impl Pool {
    /// Creates a pool that connects to nothing out of this reach.
    pub(super) fn within(reach: NetworkPolicy) -> Self {
        Self { reach, ..Self::default() }
    }

    /// Returns a connection for `pool_key`: an idle one if there is one.
    pub(super) async fn connect(
        &self,
        pool_key: &PoolKey,
        endpoint: &str,
        timeout: Duration,
    ) -> Result<RawConnection, HttpError> {
        while let Some(mut connection) = self.take(pool_key) {
            if connection.is_open() {
                return Ok(connection);
            }
        }
        let outcome = self.open(pool_key, timeout).await;
        outcome.map_err(|error| HttpError::Transport(endpoint.to_owned(), error.into()))
    }

    fn take(&self, pool_key: &PoolKey) -> Option<RawConnection> {
        let mut idle = self.idle.lock();
        let connections = idle.get_mut(pool_key)?;
        // The last one that came back is the least likely to have been closed.
        let connection = connections.pop()?;
        if connection.idle_since.elapsed() < IDLE {
            return Some(connection);
        }
        // All others were idle for longer.
        connections.clear();
        None
    }

    /// Keeps a connection whose last response was read to its end.
    pub(super) fn keep(&self, pool_key: &PoolKey, mut connection: RawConnection) {
        if !connection.received.is_empty() {
            return;
        }
        connection.set_down();
        let mut idle = self.idle.lock();
        let connections = match idle.get_mut(pool_key) {
            Some(connections) => connections,
            None => idle.entry(pool_key.clone()).or_default(),
        };
        if connections.len() >= KEPT {
            connections.remove(0);
        }
        connections.push(connection);
        if !self.idle.is_tidied.load(Ordering::Relaxed)
            && let Ok(runtime) = Handle::try_current()
        {
            self.idle.is_tidied.store(true, Ordering::Relaxed);
            runtime.spawn(tidy(Arc::downgrade(&self.idle)));
        }
    }

    async fn open(&self, pool_key: &PoolKey, timeout: Duration) -> io::Result<RawConnection> {
        let end = tokio::time::Instant::now() + timeout;
        let late =
            |_| io::Error::new(io::ErrorKind::TimedOut, format!("no connection in {timeout:?}"));
        let resolved = timeout_at(end, self.resolve(pool_key)).await;
        let (addresses, start) = resolved.map_err(late)??;
        let mut outcome = Err(io::Error::new(io::ErrorKind::NotFound, "the host has no address"));
        for i in 0..addresses.len() {
            let address = addresses[(start + i) % addresses.len()];
            // A dead address leaves the others their share, and a slow one has the time for a lost packet.
            let left = end.saturating_duration_since(tokio::time::Instant::now());
            let share = left / u32::try_from(addresses.len() - i).unwrap_or(u32::MAX);
            let share = share.max(SLOW).min(left);
            let connected = tokio::time::timeout(share, TcpStream::connect(address)).await;
            outcome = connected.map_err(late).and_then(|connected| connected);
            if outcome.is_ok() {
                break;
            }
            self.forget(pool_key, address);
        }
        let stream = outcome?;
        stream.set_nodelay(true)?;
        match &pool_key.tls {
            None => Ok(RawConnection::plain(stream)),
            Some(config) => timeout_at(end, RawConnection::tls(stream, &pool_key.host, config))
                .await
                .map_err(late)?,
        }
    }

    /// Skips this address until the next DNS query: that is at once if it was the last one, as the host may have moved.
    fn forget(&self, pool_key: &PoolKey, address: SocketAddr) {
        let key = (pool_key.host.clone(), pool_key.port);
        let mut known = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(resolved) = known.get_mut(&key) else { return };
        resolved.addresses =
            resolved.addresses.iter().copied().filter(|&other| other != address).collect();
        if resolved.addresses.is_empty() {
            known.remove(&key);
        }
    }

    async fn resolve(&self, pool_key: &PoolKey) -> io::Result<(Arc<[SocketAddr]>, usize)> {
        let key = (pool_key.host.clone(), pool_key.port);
        {
            let mut known = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(resolved) = known.get_mut(&key)
                && resolved.at.elapsed() < RESOLVED
            {
                resolved.next = resolved.next.wrapping_add(1);
                return Ok((Arc::clone(&resolved.addresses), resolved.next));
            }
        }
        let found = tokio::net::lookup_host((looked_up(&pool_key.host), pool_key.port)).await?;
        let addresses: Arc<[SocketAddr]> = self.reach.filter(found)?.into();
        let mut known = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(
            key,
            Resolved { addresses: Arc::clone(&addresses), at: Instant::now(), next: 0 },
        );
        Ok((addresses, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::{TcpListener, TcpSocket};

    /// Returns an address that drops connections: they wait in its queue, which is full.
    async fn dead() -> (SocketAddr, (TcpListener, Vec<TcpStream>)) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = socket.local_addr().unwrap();
        let mut held = (socket.listen(1).unwrap(), Vec::new());
        let short = Duration::from_millis(300);
        while let Ok(stream) = tokio::time::timeout(short, TcpStream::connect(address)).await {
            held.1.push(stream.unwrap());
        }
        (address, held)
    }

    #[tokio::test]
    async fn a_dead_address_leaves_time_for_the_others_and_is_forgotten() {
        let (dead, _held) = dead().await;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let alive = listener.local_addr().unwrap();
        let (pool, pool_key) = (Pool::default(), PoolKey::new("h", 1, None));
        let addresses = [alive, dead].into();
        let resolved = Resolved { addresses, at: Instant::now(), next: 0 };
        pool.addresses.lock().unwrap().insert(("h".into(), 1), resolved);
        // The dead one is tried first, and only once.
        let began = Instant::now();
        for _ in 0..2 {
            pool.connect(&pool_key, "http://h", Duration::from_secs(4)).await.unwrap();
        }
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
        let known = pool.addresses.lock().unwrap();
        assert_eq!(*known[&("h".to_owned(), 1)].addresses, [alive]);
    }
}
